"""The I/O around a job kind's pure reconcile: what it sees, and who wakes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from weakref import WeakKeyDictionary

from danlu.client.informer import Informer
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.ports import service_ports
from danlu.kinds._training.replicas import FINISHED, phase_of
from danlu.kinds._training.silence import Silence
from danlu.kinds.claims import unbound
from danlu.kinds.mending import with_remedy
from danlu.kinds.platform import PlatformSettings
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM, POD, SERVICE, STORAGE_CLASS
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.pure import BY_CONTROLLER, Children, observing_controller
from danlu.runtime.reconcile import Outcome, Refusal, Request

Reconcile = Callable[[Object, Observed, datetime], Outcome]

WORKERS = 64  # most of them wait for writes, and none is to keep another job's pods from being made
BY_PORT = "port"


def training_controller(
    manager: Manager, settings: PlatformSettings, name: str, kind: Kind, reconcile: Reconcile, more: Iterable[Kind] = ()
) -> Controller:
    """`name` is the source of events; `more` are children besides pods and services."""
    services, pods = manager.informer(SERVICE), manager.informer(POD)
    if settings.shared_network:
        services.add_index(BY_PORT, _ports_of)
    claims, classes = manager.informer(PERSISTENT_VOLUME_CLAIM), manager.informer(STORAGE_CLASS)
    bookings = _BOOKINGS.setdefault(manager, Bookings())
    others = tuple(more)

    def observe(obj: Object, children: Children, refused: Sequence[Refusal]) -> Observed:
        uid = obj["metadata"]["uid"]
        request = Request(obj["metadata"]["namespace"], obj["metadata"]["name"])
        mine = children[POD]
        if children[SERVICE]:
            bookings.forget(uid)
        return Observed(
            pods=mine,
            services=children[SERVICE],
            others=[child for other in others for child in children[other]],
            events=silence.told_of(mine, request),
            unbound=unbound(mine, claims, classes),
            taken_ports=TakenPorts(uid, services, pods, bookings) if settings.shared_network else frozenset(),
            refused=refused,
            settings=settings,
        )

    def decide(obj: Object, observed: Observed, now: datetime) -> Outcome:
        outcome = reconcile(obj, observed, now)
        if settings.shared_network:
            made = [creation.obj for creation in outcome.create if creation.obj["kind"] == SERVICE.kind]
            bookings.book(obj["metadata"]["uid"], {port for service in made for port in service_ports(service)})
        return outcome

    controller = observing_controller(
        *(manager, name, kind, (POD, SERVICE, *others), observe, decide),
        workers=WORKERS,
        reads=(PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS),
        explain=lambda said: with_remedy("", said),
    )
    silence = Silence(pods, controller)
    return controller


class Bookings:
    """Ports that a job has just been given and that are not yet seen in its services."""

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


# Controllers of one manager share the machine's ports.
_BOOKINGS: WeakKeyDictionary[Manager, Bookings] = WeakKeyDictionary()


def _ports_of(service: Object) -> list[Hashable]:
    return list(service_ports(service)) if owners.controller_of(service) else []
