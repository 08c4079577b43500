"""`GangScheduling`: the part of the scheduler that deals in gangs and lanes instead of single pods.

It holds who belongs to which gang, which lane is next, and which room is being cleared for whom; and it decides on one
gang at a time, without awaiting. What follows a decision (binding, telling, evicting) is handed back by callbacks.

Invariants:
- A member counts from the moment it is assumed on a node until it is being deleted. A finished one still counts: its
  gang has started, and a replica that died is remade and placed alone. Once all members are gone, so is the start.
- Of gangs of one shape in one lane that do not fit, only the first is tried again when something changes; the others
  stand behind it (`_lines`) and come forward one by one as it is placed or goes. A long line costs one attempt.
- A gang that has waited long for room holds back later ones that want the same (`starvation.py`).
- While room is being cleared for a gang, nothing more is cleared for it; the pods that are to come are nominated on
  their nodes, so that nobody of lower rank takes the room meanwhile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from danlu.diagnose import stated
from danlu.embedded.scheduler import gangs, quotareclaim
from danlu.embedded.scheduler.cache import Cache
from danlu.embedded.scheduler.gangs import Attempt, GangRefusal, Placement
from danlu.embedded.scheduler.placement import FoundNode, Placer
from danlu.embedded.scheduler.podinfo import PodInfo, Request
from danlu.embedded.scheduler.policy import Gang, Lane, SchedulingPolicy
from danlu.embedded.scheduler.schedulingqueue import QueuedPod, SchedulingQueue
from danlu.embedded.scheduler.starvation import StarvationGuard
from danlu.meta.kind import Object
from danlu.meta.said import Said, carried

Shape = Hashable
"""What decides whether a gang fits, where that is only amounts and kinds of nodes."""


class Consequences(Protocol):
    """What the scheduler does with a decision."""

    def bind(self, pod: PodInfo, found: FoundNode) -> None: ...
    def tell(self, key: str, pods: Iterable[PodInfo], refusal: GangRefusal) -> None: ...
    def evict(self, by: str, why: str, victims: Sequence[PodInfo]) -> None: ...


class GangScheduling:
    def __init__(self, cache: Cache, queue: SchedulingQueue, placer: Placer, then: Consequences) -> None:
        self._cache = cache
        self._queue = queue
        self._placer = placer
        self._then = then
        self._starvation = StarvationGuard(queue.clock, lambda key: bool(queue.gang(key)))
        self._policies: dict[str, SchedulingPolicy] = {}  # schedulerName → policy
        self._members: dict[str, dict[str, str]] = {}  # gang → uid → role, of those that have a node
        self._gang_of: dict[str, str] = {}  # uid → gang
        self._gangs: dict[str, Gang] = {}  # as last seen, for as long as it has members
        self._clearing: dict[str, set[str]] = {}  # gang → uids of those that make room for it
        self._answers: dict[Shape, GangRefusal] = {}
        self._answers_at = -1
        self._lines: dict[Shape, dict[str, None]] = {}  # gangs that wait, in order; none is empty
        self._stands: dict[str, Shape] = {}  # gang → the one line that it stands in
        self._totals: Request = {}
        self._totals_at = -1

    def use(self, policy: SchedulingPolicy) -> None:
        self._policies.update(dict.fromkeys(policy.names, policy))

    def policy(self, pod: Object) -> SchedulingPolicy | None:
        return self._policies.get((pod.get("spec") or {}).get("schedulerName") or "")

    def info(self, pod: Object) -> PodInfo:
        """The pod with what its policy says of it."""
        info = PodInfo(pod)
        policy = self.policy(pod)
        if policy is not None:
            gang = policy.gang(pod)
            lane = policy.lane(gang.lane)
            info.gang, info.lane, info.role = gang.key, gang.lane, policy.role(pod)
            info.lane_priority = lane.priority if lane is not None else 0
        return info

    def priority(self, info: PodInfo) -> int:
        policy = self.policy(info.pod) if info.gang else None
        return policy.gang(info.pod).priority if policy is not None else 0

    # -- members

    def joins(self, info: PodInfo) -> None:
        policy = self.policy(info.pod)
        if policy is not None and info.gang:
            self._members.setdefault(info.gang, {})[info.uid] = info.role
            self._gang_of[info.uid] = info.gang
            self._gangs[info.gang] = policy.gang(info.pod)

    def leaves(self, uid: str) -> None:
        key = self._gang_of.pop(uid, "")
        members = self._members.get(key)
        if members is not None:
            members.pop(uid, None)
            if not members:
                del self._members[key]
                self._gangs.pop(key, None)

    def members(self, key: str) -> int:
        return len(self._members.get(key, ()))

    def room_made_by(self, uid: str) -> None:
        for key, victims in [*self._clearing.items()]:
            victims.discard(uid)
            if not victims:
                del self._clearing[key]

    def refresh_lane(self, name: str) -> None:
        """Its priority may be another."""
        lane = self._lane(name)
        priority = lane.priority if lane is not None else 0
        for pod, _ in self._cache.pods.values():
            if pod.lane == name:
                pod.lane_priority = priority
        for pod in self._queue.pods_of_lane(name):
            pod.lane_priority = priority

    # -- order of lanes: the priority first, then who has the smaller share of what it has most of

    def lane_order(self, lane: str) -> tuple[float, ...]:
        if not lane:
            return (0.0,)
        known = self._lane(lane)
        return (1.0, -float(known.priority) if known is not None else 0.0, self.share(lane))

    def share(self, lane: str) -> float:
        """The dominant share: the largest part that the lane has of anything."""
        if self._totals_at != self._cache.node_generation:
            self._totals = {}
            for node in self._cache.real.values():
                for name, amount in node.allocatable.items():
                    self._totals[name] = self._totals.get(name, 0) + amount
            self._totals_at = self._cache.node_generation
        used = self._cache.used_by(lane)
        return max((used[name] / total for name, total in self._totals.items() if used.get(name)), default=0.0)

    def _lane(self, name: str) -> Lane | None:
        return next((lane for p in self._policies.values() if (lane := p.lane(name)) is not None), None)

    # -- one decision

    def try_gang(self, entry: QueuedPod, policy: SchedulingPolicy) -> None:
        since = self._queue.cycle
        gang = policy.gang(entry.pod.pod)
        entries = {e.pod.uid: e for e in (entry, *self._queue.take_gang(gang.key))}
        pods = [e.pod for e in entries.values()]
        attempt = Attempt(gang, policy.lane(gang.lane), pods, self._members.get(gang.key, {}))
        for pod in pods:
            gangs.restrict(pod, attempt.lane.node_requirements if attempt.lane is not None else ())
        shape = _shape(attempt)
        objection = policy.objection(entry.pod.pod, bool(attempt.members))
        if objection:
            # Often over in a moment: a pod may be seen before its group.
            answer: Placement | GangRefusal = GangRefusal(objection, frozenset(), passing=True)
            shape = None
        elif held := self._starvation.held_back(attempt):
            self._step_out(gang.key)
            self._give_up_claims(pods)
            self._refuse(gang.key, entries.values(), GangRefusal(held), since, again=True)
            return
        else:
            answer = self._answer(attempt, shape)
        if isinstance(answer, GangRefusal):
            if answer.room:
                self._starvation.waits_for_room(attempt)
                answer = self._clear(attempt, answer)
            else:
                self._give_up_claims(pods)
            self._refuse(gang.key, entries.values(), self._line_up(gang.key, shape, answer), since)
            return
        self._clearing.pop(gang.key, None)
        self._starvation.is_placed(gang.key)
        self._step_out(gang.key)
        for pod, found in answer.placed:
            self.joins(pod)
            self._then.bind(pod, found)
        left = [entries[pod.uid] for pod in answer.left]
        if left:
            have = self.members(gang.key)
            more = stated("DL-GROUP-COULD-USE-MORE", group=gang.name, count=have, why=answer.left_because)
            self._refuse(gang.key, left, GangRefusal(more, answer.wakes, passing=True), since)

    def _refuse(
        self, key: str, entries: Iterable[QueuedPod], refusal: GangRefusal, since: int, *, again: bool = False
    ) -> None:
        """`again`: after a rest it is tried anew, as no event may tell when its turn comes."""
        refused = [*entries]
        for entry in refused:
            self._queue.refused(entry, refusal.wakes, since, errored=again)
        self._then.tell(key, [entry.pod for entry in refused], refusal)

    def _answer(self, attempt: Attempt, shape: Shape | None) -> Placement | GangRefusal:
        """Gangs of one shape that wait in one lane share a refusal for as long as nothing changes."""
        if self._answers_at != self._cache.generation:
            self._answers.clear()
            self._answers_at = self._cache.generation
        known = self._answers.get(shape) if shape is not None else None
        if known is not None:
            return _renamed(known, _names(attempt), MARKS)
        answer = gangs.place(attempt, self._placer)
        if shape is not None and isinstance(answer, GangRefusal) and self._answers_at == self._cache.generation:
            self._answers[shape] = _renamed(answer, MARKS, _names(attempt))
        return answer

    # -- the waiting queue

    def _line_up(self, key: str, shape: Shape | None, refusal: GangRefusal) -> GangRefusal:
        """The refusal as it is for the first in line; for those behind, one that no event ends."""
        if shape is None or refusal.passing or key in self._clearing:
            self._step_out(key)
            return refusal
        if self._stands.get(key) != shape:
            self._step_out(key)
            self._lines.setdefault(shape, {})[key] = None
            self._stands[key] = shape
        if next(iter(self._lines[shape])) == key:
            return refusal
        return GangRefusal(refusal.message, frozenset(), refusal.room)

    def _step_out(self, key: str) -> None:
        """If it was the first, the next that is still there comes forward."""
        shape = self._stands.pop(key, None)
        if shape is None:
            return
        line = self._lines[shape]
        was_first = next(iter(line)) == key
        del line[key]
        while was_first and line:
            first = next(iter(line))
            if self._queue.gang(first):
                self._queue.wake_gang(first)
                break
            del line[first], self._stands[first]
        if not line:
            del self._lines[shape]

    def something_happened(self) -> None:
        """To be called before the queue is woken: whoever stood first may have been deleted meanwhile."""
        for line in [*self._lines.values()]:
            if not self._queue.gang(next(iter(line))):
                self._step_out(next(iter(line)))

    # -- clearing room

    def _clear(self, attempt: Attempt, refusal: GangRefusal) -> GangRefusal:
        key = attempt.gang.key
        waited_for = self._clearing.get(key)
        if waited_for:
            return _ends_first(refusal, len(waited_for), "lower queues")
        self._give_up_claims(attempt.pods)
        going = set[str]().union(*self._clearing.values())
        found = quotareclaim.plan(attempt, self._placer, self._lane, lambda key: self._surplus(key, going), going)
        if found is None:
            return refusal
        for pod in attempt.pods:
            if pod.uid in found.nodes:
                pod.nominated = found.nodes[pod.uid]
                self._cache.nominate(pod, pod.nominated)
        if not found.victims:
            return refusal  # pods that are ending already will do
        self._clearing[key] = {victim.uid for victim in found.victims}
        subject = f"group {attempt.gang.name}" if attempt.gang.name else f"pod {attempt.pods[0].name}"
        priority = attempt.lane.priority if attempt.lane is not None else 0
        by = (attempt.pods[0].pod.get("spec") or {}).get("schedulerName") or ""
        why = stated("DL-NEEDS-ROOM", subject=subject, queue=attempt.gang.lane, priority=priority)
        self._then.evict(by, why, found.victims)
        lanes = ", ".join(sorted({victim.lane for victim in found.victims}))
        return _ends_first(refusal, len(found.victims), f"queue {lanes}")

    def _give_up_claims(self, pods: Iterable[PodInfo]) -> None:
        for pod in pods:
            pod.nominated = ""
            if self._cache.nominated:
                self._cache.clear_nomination(pod.uid)

    def _surplus(self, key: str, going: set[str]) -> tuple[int, int]:
        gang = self._gangs.get(key)
        if gang is None or gang.roles:
            return 0, gang.priority if gang is not None else 0
        staying = sum(1 for uid in self._members.get(key, ()) if uid not in going)
        return max(staying - gang.min_member, 0), gang.priority


# Stand for the names of the gang and of its pods in an answer that is shared.
MARKS = ("\0group", "\0pod")


def _names(attempt: Attempt) -> tuple[str, str]:
    """Pods of a shape are all alike, so any of them may be the one that is named: the last by age."""
    return attempt.gang.name, max(attempt.pods, key=lambda pod: (pod.created, pod.name)).name


def _renamed(refusal: GangRefusal, to: tuple[str, str], from_: tuple[str, str]) -> GangRefusal:
    def text(value: str) -> str:
        return value.replace(f"group {from_[0]}", f"group {to[0]}").replace(from_[1], to[1])

    def params(given: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, dict):
                found[name] = {**value, "params": params(value.get("params") or {})}
            else:
                found[name] = to[0] if name == "group" else text(value) if isinstance(value, str) else value
        return found

    causes = [{**cause, "params": params(cause.get("params") or {})} for cause in carried(refusal.message)]
    return GangRefusal(Said(text(refusal.message), causes), refusal.wakes, refusal.room, refusal.passing)


def _ends_first(refusal: GangRefusal, count: int, queues: str) -> GangRefusal:
    """The refusal, and how many pods of others have to go before there is room."""
    victims = stated("DL-GROUP-VICTIMS", count=count, pods=f"{count} pod{'s' if count > 1 else ''} of {queues}")
    causes = carried(refusal.message)
    if causes:
        causes[0] = {**causes[0], "params": {**(causes[0].get("params") or {}), "victims": victims.causes[0]}}
    return GangRefusal(Said(f"{refusal.message} {victims}", causes), refusal.wakes)


def _shape(attempt: Attempt) -> Shape | None:
    """Equal shapes are refused alike; None where more than amounts and nodes decides, or members already run."""
    gang = attempt.gang
    if attempt.members or not gang.name or gang.roles:
        return None
    first = attempt.pods[0]
    for pod in attempt.pods:
        if pod.has_affinity or pod.spread or pod.claims or pod.ports or pod.nominated:
            return None
        if pod.request != first.request or pod.priority != first.priority:
            return None
        if pod.tolerations != first.tolerations or pod.node_selector != first.node_selector:
            return None
        if pod.node_affinity != first.node_affinity:
            return None
    where = repr((first.tolerations, first.node_selector, first.node_affinity))
    size = gang.min_member, len(attempt.pods), tuple(sorted(first.request.items()))
    return gang.lane, gang.priority, first.priority, size, where
