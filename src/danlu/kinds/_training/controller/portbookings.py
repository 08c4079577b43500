"""Ports of other jobs: two must not use the same where pods share the host's network."""

from __future__ import annotations

from collections.abc import Hashable

from danlu.client.informer import Informer
from danlu.kinds._training.ports import service_ports
from danlu.kinds._training.replicas import FINISHED, phase_of
from danlu.meta import owners
from danlu.meta.kind import Object
from danlu.runtime.shell import BY_CONTROLLER

BY_PORT = "port"  # index of services


class Bookings:
    """Ports that a job has just been given and that are not yet seen in its services.

    Controllers of one program share it, as they share the machine's ports.
    """

    def __init__(self) -> None:
        self._ports: dict[str, set[int]] = {}

    def book(self, uid: str, ports: set[int]) -> None:
        if ports:
            self._ports.setdefault(uid, set()).update(ports)

    def forget(self, uid: str) -> None:
        self._ports.pop(uid, None)

    def by_others(self, uid: str, port: int) -> bool:
        return any(port in ports for owner, ports in self._ports.items() if owner != uid)


class TakenPorts:
    """The ports of all other jobs that still run; asked for a few numbers only, so never made into a set."""

    def __init__(self, uid: str, services: Informer, pods: Informer, bookings: Bookings) -> None:
        self._uid = uid
        self._services = services
        self._pods = pods
        self._bookings = bookings

    def __contains__(self, port: object) -> bool:
        if not isinstance(port, int):
            return False
        for service in self._services.by_index(BY_PORT, port):
            owner = owners.controller_of(service)
            if owner is not None and owner["uid"] != self._uid and self._is_live(owner["uid"]):
                return True
        return self._bookings.by_others(self._uid, port)

    def _is_live(self, uid: str) -> bool:
        """A job that has ended keeps its services, and needs their ports no more."""
        pods = self._pods.by_index(BY_CONTROLLER, uid)
        return not pods or any(phase_of(pod) not in FINISHED for pod in pods)


def ports_of(service: Object) -> list[Hashable]:
    return list(service_ports(service)) if owners.controller_of(service) else []
