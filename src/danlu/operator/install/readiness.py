"""Waiting until Deployments work, with the reason why they do not yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from danlu import errors
from danlu.client.client import Client
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import DEPLOYMENT, POD

POLL_S = 0.5
PULLING = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
LOG_LINES = 5
LONGEST = 300


@dataclass(frozen=True, slots=True)
class State:
    ready: bool
    reason: str = ""
    remedy: str = ""


class NotInstalled(Exception):
    """It did not work in time; the message says which, why, and what mends it."""


async def wait(client: Client, names: Sequence[tuple[str, str]], timeout_s: float, tell: Callable[[str], None]) -> None:
    """`names`: (namespace, name) of Deployments. Each new reason is told once."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + timeout_s
    said: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        for namespace, name in list(waiting):
            try:
                state = await look(client, namespace, name)
            except (errors.ServiceUnavailable, errors.Timeout) as error:
                state = State(False, error.message)
            if state.ready:
                waiting.remove((namespace, name))
                tell(f"{name} is ready")
            elif loop.time() > ends:
                remedy = state.remedy or f"kubectl -n {namespace} describe deployment/{name} tells more"
                raise NotInstalled(f"{name} is not ready after {timeout_s:.0f} s: {state.reason}\n    → {remedy}")
            elif said.get(name) != state.reason:
                said[name] = state.reason
                tell(f"waiting for {name}: {state.reason}")
        if waiting:
            await asyncio.sleep(POLL_S)


async def look(client: Client, namespace: str, name: str) -> State:
    try:
        deployment = await client.get(DEPLOYMENT, name, namespace)
    except errors.NotFound:
        return State(False, "it is not there any more", "run danlu install again")
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = spec.get("replicas", 1)
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return State(
            False, "the cluster's controller manager has not seen it yet", "see whether kube-controller-manager runs"
        )
    updated, available = status.get("updatedReplicas") or 0, status.get("availableReplicas") or 0
    if updated >= wanted and available >= wanted and (status.get("replicas") or 0) <= wanted:
        return State(True)
    selector = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())
    pods = (await client.list(POD, namespace, labels=selector)).items
    counted = f"{min(available, wanted)} of {wanted} ready"
    for pod in sorted(pods, key=lambda one: one["metadata"].get("creationTimestamp") or "", reverse=True):
        trouble = await _trouble(client, pod)
        if trouble is not None:
            return State(False, f"{counted}; {trouble.reason}", trouble.remedy)
    failure = conditions.get(status.get("conditions"), "ReplicaFailure")
    if failure is not None and failure.get("status") == "True":
        return State(False, f"{counted}; no pod can be made: {failure.get('message')}")
    return State(False, counted)


async def _trouble(client: Client, pod: Object) -> State | None:
    name, namespace, status = pod["metadata"]["name"], pod["metadata"]["namespace"], pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return None
    placed = conditions.get(status.get("conditions"), "PodScheduled")
    if placed is not None and placed.get("status") == "False":
        return State(
            False, f"pod {name} finds no node: {placed.get('message')}", "make room: kubectl describe nodes tells why"
        )
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, message = waiting.get("reason") or "", str(waiting.get("message") or "")[:LONGEST]
        if reason in PULLING:
            return State(
                False,
                f"pod {name} cannot get its image {container.get('image')}: {message or reason}",
                "build and push it (scripts/build-images), or name another: danlu install --image IMAGE",
            )
        if reason == "CrashLoopBackOff" or container.get("restartCount"):
            last = await _last_words(client, namespace, name)
            return State(
                False,
                f"pod {name} ends again and again: {last or message or reason}",
                f"kubectl -n {namespace} logs {name} --previous",
            )
        if reason and reason != "ContainerCreating":
            return State(False, f"pod {name}: {reason}: {message}", f"kubectl -n {namespace} describe pod {name}")
    return None


async def _last_words(client: Client, namespace: str, name: str) -> str:
    try:
        path = POD.path(namespace, name, "log")
        answer = await client.request("GET", path, [("tailLines", str(LOG_LINES)), ("previous", "true")])
    except errors.ApiError:
        return ""
    lines = answer.body.decode(errors="replace").strip().splitlines() if isinstance(answer.body, bytes) else []
    return lines[-1][:LONGEST] if lines else ""
