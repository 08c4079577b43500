"""A full disk: nothing acknowledged is lost, deletes work, and when there is room again so does all else, by itself."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import Danlu

from danlu.client.client import Client
from danlu.embedded import private_files
from danlu.embedded.cluster import Cluster
from danlu.embedded.node import machine
from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pods import launch
from danlu.embedded.node.pressure import diskreclaim
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.node.volumes import atomicfiles
from danlu.embedded.settings import ClusterSettings, SpaceSettings
from danlu.embedded.storage import Space, SqliteJournal, Store, space
from danlu.environments.catalogue import Catalogue
from danlu.errors import InsufficientStorage
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, NAMESPACE, SECRET

MIB = 1 << 20
EXCEEDED = "etcdserver: mvcc: database space exceeded"
DiskMaker = Callable[[int], Path]


# -- a disk of one's own


class Disk:
    """A small file system, which `fill` leaves without a single block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, but: int = 0) -> None:
        with open(self.path / "filler", "ab", buffering=0) as file:
            for size in (MIB, 4096, 1):
                with contextlib.suppress(OSError):  # full
                    while machine.disk(self.path).free > but + (size if but else 0):
                        file.write(b"x" * size)

    def free(self) -> None:
        (self.path / "filler").unlink(missing_ok=True)


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    if request.param == "tmpfs":
        mount = ["mount", "-t", "tmpfs", "-o", "size=96m,mode=700", "tmpfs", str(place)]
    else:
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(96 * MIB)
        if shutil.which("mkfs.ext4") is None or subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)]).returncode:
            pytest.skip("no mkfs.ext4 to make a small file system with")
        mount = ["mount", "-o", "loop", str(image), str(place)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        place.chmod(0o700)
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


# -- a disk that is full at every write of a scenario


def config_map(name: str, size: int = 10, **meta: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default", **meta}, "data": {"x": "y" * size}}


Step = Callable[[Client], Awaitable[Any]]


def scenario() -> list[tuple[str, Step]]:
    """(what it is, the step): `make` may be refused while the disk is full; `end` must never be."""
    return [
        ("make", lambda c: c.create(CONFIG_MAP, config_map("a", 20_000))),
        ("make", lambda c: c.create(CONFIG_MAP, config_map("b", 20_000, finalizers=["example.com/kept"]))),
        (
            "make",
            lambda c: c.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"k": "v"}}),
        ),
        ("end", lambda c: c.patch(CONFIG_MAP, "a", "default", {"data": {"x": "smaller"}})),
        ("make", lambda c: c.patch(CONFIG_MAP, "a", "default", {"data": {"more": "z" * 50_000}})),
        ("make", lambda c: c.create(NAMESPACE, {"metadata": {"name": "lab"}})),
        ("end", lambda c: c.delete(CONFIG_MAP, "b", "default")),
        ("end", lambda c: c.patch(CONFIG_MAP, "b", "default", {"metadata": {"finalizers": None}})),
        ("make", lambda c: c.create(CONFIG_MAP, config_map("c"))),
        ("end", lambda c: c.delete(SECRET, "s", "default")),
        ("end", lambda c: c.delete(CONFIG_MAP, "a", "default")),
    ]


async def contents(client: Client) -> dict[str, Any]:
    found = {f"{o['metadata']['name']}": o.get("data") for o in (await client.list(CONFIG_MAP, "default")).items}
    found |= {f"secret {o['metadata']['name']}": o.get("data") for o in (await client.list(SECRET, "default")).items}
    return found | {f"namespace {o['metadata']['name']}": "" for o in (await client.list(NAMESPACE)).items}


async def start(disk: Disk) -> Cluster:
    cluster = Cluster(ClusterSettings(data_dir=disk.path / "data", port=0, run_controllers=False, run_node=False))
    await cluster.start()
    return cluster


@pytest.mark.timeout(300)
async def test_full_at_every_write(disk: Disk) -> None:
    """Before step n the disk is filled to its last block. A step that is refused is tried again when there is room."""
    expected: dict[str, Any] = {}
    steps = scenario()
    for n in range(len(steps), -1, -1):  # the first round is never full: what it should look like
        shutil.rmtree(disk.path / "data", ignore_errors=True)
        cluster = await start(disk)
        revisions = [cluster.store.revision]
        for step, (kind, act) in enumerate(steps):
            if step == n:
                disk.fill()
                cluster.space.check()
                assert cluster.space.alarm
            if kind == "make" and cluster.space.alarm:
                with pytest.raises(InsufficientStorage) as problem:
                    await act(cluster.client)
                assert problem.value.message.startswith(f"{EXCEEDED}: the disk of {disk.path}/data ")
                assert "deletes work" in problem.value.message
                disk.free()
                cluster.space.check()
                assert cluster.space.alarm == "", "no restart is needed"
            await act(cluster.client)
            revisions.append(cluster.store.revision)
        assert revisions == sorted(set(revisions))
        found = await contents(cluster.client)
        expected = expected or found
        assert found == expected, f"full at step {n}"
        last = cluster.store.revision
        await cluster.stop()
        again = await start(disk)
        assert await contents(again.client) == expected
        assert again.store.revision >= last
        await again.stop()
        disk.free()


async def test_it_starts_and_deletes_on_a_full_disk(disk: Disk) -> None:
    cluster = await start(disk)
    for name in ("a", "b"):
        await cluster.client.create(CONFIG_MAP, config_map(name))
    await cluster.stop()
    for way in ("the reserve is there", "others took it"):
        if way == "others took it":
            (disk.path / "data/store.reserve").unlink()
        disk.fill(but=256 * 1024 if way == "others took it" else 0)  # SQLite itself needs its index
        cluster = await start(disk)
        assert cluster.space.alarm
        with pytest.raises(InsufficientStorage):
            await cluster.client.create(CONFIG_MAP, config_map("new"))
        await cluster.client.delete(CONFIG_MAP, "a" if "reserve" in way else "b", "default")
        disk.free()
        cluster.space.check()
        assert cluster.space.alarm == ""
        await cluster.client.create(CONFIG_MAP, config_map("new"))
        await cluster.client.delete(CONFIG_MAP, "new", "default")
        await cluster.stop()
        disk.free()


async def test_others_who_wait_for_every_block_do_not_get_the_stores(disk: Disk) -> None:
    """A pod that writes without end takes what is given back before a second system call. The store has its own."""
    cluster = await start(disk)
    for number in range(200):
        await cluster.client.create(CONFIG_MAP, config_map(f"c{number}", 1000))
    cluster.space.check()
    assert not cluster.space.alarm
    disk.fill()
    cluster.space.check()
    disk.fill()  # what was given back, too
    assert machine.disk(disk.path).free < 4096
    for number in range(200):
        await cluster.client.delete(CONFIG_MAP, f"c{number}", "default")
    assert (await cluster.client.list(CONFIG_MAP, "default")).items == []
    await cluster.stop()


# -- the journal's own writes fail


class Failing:
    """Commits fail from the n-th on, for `times` times, as SQLite fails on a full disk."""

    def __init__(self, journal: SqliteJournal, first: int, times: int) -> None:
        self.commit = journal._commit
        self.count, self.first, self.times = 0, first, times
        journal._commit = self  # type: ignore[method-assign]

    def __call__(self, batch: list[Any]) -> None:
        self.count += 1
        if self.first <= self.count < self.first + self.times:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        self.commit(batch)


def thing(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **more}}


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_a_commit_that_finds_no_room(tmp_path: Path, times: int) -> None:
    """Once: the reserve is given back and nobody notices. More often: refused; what was acknowledged is there."""
    for first in range(1, 9):
        path = tmp_path / f"{first}-{times}" / "store.db"
        path.parent.mkdir()
        room = Space(path, SpaceSettings(reserve=MIB, least_free=0))
        journal = SqliteJournal(path, space=room)
        store = Store(journal, room)
        store.start()
        room.check()
        failing = Failing(journal, first, times)
        acknowledged, refused = [], 0
        for number in range(8):
            try:
                await store.put("things", thing(f"t{number}"))
                acknowledged.append(f"t{number}")
            except InsufficientStorage:
                refused += 1
        assert bool(room.alarm)
        if times == 1:
            assert acknowledged[:first] == [f"t{n}" for n in range(first)]  # the one that found no room, too
        assert refused == 8 - len(acknowledged)
        for name in acknowledged:
            await delete_when_possible(store, name)
        failing.times = 0
        room.check()  # the disk has room, and always had
        assert room.alarm == ""
        await store.put("things", thing("after"))
        assert [stored.name for stored in store.scan("things")] == ["after"]
        await store.close()
        room.close()
        again = Store(SqliteJournal(path))
        again.start()
        assert [stored.name for stored in again.scan("things")] == ["after"]
        await again.close()


async def delete_when_possible(store: Store, name: str) -> None:
    for _ in range(10):
        try:
            await store.delete("things", thing(name))
            return
        except InsufficientStorage:  # the injected failures are not over
            continue
    raise AssertionError(f"{name} could not be deleted")


# -- what an alarm lets through


@pytest.fixture
def room(tmp_path: Path) -> Space:
    return Space(tmp_path / "store.db", SpaceSettings(reserve=MIB, least_free=0, quota=200_000))


async def alarmed(path: Path, room: Space) -> Store:
    store = Store(SqliteJournal(path, space=room), room)
    store.start()
    for name in ("a", "b", "c"):
        await store.put("things", thing(name, note="x" * 1000))
    room.alarm = "the disk is full"
    return store


async def test_deletes_and_what_belongs_to_them(tmp_path: Path, room: Space) -> None:
    store = await alarmed(tmp_path / "store.db", room)
    for obj in (thing("new"), thing("a", note="x" * 9000), thing("new", deletionTimestamp="2026-01-02T03:04:05Z")):
        with pytest.raises(InsufficientStorage):
            await store.put("things", obj)
    assert store.latest("things", "default", "new") is None
    await store.put("things", thing("a", note="x" * 1000, deletionTimestamp="2026-01-02T03:04:05Z", finalizers=["f"]))
    await store.put("things", thing("a", note="x" * 999, deletionTimestamp="2026-01-02T03:04:05Z"))
    await store.put("things", thing("b", note="smaller"))
    await store.put("things", thing("c", note="x" * 1100))  # a condition
    await store.put("nodes", thing("n", note="x" * 3000))
    await store.put("leases.coordination.k8s.io", thing("n"))
    await store.delete("things", thing("a"))
    await store.close()


async def test_an_alarm_has_no_way_around_it(tmp_path: Path, room: Space) -> None:
    """By small steps, by events, by an object that is being deleted for ever: what the store grows by is bounded."""
    store = await alarmed(tmp_path / "store.db", room)
    before = sum(len(s.raw) for name in store.resources() for s in store.scan(name))
    deleting = {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["mine"]}
    for step in range(1, 400):
        for resource, obj in (
            ("things", thing("a", note="x" * (1000 + 3500 * step))),
            ("things", thing("b", note="x" * (1000 + 3500 * step), **deleting)),
            ("events", thing(f"e{step}", note="x" * 3000)),
            ("nodes", thing(f"n{step}", note="x" * 12_000)),
        ):
            try:
                await store.put(resource, obj)
            except InsufficientStorage:
                continue
    after = sum(len(s.raw) for name in store.resources() for s in store.scan(name))
    assert after - before < space.GRACE_BYTES + space.OBJECT_GRACE + space.GRACE_EVENTS * space.SMALL_GROWTH
    # With all grace used up: what grows by nothing, what begins to be deleted, and deletes.
    kept = store.latest("things", "default", "a")
    assert kept is not None
    await store.put("things", {**kept.obj, "metadata": {**kept.obj["metadata"], "note": "y" * 1000}})
    await store.put("things", thing("c", note="x" * 1000, **deleting))
    await store.delete("things", thing("b"))
    await store.close()


async def test_a_quota_on_the_store_itself(tmp_path: Path, room: Space) -> None:
    path = tmp_path / "store.db"
    store = Store(SqliteJournal(path, space=room), room)
    store.start()
    made = 0
    while not room.alarm and made < 1000:
        await store.put("things", thing(f"t{made}", note="x" * 2000))
        made += 1
        room.check()
    with pytest.raises(InsufficientStorage, match=r"the store holds .* and its quota is 0\.2 MiB"):
        await store.put("things", thing("more"))
    assert 50 < made < 200
    for number in range(made):
        await store.delete("things", thing(f"t{number}"))
    room.check()
    assert room.alarm == "", "history was dropped with what was deleted"
    await store.put("things", thing("again"))
    await store.close()


# -- danlu as a whole


PODS = """
apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  terminationGracePeriodSeconds: 1
  priorityClassName: system-node-critical
  containers: [{name: c, image: busybox, command: [sleep, "1000"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: ends}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  priorityClassName: system-node-critical
  containers: [{name: c, image: busybox, command: [sh, -c, "while [ ! -e /go/on ]; do sleep 0.1; done; exit 7"],
    volumeMounts: [{name: go, mountPath: /go}]}]
  volumes: [{name: go, hostPath: {path: GO}}]
"""


@pytest.mark.e2e
@pytest.mark.timeout(240)
def test_the_whole_of_danlu_on_a_full_disk(disk: Disk, need_kubectl: None, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.mkdir()
    danlu = Danlu(disk.path, "--no-console")
    danlu.up()
    try:
        danlu.kubectl("create", "configmap", "kept", "--from-literal=a=b")
        danlu.kubectl("create", "namespace", "lab")
        danlu.kubectl("apply", "-f", "-", stdin=PODS.replace("GO", str(go)))
        danlu.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
        disk.fill()
        danlu.wait("the alarm", lambda: "alarm      NOSPACE" in danlu.command("status").stdout)
        disk.fill()  # what the reserve gave back, too
        assert EXCEEDED in danlu.fails("create", "configmap", "refused", "--from-literal=a=b")
        (go / "on").touch()
        danlu.wait("how it ended", lambda: danlu.kubectl("get", "pod", "ends", "-o", STATE) == "7")
        assert_node_says_so(danlu)
        danlu.kubectl("delete", "pod", "sleeper", "ends", "--timeout=60s")
        danlu.kubectl("delete", "namespace", "lab", "--timeout=60s")
        danlu.down()
        danlu.up()
        assert EXCEEDED in danlu.fails("create", "configmap", "refused", "--from-literal=a=b")
        pid = danlu.pid()
        disk.free()
        danlu.wait("room again", lambda: "NOSPACE" not in danlu.command("status").stdout)
        danlu.kubectl("create", "configmap", "again", "--from-literal=a=b")
        names = danlu.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}").split()
        assert names == ["again", "kept", "kube-root-ca.crt"]
        assert danlu.pid() == pid
    finally:
        disk.free()
        danlu.command("down", check=False)


STATE = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"


def assert_node_says_so(danlu: Danlu) -> None:
    pressure = 'jsonpath={.items[0].status.conditions[?(@.type=="DiskPressure")].status}'
    danlu.wait("the condition", lambda: danlu.kubectl("get", "nodes", "-o", pressure) == "True")
    danlu.wait("the event", lambda: "alarm NOSPACE: the disk of" in danlu.kubectl("get", "events"))


@pytest.mark.e2e
@pytest.mark.timeout(240)
def test_a_pod_that_fills_the_disk_goes_and_others_stay(disk: Disk, need_kubectl: None) -> None:
    danlu = Danlu(disk.path, "--no-console")
    danlu.up()
    try:
        greedy = """
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: busybox, command: [sh, -c, "while true; do cat /dev/zero >> /v/f; sleep 0.1; done"],
    volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {}}]
"""
        danlu.kubectl("apply", "-f", "-", stdin=PODS.split("---")[0])
        danlu.kubectl("wait", "--for=condition=Ready", "pod", "sleeper", "--timeout=60s")
        danlu.kubectl("apply", "-f", "-", stdin=greedy)
        danlu.wait(
            "its end", lambda: danlu.kubectl("get", "pod", "greedy", "-o", "jsonpath={.status.reason}") == "Evicted"
        )
        danlu.wait("its files to be gone", lambda: machine.disk(disk.path).free > 40 * MIB)
        danlu.wait("room again", lambda: "NOSPACE" not in danlu.command("status").stdout)
        danlu.kubectl("create", "configmap", "again", "--from-literal=a=b")
        assert danlu.kubectl("get", "pod", "sleeper", "-o", "jsonpath={.status.phase}") == "Running"
    finally:
        danlu.command("down", check=False)


# -- small files


@pytest.mark.parametrize("fails", ["open", "write", "fchmod", "fsync", "replace"])
def test_a_small_file_is_old_or_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    path = tmp_path / "kubeconfig"
    private_files.write(path, b"old")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        if fails == "write":
            patched.setattr(private_files, "open", lambda *_, **__: full(), raising=False)
        else:
            patched.setattr(os, fails, full)
        with pytest.raises(OSError, match="No space left") as problem:
            private_files.write(path, b"new")
        assert private_files.is_full(problem.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["kubeconfig"]
    private_files.write(path, b"new")
    assert path.read_bytes() == b"new"


def test_small_files_on_a_full_disk(disk: Disk) -> None:
    folder = disk.path / "f"
    folder.mkdir()
    private_files.write(folder / "a", b"old" * 3000)
    private_files.keep_room(folder / "exit.json")
    volume = str(folder / "volume")
    atomicfiles.write(volume, {"k": atomicfiles.File(b"old")})
    disk.fill()
    with pytest.raises(OSError, match="No space left"):
        private_files.write(folder / "a", b"new" * 3000)
    with pytest.raises(OSError, match="No space left"):
        atomicfiles.write(volume, {"k": atomicfiles.File(b"new" * 3000)})
    private_files.fill(folder / "exit.json", b'{"exit_code": 7}')
    assert (folder / "a").read_bytes() == b"old" * 3000
    assert (folder / "exit.json").read_bytes() == b'{"exit_code": 7}'
    assert Path(volume, "k").read_bytes() == b"old"
    assert sorted(os.listdir(folder)) == ["a", "exit.json", "volume"]
    assert len([name for name in os.listdir(volume) if name.startswith("..2")]) == 1
    disk.free()
    atomicfiles.write(volume, {"k": atomicfiles.File(b"new")})
    assert Path(volume, "k").read_bytes() == b"new"


def test_a_log_begins_and_goes_on_when_there_is_room(disk: Disk) -> None:
    disk.fill()
    path = str(disk.path / "logs/c/0.log")
    writer = logfiles.LogWriter(path)
    writer.write("stdout", b"lost\n")
    disk.free()
    writer.write("stdout", b"kept\n")
    disk.fill()
    writer.write("stdout", b"x" * 100_000 + b"\n")
    disk.free()
    writer.write("stdout", b"last\n")
    writer.close()
    said = Path(path).read_text()
    assert "kept\n" in said
    assert said.endswith("last\n")
    assert "bytes printed here were lost: the disk was full" in said


# -- logs and what is taken first


def test_a_log_is_bounded_by_files_and_by_the_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "0.log")
    writer = logfiles.LogWriter(path, 10_000, 50_000)
    for number in range(20_000):
        writer.write("stdout", b"line %d\n" % number)
    writer.close()
    assert len(logfiles.segments(path)) == 5
    assert sum(file.stat().st_size for file in tmp_path.glob("*.log*") if file.suffix != ".idx") <= 50_000
    settings = NodeSettings()
    assert launch.log_limits(settings, machine.Disk(1 << 40, 1 << 39, 0, 0)) == [10 * MIB, 1000 * MIB]
    assert launch.log_limits(settings, machine.Disk(10 << 30, 1 << 30, 0, 0)) == [10 * MIB, (10 << 30) // 50]
    assert launch.log_limits(settings, machine.Disk(100 * MIB, MIB, 0, 0)) == [2 * MIB // 5, 2 * MIB]


def on_disk(data: Path, uid: str, container: str = "c", attempts: int = 2, running: bool = False) -> None:
    pod = data / "pods" / uid
    (pod / "volumes/v").mkdir(parents=True)
    (pod / "volumes/v/data").write_bytes(b"x" * 10_000)
    (pod / "logs" / container).mkdir(parents=True)
    for attempt in range(attempts):
        folder = pod / "containers" / container / str(attempt)
        (folder / "root/tmp").mkdir(parents=True)
        (folder / "root/tmp/f").write_bytes(b"x" * 10_000)
        if not (running and attempt == attempts - 1):
            (folder / "exit.json").write_text("{}")
        for name in (f"{attempt}.log", f"{attempt}.log.1"):
            (pod / "logs" / container / name).write_bytes(b"x" * 10_000)
            (pod / "logs" / container / f"{name}.idx").write_bytes(b"x" * 16)


def left(data: Path) -> set[str]:
    return {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}


def test_the_order_in_which_space_is_taken(tmp_path: Path) -> None:
    on_disk(tmp_path, "running", running=True)
    on_disk(tmp_path, "ended")
    for name in ("used", "unused"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "f").write_text("x")
    (tmp_path / "images.yaml").write_text(f"images: [{{files: {{/a: {tmp_path}/images/used/f}}}}]\n")
    before = left(tmp_path)
    taken = []
    for step in diskreclaim.steps(Catalogue(tmp_path)):
        step.take(tmp_path, {"ended"})
        taken.append(before - left(tmp_path))
        before = left(tmp_path)
    dead = {f"pods/{uid}/logs/c/0.log{n}{x}" for uid in ("running", "ended") for n in ("", ".1") for x in ("", ".idx")}
    layers = {"pods/running/containers/c/0/root/tmp/f"}
    layers |= {f"pods/ended/containers/c/{attempt}/root/tmp/f" for attempt in (0, 1)}
    assert taken == [
        {"images/unused/f"},
        dead | layers,
        {"pods/ended/volumes/v/data"},
        {f"pods/ended/logs/c/1.log{n}{x}" for n in ("", ".1") for x in ("", ".idx")},
    ]
    for kept in ("containers/c/1/root/tmp/f", "volumes/v/data", "logs/c/1.log", "containers/c/0/exit.json"):
        assert f"pods/running/{kept}" in before


def test_logs_are_bounded_in_all(tmp_path: Path) -> None:
    for age, uid in enumerate(("running", "older", "newer")):
        on_disk(tmp_path, uid, running=uid == "running")
        for path in (tmp_path / "pods" / uid / "logs").rglob("*.log*"):
            os.utime(path, (time.time(), 1000 + age))
    size = sum(
        p.stat().st_blocks * 512 for p in tmp_path.rglob("*") if p.is_file() and diskreclaim.SEGMENT.fullmatch(p.name)
    )
    ended = {"older", "newer"}
    assert diskreclaim.bound_logs(tmp_path, size, ended) == 0
    assert diskreclaim.bound_logs(tmp_path, size * 2 // 3, ended) > 0
    assert not list((tmp_path / "pods/older/logs").rglob("*.log*"))
    assert len(list((tmp_path / "pods/newer/logs").rglob("*.log*"))) == 8
    diskreclaim.bound_logs(tmp_path, 0, ended)
    assert sorted(p.name for p in (tmp_path / "pods/running/logs/c").iterdir()) == [
        "0.log.1", "0.log.1.idx", "1.log.1", "1.log.1.idx",
    ]  # fmt: skip
