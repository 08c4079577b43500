"""From a container of a pod to the spec of its process, and what the node refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.node import machine
from danlu.embedded.node.imagesource import Image
from danlu.embedded.node.pods import launch, podadmission
from danlu.embedded.node.pods.resolvconf import resolver_file
from danlu.embedded.node.pressure import eviction
from danlu.embedded.node.pressure.evictionmanager import EvictionManager
from danlu.embedded.node.sandbox.box import Capabilities
from danlu.embedded.node.settings import NodeSettings
from danlu.meta import resourcesums
from danlu.meta.kind import Object


def image(**more: Any) -> Image:
    return Image("i", "i@sha256:0", **more)


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({}, ["entry", "cmd"]),
        ({"args": ["a"]}, ["entry", "a"]),
        ({"command": ["c"]}, ["c"]),
        ({"command": ["c"], "args": ["$(X)", "$(Y)"]}, ["c", "1", "$(Y)"]),
    ],
)
def test_command_line(container: Object, expected: list[str]) -> None:
    known = image(entrypoint=("entry",), cmd=("cmd",))
    assert launch.command_line(container, known, {"X": "1"}) == expected


def test_no_command_says_what_to_do() -> None:
    with pytest.raises(launch.CreateError, match=r"no command specified: .* /data/images.yaml"):
        launch.command_line({"args": ["a"]}, image(known=False, remedy="describe it in /data/images.yaml"), {})


def in_namespace(**spec: Any) -> Object:
    return {"metadata": {"namespace": "ns"}, "spec": spec}


CLUSTER = "search ns.svc.cluster.local svc.cluster.local cluster.local lan\nnameserver 127.98.0.1\noptions ndots:5\n"
OWN = {"nameservers": ["9.9.9.9"], "searches": ["x.y"], "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, CLUSTER),
        ({"dnsPolicy": "ClusterFirst"}, CLUSTER),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, CLUSTER),
        ({"hostNetwork": True}, "search lan\nnameserver 1.1.1.1\noptions rotate\n"),
        ({"dnsPolicy": "Default"}, "search lan\nnameserver 1.1.1.1\noptions rotate\n"),
        ({"dnsPolicy": "None", "dnsConfig": OWN}, "search x.y\nnameserver 9.9.9.9\noptions ndots:2 edns0\n"),
        (
            {"dnsConfig": OWN},
            "search ns.svc.cluster.local svc.cluster.local cluster.local lan x.y\n"
            "nameserver 127.98.0.1\nnameserver 9.9.9.9\noptions ndots:2 edns0\n",
        ),
    ],
)
def test_resolver_file(tmp_path: Path, spec: Object, expected: str) -> None:
    machine = tmp_path / "resolv.conf"
    machine.write_text("# mine\nnameserver 1.1.1.1\nsearch lan\noptions rotate\n")
    assert resolver_file(in_namespace(**spec), "127.98.0.1", machine) == expected


def test_resolver_file_is_bounded_and_does_without_a_server(tmp_path: Path) -> None:
    machine = tmp_path / "resolv.conf"
    machine.write_text("".join(f"nameserver 1.1.1.{n}\n" for n in range(9)))
    assert resolver_file(in_namespace(), "", machine) == "".join(f"nameserver 1.1.1.{n}\n" for n in range(3))
    many = {"searches": [f"{'x' * 60}.s{n}" for n in range(40)]}
    first = resolver_file(in_namespace(dnsConfig=many), "127.98.0.1", machine).splitlines()[0]
    assert first.startswith("search ns.svc.cluster.local ")
    assert len(first.split()) <= 33
    assert len(first) <= len("search ") + 2048


@pytest.mark.parametrize(("user", "problem"), [(0, "breaks non-root policy"), (None, "image will run as root")])
def test_root_is_refused_where_it_is_not_wanted(user: int | None, problem: str) -> None:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"securityContext": {"runAsNonRoot": True}}}
    container = {"name": "c", "securityContext": {"runAsUser": user}}
    with pytest.raises(launch.CreateError, match=problem):
        launch._refuse_root(pod, container, launch.security_context(pod, container))


@pytest.mark.parametrize(
    ("spec", "security", "missing"),
    [
        ({}, {}, set()),
        ({"hostPID": True}, {}, {"own_pids"}),
        ({"hostIPC": True}, {}, {"own_ipc"}),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {}, {"default_seccomp"}),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
         {"seccompProfile": {"type": "RuntimeDefault"}}, set()),
        ({}, {"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}, set()),
        ({}, {"privileged": True}, {"default_seccomp", "device_cgroups"}),
    ],
)  # fmt: skip
def test_what_a_container_does_not_share(spec: Object, security: Object, missing: set[str]) -> None:
    can = Capabilities("root", "", "yes", "yes", "yes", "/cgroup")
    containers = SimpleNamespace(spawner=SimpleNamespace(capabilities=can), running_in=lambda uid: [])
    context: Any = SimpleNamespace(containers=containers)
    found = launch.separation({"metadata": {"uid": "u"}, "spec": spec}, {"securityContext": security}, context)
    everything = {"own_pids": True, "own_ipc": True, "default_seccomp": True, "device_cgroups": "/cgroup"}
    assert {key: value for key, value in found.items() if value} == {
        key: value for key, value in everything.items() if key not in missing
    }


def pod(cpu: str = "1", **spec: Any) -> Object:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


NODE: Object = {"metadata": {"labels": {"a": "b"}}, "status": {"allocatable": {"cpu": "2", "pods": "3"}}}


@pytest.mark.parametrize(
    ("made", "others", "pressures", "reason"),
    [
        (pod(), [pod()], set(), None),
        (pod("1500m"), [pod()], set(), "OutOfcpu"),
        (pod("0"), [pod("0")] * 3, set(), "OutOfpods"),
        (pod(nodeSelector={"a": "b"}), [], set(), None),
        (pod(nodeSelector={"a": "c"}), [], set(), "NodeAffinity"),
        (pod(), [], {"DiskPressure"}, "Evicted"),
        (pod(), [], {"MemoryPressure"}, None),
        (pod(priority=2_000_000_000), [], {"DiskPressure"}, None),
    ],
)
def test_what_a_node_refuses(made: Object, others: list[Object], pressures: set[str], reason: str | None) -> None:
    found = podadmission.refusal(made, NODE, [resourcesums.pod_requests(other) for other in others], pressures)
    assert (found[0] if found else None) == reason


def test_shortages() -> None:
    settings = NodeSettings(evict_memory_below=100, evict_disk_below=0.1, evict_inodes_below=0.05)

    def names(memory: int, free: int, inodes_free: int) -> list[str]:
        found = eviction.shortages(settings, memory, machine.Disk(1000, free, 100, inodes_free))
        return [shortage.resource for shortage in found]

    assert names(100, 100, 50) == []
    assert names(99, 100, 50) == ["memory"]
    assert names(100, 99, 50) == ["ephemeral-storage"]
    assert names(100, 100, 4) == ["inodes"]


def test_a_large_disk_is_not_short_of_space_for_its_size() -> None:
    found = eviction.shortages(NodeSettings(), 1 << 40, machine.Disk(1 << 40, 5 << 30, 0, 0))
    assert found == []


def worker(uid: str, asked: str = "0", priority: int = 0) -> Any:
    container = {"name": "c", "resources": {"requests": {"memory": asked}}}
    return SimpleNamespace(uid=uid, pod={"spec": {"containers": [container], "priority": priority}})


@pytest.mark.parametrize(
    ("workers", "used", "victim"),
    [
        ([worker("a"), worker("b")], {"a": 1, "b": 2}, "b"),
        ([worker("a", "1k"), worker("b")], {"a": 999, "b": 2}, "b"),
        ([worker("a", priority=5), worker("b")], {"a": 9, "b": 2}, "b"),
        ([worker("a", priority=2_000_000_000)], {"a": 9}, None),
    ],
)
def test_who_is_evicted(workers: list[Any], used: dict[str, int], victim: str | None) -> None:
    chosen = eviction.choose(workers, used, "memory")
    assert (chosen.uid if chosen else None) == victim


def test_nobody_is_evicted_who_holds_nothing() -> None:
    """Somebody else filled the disk: to end innocent pods one after the other would free nothing."""
    idle, holds = worker("idle"), worker("holds")
    used = {"idle": 40 << 10, "holds": 2 << 20}
    assert eviction.choose([idle, holds], used, "ephemeral-storage") is holds
    assert eviction.choose([idle], used, "ephemeral-storage") is None


async def test_one_victim_at_a_time_and_what_it_held_is_gone_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greedy pod takes a while to end; until its files are gone the other is as good as it was."""
    evicted: list[str] = []
    workers = {}
    for uid, size in (("greedy", 4 << 20), ("modest", 2 << 20)):
        held = tmp_path / "pods" / uid / "volumes" / "v"
        held.mkdir(parents=True)
        (held / "file").write_bytes(b"x" * size)
        workers[uid] = ending_worker(uid, evicted, tmp_path)
    # Short of disk as long as the greedy one's files are there.
    short = [eviction.Shortage(eviction.DISK_PRESSURE, "ephemeral-storage", "1", "0Ki")]
    monkeypatch.setattr(eviction, "shortages", lambda *_: short if (tmp_path / "pods/greedy/volumes").exists() else [])
    registration = SimpleNamespace(set_pressures=nothing, pressures=set())
    pods = SimpleNamespace(workers=workers, ended=set)
    images = SimpleNamespace(remove_unused=lambda: None)
    manager = EvictionManager(tmp_path, NodeSettings(), pods, registration, images, lambda: "")  # type: ignore[arg-type]
    await manager.check()
    assert evicted == ["greedy"]
    assert not (tmp_path / "pods/greedy/volumes").exists()
    await manager.check()
    assert evicted == ["greedy"]
    assert (tmp_path / "pods/modest/volumes/v/file").exists()


async def nothing(*_: Any) -> None:
    return


def ending_worker(uid: str, evicted: list[str], data_dir: Path) -> Any:
    made = worker(uid)
    made.pod["metadata"] = {"uid": uid}
    container = SimpleNamespace(pid=0, ended=asyncio.Event())
    made.running, made.volumes = [container], None
    recorder = SimpleNamespace(event=lambda *_: None)
    made.context = SimpleNamespace(recorder=recorder, pod_folder=lambda uid: data_dir / "pods" / uid)

    def end(_reason: str, _message: str, _grace_s: float) -> None:
        evicted.append(uid)
        asyncio.get_running_loop().call_later(0.3, container.ended.set)

    made.end = end
    return made
