"""Nobody's requests starve those of others: Kubernetes' API priority and fairness, in small.

One event loop answers everybody. So a request from a socket waits for two things:

- *seats*: each flow has so many at a time, and a request holds its own from the first byte of its body to the last of
  its answer. A large list takes several. This bounds what one flow can keep in memory.
- *a turn*: between two looks at the sockets the loop works for about `turn_seconds`. What does not fit in waits, and
  the flow that has had least goes next (fair queueing by virtual time). So who sends one request among somebody's
  thousands is answered in a turn or two, and somebody alone has the whole server.

A flow is a user; for service accounts it is their namespace, because an account costs nothing to make. Streams
(watches, followed logs, exec, proxies) give their seat back and are counted apart. The cluster's own parts, its
administrators (system:masters) and health checks wait for nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.auth.rbac import MASTERS, SERVICE_ACCOUNT_PREFIX
from danlu.embedded.apiserver.target import PAGE
from danlu.embedded.settings import RequestLimits
from danlu.errors import TooManyRequests

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Call, User

HEALTH = ("/healthz", "/livez", "/readyz")
STREAMING = frozenset(("exec", "attach", "portforward", "proxy"))
OBJECTS_PER_SEAT, MOST_SEATS_OF_A_REQUEST = 500, 10
# Seconds of the loop that a request takes, before it is known: as measured on a laptop.
READ_SECONDS, WRITE_SECONDS, LISTED_OBJECT_SECONDS, SENT_BYTE_SECONDS = 1e-4, 4e-4, 1.5e-6, 1e-9
KEPT_FLOWS = 1024
LOOK_AGAIN_SECONDS = 1.0  # for who has waited too long


def refusal() -> TooManyRequests:
    return TooManyRequests("Too many requests, please try again later.", {"retryAfterSeconds": 1})


def flow_of(user: User) -> str:
    if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
        return user.name.rpartition(":")[0]
    return user.name


def is_stream(call: Call) -> bool:
    target = call.target
    if not target.subresource:
        return target.verb == "watch"
    return target.subresource in STREAMING or (target.subresource == "log" and call.query.flag("follow"))


@dataclass(slots=True, eq=False)
class Waiting:
    granted: asyncio.Future[None]
    seats: int
    seconds: float
    since: float


@dataclass(slots=True, eq=False)
class Flow:
    name: str
    seats: int = 0  # taken
    streams: int = 0  # open
    had: float = 0.0  # seconds of the loop, in virtual time
    waiting: deque[Waiting] = field(default_factory=deque)

    @property
    def idle(self) -> bool:
        return not self.seats and not self.streams and not self.waiting


@dataclass(slots=True, eq=False)
class Seat:
    """What a request holds until `Fairness.leave`, which may be called again."""

    flow: Flow
    seats: int
    seconds: float


class Fairness:
    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._flows: dict[str, Flow] = {}
        self._by_user: dict[str, Flow] = {}
        self._queued: dict[str, Flow] = {}  # those with somebody waiting
        self._seats = 0  # taken in all
        self._waiting = 0
        self._virtual = 0.0  # how much the flow had that was last let in: who comes now begins there
        self._spent = 0.0  # of this turn; it ends when somebody comes who finds it used up
        self._next: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    # -- what a request does

    def enter(self, call: Call) -> Seat | None:
        """A seat, if nobody waits and there is one; the usual case, and without a detour through the loop."""
        user = call.user
        flow = self._by_user.get(user.name)
        if flow is None:
            flow = self._flow(user)
        if MASTERS in user.groups or (call.target.scope == PAGE and call.target.path.startswith(HEALTH)):
            return Seat(flow, 0, 0.0)
        seats, seconds = self._estimate(call)
        if self._waiting or self._spent >= self._limits.turn_seconds or not self._has_room(flow, seats):
            return None
        self._let_in(flow, seats, seconds)
        return Seat(flow, seats, seconds)

    async def wait(self, call: Call) -> Seat:
        """Raises TooManyRequests when as many of this flow wait already as may, or when it takes too long."""
        flow = self._flow(call.user)
        seats, seconds = self._estimate(call)
        await self._queue(flow, seats, seconds)
        return Seat(flow, seats, seconds)

    def leave(self, seat: Seat) -> None:
        if not seat.seats:
            return
        seat.flow.seats -= seat.seats
        self._seats -= seat.seats
        seat.seats = 0
        if self._waiting:
            self._schedule()

    def charge(self, seat: Seat, seconds: float, sent: int) -> None:
        """What it took in fact."""
        if not seat.seats:
            return
        more = seconds + sent * SENT_BYTE_SECONDS - seat.seconds
        seat.flow.had += more
        self._spent += more

    def open_stream(self, call: Call) -> Flow:
        """Raises TooManyRequests when the flow has as many open as it may."""
        flow = self._flow(call.user)
        if flow.streams >= self._limits.streams_per_user and MASTERS not in call.user.groups:
            raise refusal()
        flow.streams += 1
        return flow

    def close_stream(self, flow: Flow | None) -> None:
        if flow is not None:
            flow.streams -= 1

    # -- the queues

    def _flow(self, user: User) -> Flow:
        name = flow_of(user)
        flow = self._flows.get(name)
        if len(self._by_user) >= KEPT_FLOWS:
            self._by_user.clear()
            self._flows = {other.name: other for other in self._flows.values() if not other.idle}
        if flow is None:
            flow = self._flows[name] = Flow(name)
        self._by_user[user.name] = flow
        return flow

    def _estimate(self, call: Call) -> tuple[int, float]:
        target = call.target
        if target.verb == "get":
            return 1, READ_SECONDS
        if target.verb not in ("list", "watch"):
            return 1, WRITE_SECONDS
        served = call.server.registry.by_path(target.group, target.version, target.resource)
        objects = call.server.store.count(served.key) if served is not None else 0
        limit = call.query.get("limit")
        if limit.isdecimal() and int(limit[:9]):
            objects = min(objects, int(limit[:9]))
        seats = min(1 + objects // OBJECTS_PER_SEAT, MOST_SEATS_OF_A_REQUEST, self._limits.seats_per_user)
        return seats, READ_SECONDS + objects * LISTED_OBJECT_SECONDS

    def _has_room(self, flow: Flow, seats: int) -> bool:
        """A flow that has nothing can always have something, however many others sit on all seats and do not read."""
        if flow.seats + seats > self._limits.seats_per_user:
            return False
        return self._seats + seats <= self._limits.seats or not flow.seats

    def _let_in(self, flow: Flow, seats: int, seconds: float) -> None:
        flow.seats += seats
        self._seats += seats
        self._virtual = max(self._virtual, flow.had)
        flow.had = max(flow.had, self._virtual) + seconds
        self._spent += seconds

    async def _queue(self, flow: Flow, seats: int, seconds: float) -> None:
        if len(flow.waiting) >= self._limits.waiting_per_user:
            raise refusal()
        if not flow.waiting and not flow.seats:
            flow.had = max(flow.had, self._virtual)  # time that it did not use is not saved up
        waiting = Waiting(asyncio.get_running_loop().create_future(), seats, seconds, time.monotonic())
        flow.waiting.append(waiting)
        self._queued[flow.name] = flow
        self._waiting += 1
        self._schedule()
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if waiting in flow.waiting:
                flow.waiting.remove(waiting)
                self._waiting -= 1
            elif not waiting.granted.cancelled() and waiting.granted.exception() is None:
                self.leave(Seat(flow, seats, seconds))  # let in and gone in the same moment
            raise

    def _schedule(self) -> None:
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """The loop has looked at the sockets: the next turn begins, with those who waited."""
        self._next = None
        self._spent = 0.0
        if not self._waiting:
            return
        self._give_up_on_late()
        while self._spent < self._limits.turn_seconds:
            able = [
                flow for flow in self._queued.values() if flow.waiting and self._has_room(flow, flow.waiting[0].seats)
            ]
            if not able:
                break
            flow = min(able, key=lambda one: one.had)
            first = flow.waiting.popleft()
            self._waiting -= 1
            self._let_in(flow, first.seats, first.seconds)
            first.granted.set_result(None)
        self._queued = {name: flow for name, flow in self._queued.items() if flow.waiting}
        if self._waiting and self._spent >= self._limits.turn_seconds:
            self._schedule()
        elif self._waiting and self._later is None:
            # For seats. Whoever leaves looks again; but nobody may, and then time runs out.
            self._later = asyncio.get_running_loop().call_later(LOOK_AGAIN_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._later = None
        self._schedule()

    def _give_up_on_late(self) -> None:
        latest = time.monotonic() - self._limits.wait_seconds
        for flow in self._queued.values():
            while flow.waiting and flow.waiting[0].since < latest:
                late = flow.waiting.popleft()
                self._waiting -= 1
                late.granted.set_exception(refusal())
