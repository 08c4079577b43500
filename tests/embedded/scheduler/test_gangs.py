"""Gangs and lanes, decided without an API server and on a clock of their own."""

from __future__ import annotations

import random
import time

import pytest

from danlu.embedded.scheduler import shortage
from danlu.embedded.scheduler.starvation import STARVATION_S

from .gangworlds import GPU, Gang, GangWorld, Lane, check, gpu_nodes
from .worlds import node


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    world = GangWorld(gpu_nodes(2, 1), [Gang("d/train", "train", 4)])
    world.add("train", "w0", "w1", "w2")
    world.run()
    assert not world.placed
    assert world.said["w0"] == "group train waits for its pods: 3 of at least 4 exist; all of them are placed at once"
    world.add("train", "w3")
    world.run()
    assert not world.cache.pods
    assert world.said["w2"] == (
        "0/2 nodes are available for all 4 pods of group train, and never will be as they are: "
        "4 nvidia.com/gpu asked at once, 3 exist."
    )
    world.add_node(node("n2", extended={GPU: "1"}))
    world.run()
    assert sorted(world.placed) == ["w0", "w1", "w2", "w3"]
    assert not world.said


def test_a_gang_waits_for_room_and_says_what_is_short() -> None:
    world = GangWorld(gpu_nodes(4), [Gang("d/a", "a", 3), Gang("d/b", "b", 2)])
    world.add("a", "a0", "a1", "a2")
    world.add("b", "b0", "b1")
    world.run()
    assert world.placed == ["a0", "a1", "a2"]
    assert world.said["b0"] == (
        "0/1 nodes are available for all 2 pods of group b: 2 nvidia.com/gpu asked at once, 1 free."
    )
    world.gone("a0")
    world.run()
    assert world.placed[3:] == ["b0", "b1"]


def test_pieces_that_do_not_fit_name_the_pod_and_what_is_short() -> None:
    world = GangWorld(gpu_nodes(3, 3), [Gang("d/a", "a", 2), Gang("d/b", "b", 1)])
    world.add("b", "b0", gpus=2)
    world.run()
    world.add("a", "a0", "a1", gpus=2)
    world.run()
    assert "a1" not in world.placed
    assert world.said["a0"] == (
        "0/2 nodes are available for all 2 pods of group a: 1 fit, a1 does not: 2 Insufficient nvidia.com/gpu."
    )


def test_a_pod_larger_than_any_node_never_fits() -> None:
    world = GangWorld(gpu_nodes(4, 4), [Gang("d/a", "a", 1)])
    world.add("a", "a0", gpus=8)
    world.run()
    assert world.said["a0"] == (
        "0/2 nodes are available for all 1 pods of group a, and never will be as they are: "
        "a0 asks for 8 nvidia.com/gpu, no node has more than 4."
    )


def test_two_half_fitting_gangs_do_not_block_each_other() -> None:
    world = GangWorld(gpu_nodes(2, 2), [Gang("d/a", "a", 3), Gang("d/b", "b", 3)])
    for i in range(3):  # their pods arrive in turns
        world.add("a", f"a{i}")
        world.run()
        world.add("b", f"b{i}")
        world.run()
    assert sorted(world.placed) == ["a0", "a1", "a2"]
    world.gone("a0", "a1", "a2")
    world.run()
    assert sorted(world.placed[3:]) == ["b0", "b1", "b2"]


def test_an_elastic_gang_starts_with_its_minimum_and_grows() -> None:
    world = GangWorld(gpu_nodes(2), [Gang("d/e", "e", 2), Gang("d/f", "f", 1)])
    world.add("e", "e0", "e1", "e2", "e3")
    world.run()
    assert world.placed == ["e0", "e1"]
    assert world.said["e3"] == "group e runs with 2 pods and could use more: 1 Insufficient nvidia.com/gpu"
    world.add_node(node("n1", extended={GPU: "1"}))
    world.run()
    assert world.placed == ["e0", "e1", "e2"]


def test_a_member_that_died_rejoins_alone_and_a_gang_that_is_gone_does_not() -> None:
    world = GangWorld(gpu_nodes(4), [Gang("d/a", "a", 3), Gang("d/b", "b", 2)])
    world.add("a", "a0", "a1", "a2")
    world.run()
    world.gone("a1")
    world.add("b", "b0", "b1")
    world.run()
    assert world.placed[3:] == ["b0", "b1"]  # the room was free
    world.add("a", "a1")
    world.run()
    assert world.said["a1"] == (
        "0/1 nodes are available for 1 more pod of group a: a1 does not fit: 1 Insufficient nvidia.com/gpu."
    )
    world.gone("b0")
    world.run()
    assert world.on_node("a1")
    world.gone("a0", "a1", "a2")
    world.add("a", "a0")
    world.run()
    assert not world.on_node("a0")  # begins anew: all or none


def test_roles_have_minima_of_their_own() -> None:
    gang = Gang("d/a", "a", 3, roles={"master": 1, "worker": 1})
    world = GangWorld(gpu_nodes(3), [gang])
    world.add("a", "w0", "w1", "w2", role="worker")
    world.run()
    assert world.said["w0"] == (
        "group a waits for its pods: 0 of at least 1 with role master exist; all of them are placed at once"
    )
    world.add("a", "m0", role="master")
    world.run()
    assert "m0" in world.placed
    assert len(world.placed) == 3


def test_quota_makes_a_gang_wait_and_says_so() -> None:
    lanes = {"small": Lane(quota={GPU: 4})}
    gangs = [Gang("d/a", "a", 3, "small"), Gang("d/b", "b", 2, "small"), Gang("d/c", "c", 5, "small")]
    world = GangWorld(gpu_nodes(8), gangs, lanes)
    world.add("a", "a0", "a1", "a2")
    world.add("b", "b0", "b1")
    world.add("c", *(f"c{i}" for i in range(5)))
    world.run()
    assert world.placed == ["a0", "a1", "a2"]
    assert world.said["b0"] == ("group b waits for quota of queue small: 2 nvidia.com/gpu asked at once, 1 of 4 left")
    assert world.said["c0"] == (
        "group c can never run in queue small: 5 nvidia.com/gpu asked at once, the queue's quota is 4"
    )
    world.gone("a0")
    world.run()
    assert world.placed[3:] == ["b0", "b1"]


def test_an_elastic_gang_stops_growing_at_the_quota() -> None:
    world = GangWorld(gpu_nodes(8), [Gang("d/e", "e", 1, "small")], {"small": Lane(quota={GPU: 2})})
    world.add("e", "e0", "e1", "e2")
    world.run()
    assert world.placed == ["e0", "e1"]
    assert world.said["e2"] == (
        "group e runs with 2 pods and could use more: "
        "queue small has 0 of its quota of 2 nvidia.com/gpu left, e2 asks for 1"
    )


def test_the_lane_of_higher_priority_is_first_then_the_smaller_share_then_the_gangs_own_priority() -> None:
    lanes = {"prod": Lane(50), "dev": Lane(0), "test": Lane(0)}
    gangs = [
        Gang("d/dev", "dev", 1, "dev"), Gang("d/dev2", "dev2", 1, "dev"), Gang("d/urgent", "urgent", 1, "dev", 90),
        Gang("d/test", "test", 1, "test"), Gang("d/prod", "prod", 1, "prod"),
    ]  # fmt: skip
    world = GangWorld(gpu_nodes(8), gangs, lanes)
    for name in ("dev", "dev2", "urgent", "test", "prod"):
        world.add(name, f"{name}-0")
    world.run()
    assert world.placed == ["prod-0", "urgent-0", "test-0", "dev-0", "dev2-0"]


def test_a_closed_lane_takes_nothing_new_but_mends_what_runs() -> None:
    world = GangWorld(gpu_nodes(8), [Gang("d/a", "a", 2, "x"), Gang("d/b", "b", 1, "x")], {"x": Lane()})
    world.add("a", "a0", "a1")
    world.run()
    world.rules.closed.add("x")
    world.gone("a1")
    world.add("a", "a1")
    world.add("b", "b0")
    world.run()
    assert world.on_node("a1")
    assert world.said == {"b0": "queue x is closed"}
    world.rules.closed.clear()
    world.queue.wake_lane("x")
    world.run()
    assert world.on_node("b0")


def test_a_lane_uses_its_own_nodes() -> None:
    requirement = {"key": "pool", "operator": "In", "values": ["gold"]}
    nodes = [*gpu_nodes(8), node("gold", extended={GPU: "2"}, labels={"pool": "gold"})]
    world = GangWorld(nodes, [Gang("d/a", "a", 2, "gold")], {"gold": Lane(node_requirements=(requirement,))})
    world.add("a", "a0", "a1")
    world.run()
    assert (world.on_node("a0"), world.on_node("a1")) == ("gold", "gold")


# -- preemption between lanes

LANES = {"prod": Lane(80), "mid": Lane(40, preemptible=False), "dev": Lane(10)}


def test_room_is_taken_back_from_lower_preemptible_lanes_only() -> None:
    lanes = {"p": "prod", "m": "mid", "v": "dev", "u": "dev"}
    gangs = [Gang(f"d/{name}", name, 2, lane) for name, lane in lanes.items()]
    world = GangWorld(gpu_nodes(6), gangs, LANES)
    for name in ("m", "v", "u"):
        world.add(name, f"{name}0", f"{name}1")
        world.run()
    world.add("p", "p0", "p1")
    world.run()
    assert sorted(world.victims) == ["u0", "u1"]  # the younger of the two, and all of it
    assert world.evictions == ["group p of queue prod (priority 80) needs the room"]
    assert world.said["p0"] == (
        "0/1 nodes are available for all 2 pods of group p: 2 nvidia.com/gpu asked at once, 0 free. "
        "2 pods of queue dev must end first."
    )
    world.gone("u0")
    world.run()
    assert not world.on_node("p0")
    assert len(world.victims) == 2  # nothing more is cleared meanwhile
    world.add("u", "u0")  # remade by its job, and the room is not for it
    world.gone("u1")
    world.add("u", "u1")
    world.run()
    assert world.on_node("p0")
    assert world.on_node("p1")
    assert not world.on_node("u0")
    assert world.on_node("m0")


def test_two_gangs_clear_room_for_themselves_and_not_the_same_room_twice() -> None:
    gangs = [Gang(f"d/{name}", name, 2, "prod" if name in "pq" else "dev") for name in "pquvw"]
    world = GangWorld(gpu_nodes(6), gangs, LANES)
    for name in "uvw":
        world.add(name, f"{name}0", f"{name}1")
        world.run()
    world.add("p", "p0", "p1")
    world.add("q", "q0", "q1")
    world.run()
    assert sorted(world.victims) == ["v0", "v1", "w0", "w1"]
    world.gone("v0", "v1", "w0", "w1")
    world.run()
    assert all(world.on_node(name) for name in ("p0", "p1", "q0", "q1", "u0"))


def test_what_an_elastic_gang_can_spare_goes_first() -> None:
    world = GangWorld(gpu_nodes(4), [Gang("d/p", "p", 1, "prod"), Gang("d/e", "e", 2, "dev")], LANES)
    world.add("e", "e0", "e1", "e2", "e3")
    world.run()
    world.add("p", "p0")
    world.run()
    assert world.victims == ["e3"]


def test_nobody_is_evicted_in_vain() -> None:
    gangs = [Gang("d/p", "p", 3, "prod"), Gang("d/m", "m", 2, "mid"), Gang("d/v", "v", 2, "dev")]
    world = GangWorld(gpu_nodes(4), gangs, LANES)
    for name in ("m", "v"):
        world.add(name, f"{name}0", f"{name}1")
    world.run()
    world.add("p", "p0", "p1", "p2")
    world.run()
    assert not world.victims
    assert world.on_node("v0")


def test_lower_lanes_preempt_nobody() -> None:
    world = GangWorld(gpu_nodes(2), [Gang("d/p", "p", 2, "prod"), Gang("d/v", "v", 1, "dev")], LANES)
    world.add("p", "p0", "p1")
    world.run()
    world.add("v", "v0")
    world.run()
    assert not world.victims


# -- starvation


def test_a_large_gang_is_not_passed_by_small_ones_for_ever() -> None:
    smalls = [Gang(f"d/s{i}", f"s{i}", 1) for i in range(9)]
    world = GangWorld(gpu_nodes(2, 2), [Gang("d/big", "big", 4), *smalls])
    for i in range(3):
        world.add(f"s{i}", f"s{i}")
    world.run()
    world.add("big", "b0", "b1", "b2", "b3")
    world.run()
    world.add("s3", "s3")
    world.run()
    assert world.on_node("s3"), "what does not fit holds up nobody"
    world.now += STARVATION_S + 60
    world.add("s4", "s4")
    world.gone("s0")
    world.run()
    assert not world.on_node("s4")
    assert world.said["s4"] == f"group big of queue default has waited 6 min for room ({GPU}) and comes first"
    for name in ("s1", "s2", "s3"):
        world.gone(name)
        world.run()
    assert all(world.on_node(f"b{i}") for i in range(4))
    world.gone("b0", "b1", "b2", "b3")
    world.now += 15
    world.run()
    assert world.on_node("s4")


def test_who_is_not_held_back_by_a_large_gang() -> None:
    gangs = [Gang("d/big", "big", 4, "mid"), Gang("d/p", "p", 1, "prod"), Gang("d/c", "c", 1, "dev")]
    gangs += [Gang("d/m", "m", 2, "dev"), Gang("d/late", "late", 1, "dev")]
    world = GangWorld(gpu_nodes(4), gangs, {**LANES, "mid": Lane(20, preemptible=False), "dev": Lane(0, False)})
    world.add("m", "m0", "m1")
    world.run()
    world.add("big", "b0", "b1", "b2", "b3")
    world.run()
    world.now += STARVATION_S + 1
    world.add("p", "p0")  # a lane that ranks higher
    world.add("c", "c0", gpus=0)  # wants no GPU
    world.gone("m1")
    world.add("m", "m1")  # mends a gang that runs
    world.add("late", "l0")
    world.run()
    assert all(world.on_node(name) for name in ("p0", "c0", "m1"))
    assert not world.on_node("l0")
    world.now += STARVATION_S  # now the others' turn: the room could be taken for longer than anybody knows
    world.run()
    assert world.on_node("l0")


# -- properties


@pytest.mark.parametrize("seed", [*range(10), 67, 75])
def test_whatever_happens_no_gang_is_ever_half_placed(seed: int) -> None:
    rng = random.Random(seed)
    lanes = {"a": Lane(50, quota={GPU: 10}), "b": Lane(10), "c": Lane(10, preemptible=False, quota={GPU: 6})}
    sizes = {f"g{i}": rng.randint(1, 5) for i in range(30)}
    gangs = [
        Gang(f"d/{name}", name, max(1, size - rng.randint(0, 2)), rng.choice("abc"), rng.randint(0, 3))
        for name, size in sizes.items()
    ]
    least = {gang.key: gang.min_member for gang in gangs}
    world = GangWorld(gpu_nodes(4, 4, 3, 1), gangs, lanes)
    waiting = [(gang.name, f"{gang.name}-{i}") for gang in gangs for i in range(sizes[gang.name])]
    rng.shuffle(waiting)
    for _ in range(2000):
        if not waiting and not len(world.queue):
            break
        for _ in range(min(rng.randint(1, 6), len(waiting))):
            gang, name = waiting.pop()
            world.add(gang, name)
        world.run()
        check(world, lambda key: least[key])
        leaving = {info.name: info.gang for info, _ in world.cache.pods.values() if info.deleting}
        world.gone(*leaving)
        for name, key in leaving.items():
            world.add(key.removeprefix("d/"), name)  # its job makes it again
        whole = sorted({info.gang for info, _ in world.cache.pods.values()})
        if whole and (not waiting or rng.random() < 0.4):
            ended = rng.choice(whole)
            names = [name for name, made in world.pods.items() if world.rules.gang(made).key == ended]
            world.gone(*names)
            waiting = [(gang, name) for gang, name in waiting if f"d/{gang}" != ended]
        world.run()
        world.now += rng.random() * 5
        never = [name for name, words in world.said.items() if "never" in words]
        world.gone(*(name for name in never if name in world.pods))
        for name in never:
            world.said.pop(name, None)
    assert not len(world.queue), world.said  # each gang had its turn, or was told that it never will


def test_two_hundred_gangs_of_four_are_decided_quickly() -> None:
    gangs = [Gang(f"d/g{i}", f"g{i}", 4) for i in range(200)]
    world = GangWorld(gpu_nodes(*[8] * 10), gangs)
    began = time.perf_counter()
    for gang in gangs:
        world.add(gang.name, *(f"{gang.name}-{i}" for i in range(4)))
    world.run()
    ended = 0
    while len(world.queue) or world.cache.pods:
        running = sorted({info.gang for info, _ in world.cache.pods.values()})
        assert running
        for key in running:
            names = [info.name for info, _ in world.cache.pods.values() if info.gang == key]
            for name in names:
                world.gone(name)
                world.run()
            ended += 1
    took = time.perf_counter() - began
    print(f"{ended} gangs in {took:.2f} s, {4 * ended / took:.0f} pods/s")
    assert ended == 200


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [("cpu", 1500, "1500m cpu"), ("cpu", 2000, "2 cpu"), ("memory", 2**32, "4Gi memory"), (GPU, 8, f"8 {GPU}")],
)
def test_amounts_read_as_people_write_them(name: str, number: int, words: str) -> None:
    assert shortage.amount(name, number) == words
