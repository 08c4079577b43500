from __future__ import annotations

from danlu.embedded.scheduler.podinfo import PodInfo
from danlu.embedded.scheduler.preemption import PreemptionPlan
from danlu.embedded.scheduler.schedulingqueue import SchedulingQueue

from .worlds import World, node, pod


def test_the_least_important_victims_on_the_cheapest_node() -> None:
    world = World(node("a", cpu="2"), node("b", cpu="2"))
    world.put(pod("a1", requests={"cpu": "1"}, priority=5), "a")
    world.put(pod("a2", requests={"cpu": "1"}, priority=7), "a")
    world.put(pod("b1", requests={"cpu": "2"}, priority=6), "b")
    found = world.preempt(pod("p", requests={"cpu": "1"}, priority=10))
    assert isinstance(found, PreemptionPlan)
    assert (found.node, [victim.name for victim in found.victims]) == ("a", ["a1"])


def test_never_preempts() -> None:
    world = World(node("a", cpu="1"))
    world.put(pod("low", requests={"cpu": "1"}), "a")
    asked = pod("p", requests={"cpu": "1"}, priority=10, preemptionPolicy="Never")
    assert world.refused(asked) == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )


def test_room_that_was_made_is_kept_for_the_preemptor() -> None:
    world = World(node("a", cpu="1"))
    chosen = pod("high", requests={"cpu": "1"}, priority=10)
    world.cache.nominate(PodInfo(chosen), "a")
    assert world.place(pod("low", requests={"cpu": "1"})) == "0/1 nodes are available: 1 Insufficient cpu."
    assert world.place(chosen) == "a"


def test_the_queue() -> None:
    now = [100.0]
    queue = SchedulingQueue(lambda: now[0])
    for name, priority in (("low", 0), ("high", 5), ("low2", 0)):
        queue.add(PodInfo(pod(name, priority=priority)))
    popped = [queue.pop() for _ in range(3)]
    assert [entry.pod.name for entry in popped if entry] == ["high", "low", "low2"]
    assert queue.pop() is None
    first = popped[0]
    assert first is not None
    queue.refused(first, {"node changed"}, queue.cycle)
    assert not queue.wake("pod gone")
    assert queue.pop() is None
    assert queue.wake("node changed")
    again = queue.pop()  # nothing else to do: its rest is cut short
    assert again is first
    since = queue.cycle
    queue.wake("node changed")  # while it is being tried
    queue.refused(first, {"node changed"}, since)
    assert queue.pop() is first
    queue.refused(first, {"node changed"}, queue.cycle, errored=True)
    assert queue.pop() is None
    now[0] += 10
    assert queue.pop() is first
    queue.remove(first.pod.uid)
    assert first.pod.uid not in queue
