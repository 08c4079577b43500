"""`Flavour`: all that one kind of TensorStack job differs in from the others; and how its spec is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from danlu.kinds._training.job import MOST_REPLICAS, NEVER, Job, Replica, Role, RunPolicy, Scheduling
from danlu.kinds._training.ports import Ports
from danlu.meta.kind import Kind, Object

RESTARTABLE = (130, 137, 138, 143)  # Ctrl+C, SIGKILL, "please restart me", SIGTERM
BACKOFF_LIMIT = 3
CLEAN = {"none": "None", "unfinished": "Running", "all": "All"}


def as_written(_job: Job, _replica: Replica, _ports: Ports, _container: Object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Flavour:
    kind: Kind
    containers: tuple[str, ...]  # names of the training container, the first that is there; else the pod's first
    port_name: str
    port: int
    environment: Callable[[Job, Replica, Ports], Mapping[str, str]]
    master: Callable[[Job], Replica]
    port_for_each_replica: bool = False  # all replicas listen, or only the first
    most: int = MOST_REPLICAS  # of all types together
    processes: int = 0  # in the training container, for children.set_threads; a template that knows better says so
    # The last word on the training container's command, where the kind wraps it.
    command: Callable[[Job, Replica, Ports, Object], None] = as_written

    def job(self, obj: Object) -> Job:
        spec = obj["spec"]
        policy = spec.get("runPolicy") or {}
        scheduler = (spec.get("scheduler") or {}).get("t9kScheduler")
        elastic = elastic_of(spec)
        return Job(
            self.kind,
            obj,
            _roles(spec, elastic),
            RunPolicy(
                clean=CLEAN[str(policy.get("cleanUpPolicy") or "None").lower()],
                deadline_s=policy.get("activeDeadlineSeconds"),
                backoff_limit=policy.get("backoffLimit", BACKOFF_LIMIT),
                suspend=is_enabled((spec.get("runMode") or {}).get("pause")),
                scheduling=Scheduling(
                    min_available=int(elastic["minReplicas"]) if elastic and "minReplicas" in elastic else None,
                    queue=scheduler["queue"],
                    priority=scheduler.get("priority") or 0,
                )
                if scheduler
                else None,
            ),
            prefix=prefix(obj),
        ).bounded(self.most)

    def container_name(self, spec: Object) -> str:
        names = [container["name"] for container in spec["containers"]]
        return next((name for name in self.containers if name in names), names[0])


def prefix(obj: Object) -> str:
    """The job's name and five hex digits: before the names of its pods, and the name of its TensorBoard."""
    digits = hashlib.sha256(str(obj["metadata"]["uid"]).encode()).hexdigest()[:5]
    return f"{obj['metadata']['name']}-{digits}"


def is_enabled(mode: Object | None) -> bool:
    """`enable` is the older spelling."""
    return bool((mode or {}).get("enabled", (mode or {}).get("enable")))


def elastic_of(spec: Object) -> Object | None:
    elastic = spec.get("elastic")
    return elastic if is_enabled(elastic) else None


def restartable(code: int | None) -> bool:
    """By the policy ExitCode. A pod that is lost without a code was no fault of the program."""
    return code is None or code in RESTARTABLE


def _roles(spec: Object, elastic: Object | None) -> tuple[Role, ...]:
    written: Sequence[Object] = spec["replicaSpecs"]
    counts = [int(one.get("replicas") or 1) for one in written]
    if elastic is not None and elastic.get("expectedReplicas") is not None:
        counts = split(int(elastic["expectedReplicas"]), [one.get("scalingWeight", 1) for one in written])
    return tuple(
        Role(one["type"], count, one.get("template") or {}, one.get("restartPolicy") or NEVER)
        for one, count in zip(written, counts, strict=True)
    )


def split(total: int, weights: Sequence[int]) -> list[int]:
    """In proportion to the weights; what is left over goes to the largest remainders, the first of equals first."""
    weight = sum(weights) or len(weights)
    shares = [total * (one if sum(weights) else 1) / weight for one in weights]
    counts = [int(share) for share in shares]
    order = sorted(range(len(shares)), key=lambda n: (counts[n] - shares[n], n))
    for number in order[: total - sum(counts)]:
        counts[number] += 1
    return counts
