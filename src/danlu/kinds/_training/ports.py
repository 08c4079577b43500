"""Which port each replica listens on.

In a cluster every pod has a network of its own, and the kind's usual port serves all. On the embedded node pods share
the host's: a server that listens on all addresses would meet that of another job. There each job (torch: only the
master listens) or each replica (TensorFlow: all do) gets a port of its own:

- the first choice follows from the job's uid, so that it is the same however often it is made;
- ports that other jobs have are skipped, and so are two of the same number in one job;
- a port that the template names itself is kept if no other job has it;
- the choice is remembered in the replica's service and in the ports of its pod, and nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from danlu.kinds._training.job import Job
from danlu.kinds._training.observation import Observed
from danlu.meta.kind import Object

FIRST, COUNT = 20000, 10000  # below 32768, where Linux begins to hand out ports by itself

Ports = Mapping[str, int]
"""By replica name."""


@dataclass(frozen=True, slots=True)
class Port:
    """On which a kind's replicas listen."""

    name: str
    number: int  # the usual one
    for_each_replica: bool = False  # all replicas listen, or only the first


def for_job(job: Job, observed: Observed, container: str, port: Port) -> Ports:
    if not observed.settings.shared_network:
        return fixed(job, container, port)
    return planned(job, observed, container, port)


def fixed(job: Job, container: str, port: Port) -> dict[str, int]:
    """Pods have networks of their own: the template's port, or the kind's usual one."""
    return {
        replica.name: named_port(replica.role.template, container, port.name) or port.number for replica in job.replicas
    }


def planned(job: Job, observed: Observed, container: str, port: Port) -> dict[str, int]:
    taken = observed.taken_ports
    known = {**_in_pods(observed.pods, container, port.name), **_remembered(observed.services, port.name)}
    found: dict[str, int] = {}
    used = set(known.values())
    for offset, replica in enumerate(job.replicas):
        if not port.for_each_replica and (shared := next(iter(known.values()), None)) is not None:
            found[replica.name] = shared
        elif replica.name in known:
            found[replica.name] = known[replica.name]
        else:
            asked = named_port(replica.role.template, container, port.name)
            found[replica.name] = known[replica.name] = _choose(job, asked, offset, taken, used)
            used.add(found[replica.name])
    return found


def _choose(job: Job, asked: int | None, offset: int, taken: Container[int], used: set[int]) -> int:
    if asked is not None and asked not in taken and asked not in used:
        return asked
    start = int.from_bytes(hashlib.sha256(job.uid.encode()).digest()[:4], "big") + offset
    for step in range(COUNT):
        port = FIRST + (start + step) % COUNT
        if port not in taken and port not in used:
            return port
    return FIRST + start % COUNT  # all ten thousand are taken: let the program say so


def named_port(template: Object, container: str, port_name: str) -> int | None:
    return _port_of((template.get("spec") or {}).get("containers") or (), container, port_name)


def service_ports(service: Object) -> list[int]:
    return [int(port["port"]) for port in (service.get("spec") or {}).get("ports") or () if "port" in port]


def _remembered(services: Iterable[Object], port_name: str) -> dict[str, int]:
    return {
        service["metadata"]["name"]: int(port["port"])
        for service in services
        for port in (service.get("spec") or {}).get("ports") or ()
        if port.get("name") == port_name
    }


def _in_pods(pods: Iterable[Object], container: str, port_name: str) -> dict[str, int]:
    found = {}
    for pod in pods:
        port = _port_of(pod["spec"].get("containers") or (), container, port_name)
        if port is not None:
            found[pod["metadata"]["name"]] = port
    return found


def _port_of(containers: Sequence[Object], container: str, port_name: str) -> int | None:
    chosen = [one for one in containers if one.get("name") == container] or list(containers[:1])
    for one in chosen:
        for port in one.get("ports") or ():
            if port.get("name") == port_name:
                return int(port["containerPort"])
    return None
