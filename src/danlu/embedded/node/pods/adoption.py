"""Finding again, after `danlu up` was killed, the containers that went on without it.

For each attempt on disk exactly one of these holds, and each has one answer:

1. exit.json is there: it is over, and this is how it ended.
2. The lock is held: a shim lives (or the old spawner is just forking it): connect and follow.
3. The lock is free and there is a `pid`: the shim was killed. Its container died with it; what should still live under
   that very pid and start time is ended. It is lost: ContainerStatusUnknown, 137.
4. The lock is free and there is no `pid`: it was meant to start and never did. It is closed the same way, by an
   exit.json written while we hold the lock, so that a late shim cannot begin; the pod worker starts the next attempt.

An end that was not the program's own is none: where `danlu down` stopped the container (the file `interrupted` says so,
written before the signal), or where the machine itself went down, the attempt does not count and is made again. That
holds for every restart policy. Kubernetes would fail a `Never` pod of a node that shuts down; but there others have
replaced it elsewhere meanwhile, and here nobody could: a job must not run out of retries because somebody went home.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import time
from pathlib import Path

from danlu.embedded import private_files
from danlu.embedded.node.sandbox import cgroups, devicecgroup, wire
from danlu.embedded.node.sandbox.processes import LOST, LOST_MESSAGE, Container, Containers, connect, read_exit
from danlu.embedded.node.sandbox.procfs import boot_id, start_time
from danlu.embedded.node.sandbox.shim import Exit

KILL_TIMEOUT_S = 5.0
LEFTOVER_GRACE_S = 30.0  # Kubernetes' own default; what a pod asked for is not on the disk
NEVER_STARTED = "NeverStarted"
"""The reason of case 4; not shown to anyone: that attempt does not count."""
INTERRUPTED = "Interrupted"
"""The reason of an end that was not the program's own; not shown to anyone either."""
MARK = "interrupted"
PAUSE = "_pause"  # see `pause`


async def adopt(containers: Containers, pod_uid: str) -> list[Container]:
    """All attempts of a pod, oldest first for each container, each followed or known to be over."""
    found = []
    for folder in _attempts(containers.pod_folder(pod_uid)):
        container = _load(folder, pod_uid)
        if container is not None:
            await _resolve(containers, container)
            found.append(container)
    containers.adopted(pod_uid)
    return found


def interrupt(folder: Path) -> None:
    """To be called before a container is stopped that the next `danlu up` is to start again, whatever its exit code."""
    with contextlib.suppress(OSError):  # a full disk: then its end counts as its own
        (folder / MARK).touch()


def pods_on_disk(data_dir: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(data_dir / "pods") if entry.is_dir())
    except FileNotFoundError:
        return []


def _attempts(pod_folder: Path) -> list[Path]:
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(pod_folder / "containers")):
            numbers = [entry for entry in os.listdir(pod_folder / "containers" / name) if entry.isdigit()]
            found += [pod_folder / "containers" / name / number for number in sorted(numbers, key=int)]
    return found


def _load(folder: Path, pod_uid: str) -> Container | None:
    try:
        spec = json.loads((folder / "spec.json").read_text())
    except (OSError, ValueError):
        return None  # killed before the intent was whole: nothing can have been started
    container = Container(spec["id"], pod_uid, folder.parent.name, int(folder.name), folder, spec)
    with contextlib.suppress(OSError, ValueError):
        container.started_at = json.loads((folder / "state.json").read_text())["started_at"]
    return container


async def _resolve(containers: Containers, container: Container) -> None:
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while True:
        ended = read_exit(container.folder)
        if ended is not None:
            if (container.folder / MARK).exists():
                ended["reason"] = INTERRUPTED
            containers.add_ended(container, ended)
            return
        lock = _lock(container.folder)
        if lock is not None:
            try:
                containers.add_ended(container, _close(container))
            finally:
                os.close(lock)
            return
        try:
            containers.follow(container)
            await container.settled.wait()
            (container.folder / MARK).unlink(missing_ok=True)  # it was spared
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.02)  # it has the lock and no socket: it begins, or it ends right now


def _lock(folder: Path) -> int | None:
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _close(container: Container) -> Exit:
    """Writes the end of an attempt that has no shim; the caller holds its lock."""
    ended = read_exit(container.folder)
    if ended is not None:
        return ended
    reason = NEVER_STARTED
    with contextlib.suppress(OSError, ValueError, KeyError):
        written = json.loads((container.folder / "pid").read_text())
        reason = LOST if written["boot"] == boot_id() else INTERRUPTED
        if reason == LOST and start_time(written["pid"]) == written["start"] != 0:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(written["pid"], signal.SIGKILL)
    ended = {
        "exit_code": 137,
        "signal": 0,
        "reason": reason,
        "message": LOST_MESSAGE,
        "started_at": container.started_at,
        "finished_at": time.time(),
    }
    private_files.fill(container.folder / "exit.json", json.dumps(ended).encode())
    if "device_cgroups" in container.spec["sandbox"]:
        devicecgroup.remove(f"{container.spec['sandbox']['device_cgroups']}/{container.id}")
    if "cgroup" in container.spec:
        cgroups.clear(container.spec["cgroup"])
    return ended


def stop_leftovers(data_dir: Path) -> int:
    """`danlu down` after `danlu up` was killed: ends the containers that went on. Says how many there were. Blocks."""
    folders = [folder for uid in pods_on_disk(data_dir) for folder in _attempts(data_dir / "pods" / uid)]
    left = [folder for folder in folders if _lives(folder)]
    for folder in left:
        interrupt(folder)
        if folder.parent.name != PAUSE:  # all of its pod would end with it, and not be heard out
            _send(folder, signal.SIGTERM)
    _wait_until_gone([folder for folder in left if folder.parent.name != PAUSE], LEFTOVER_GRACE_S)
    for folder in left:
        _send(folder, signal.SIGKILL)
    _wait_until_gone(left, KILL_TIMEOUT_S)
    return len(left)


def _lives(folder: Path) -> bool:
    lock = _lock(folder) if read_exit(folder) is None else -1
    if lock is not None and lock >= 0:
        os.close(lock)
    return lock is None


def _send(folder: Path, number: int) -> None:
    with contextlib.suppress(OSError), connect(folder) as shim:
        wire.send(shim, {"op": "signal", "signal": int(number), "or_kill": True})


def _wait_until_gone(folders: list[Path], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while any(_lives(folder) for folder in folders) and time.monotonic() < ends:
        time.sleep(0.02)
