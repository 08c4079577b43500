"""What a node refuses to run, in kubelet's words: pods that came past the scheduler, or that it can bear no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from danlu.embedded.node.pressure.eviction import DISK_PRESSURE, MEMORY_PRESSURE, is_critical
from danlu.meta import resourcesums
from danlu.meta.kind import Object
from danlu.meta.quantity import Quantity, parse

ZERO = parse("0")
Refusal = tuple[str, str]
"""Reason and message."""


Requests = Mapping[str, Quantity]


def refusal(pod: Object, node: Object, others: Sequence[Requests], pressures: set[str]) -> Refusal | None:
    """`others`: what each of the other pods here requests."""
    if not is_critical(pod):
        found = _pressed(pod, pressures)
        if found is not None:
            return found
    labels = node["metadata"].get("labels") or {}
    for name, value in (pod["spec"].get("nodeSelector") or {}).items():
        if labels.get(name) != value:
            problem = "node(s) didn't match Pod's node affinity/selector"
            return "NodeAffinity", f"Predicate NodeAffinity failed: {problem}"
    return _too_large(pod, node, others)


def _pressed(pod: Object, pressures: set[str]) -> Refusal | None:
    if DISK_PRESSURE in pressures:
        return "Evicted", f"The node had condition: [{DISK_PRESSURE}]. "
    if MEMORY_PRESSURE in pressures and resourcesums.is_best_effort(pod):
        return "Evicted", f"The node had condition: [{MEMORY_PRESSURE}]. "
    return None


def _too_large(pod: Object, node: Object, others: Sequence[Requests]) -> Refusal | None:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    most = int(parse(allocatable.get("pods", "110")).value())
    if len(others) + 1 > most:
        return "OutOfpods", _words("pods", 1, len(others), most)
    taken: dict[str, Quantity] = {}
    for other in others:
        resourcesums.add(taken, other)
    for name, asked in resourcesums.pod_requests(pod).items():
        offered = parse(allocatable.get(name, "0"))
        used = taken.get(name, ZERO)
        if asked > ZERO and asked > offered - used:
            return f"OutOf{name}", _words(name, _number(name, asked), _number(name, used), _number(name, offered))
    return None


def _number(name: str, amount: Quantity) -> int:
    return amount.milli() if name == "cpu" else amount.value()


def _words(name: str, asked: int, used: int, offered: int) -> str:
    return f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {offered}"
