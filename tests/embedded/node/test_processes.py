"""Containers as processes: the real spawner, the real shim."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from danlu.embedded.node.pods import adoption
from danlu.embedded.node.sandbox import procfs
from danlu.embedded.node.sandbox.processes import Container, Containers, ExecError, ProcessError, Spawner
from danlu.embedded.node.sandbox.procfs import start_time
from danlu.embedded.node.sandbox.shim import LaunchSpec

POD = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
async def containers(tmp_path: Path) -> AsyncIterator[Containers]:
    spawner = Spawner()
    await spawner.start()
    made = Containers(tmp_path, spawner)
    yield made
    for container in made.running_in(POD):
        await made.signal(container.id, signal.SIGKILL)
        await asyncio.wait_for(container.ended.wait(), 10)
    await made.close()
    await spawner.stop()


def spec(containers: Containers, name: str, argv: list[str], **more: Any) -> LaunchSpec:
    folder = containers.folder(POD, name, 0)
    box = {
        "mode": containers.spawner.capabilities.mode,
        "root": str(folder / "root"),
        "hostname": "pod",
        "mounts": [],
        "cwd": "/",
        "own_pids": bool(containers.spawner.capabilities.own_pids),
        "own_ipc": bool(containers.spawner.capabilities.own_pids),
    }
    made: Any = {
        "id": name, "argv": argv, "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"}, "tty": False, "stdin": False,
        "stdin_once": False, "log": str(containers.data_dir / f"{name}.log"), "memory_limit": 0, "sandbox": box, **more,
    }  # fmt: skip
    return made  # type: ignore[no-any-return]


async def start(containers: Containers, argv: list[str], name: str = "c", **more: Any) -> Container:
    return await containers.start(POD, name, 0, spec(containers, name, argv, **more))


async def ended(containers: Containers, container: Container) -> Any:
    return await asyncio.wait_for(containers.wait(container.id), 20)


def said(container: Container) -> str:
    return Path(container.spec["log"]).read_text()


async def heard(container: Container, word: str) -> None:
    for _ in range(2000):
        if word in said(container):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it never said {word}: {said(container)}")


async def test_a_program_that_is_over_before_we_look(containers: Containers, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = containers.spawner.spawn

    async def spawn_and_dawdle(folder: str) -> None:
        await spawn(folder)
        for _ in range(1000):
            if (Path(folder) / "exit.json").exists() and not (Path(folder) / "shim.sock").exists():
                return
            await asyncio.sleep(0.01)

    monkeypatch.setattr(containers.spawner, "spawn", spawn_and_dawdle)
    container = await start(containers, ["true"])
    assert container.exit is not None
    assert container.exit["exit_code"] == 0


async def test_output_and_exit_code(containers: Containers) -> None:
    container = await start(containers, ["sh", "-c", "echo out; echo err >&2; exit 3"])
    exit = await ended(containers, container)
    assert (exit["exit_code"], exit["reason"], exit["signal"]) == (3, "Error", 0)
    assert exit["finished_at"] >= exit["started_at"] > 0
    assert sorted(said(container).split()) == ["err", "out"]


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["foo"], 'exec: "foo": executable file not found in $PATH'),
        (["/no/foo"], 'exec: "/no/foo": stat /no/foo: no such file or directory'),
        (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
    ],
)
async def test_a_program_that_cannot_start(containers: Containers, argv: list[str], problem: str) -> None:
    container = await start(containers, argv)
    assert container.exit is not None
    assert (container.exit["exit_code"], container.exit["reason"]) == (128, "StartError")
    assert container.exit["message"] == problem
    assert container.started_at == 0


async def test_signals_reach_the_program(containers: Containers) -> None:
    container = await start(containers, ["sh", "-c", "trap 'trap - TERM; exit 143' TERM; echo on; sleep 100 & wait"])
    await heard(container, "on")
    await containers.signal(container.id, signal.SIGTERM)
    exit = await ended(containers, container)
    assert exit["exit_code"] == 143


@pytest.mark.parametrize("own", [True, False])
async def test_nothing_is_left_behind(containers: Containers, own: bool) -> None:
    script = "(setsid sleep 1234 &) ; sleep 4321 & echo on; read end; exit 0"
    made = spec(containers, "c", ["sh", "-c", script], stdin=True)
    made["sandbox"]["own_pids"] = own and made["sandbox"]["own_pids"]
    container = await containers.start(POD, "c", 0, made)
    await heard(container, "on")
    session = await containers.exec(container.id, ["sleep", "2345"])
    left = {pid: start_time(pid) for pid in procfs.descendants(container.shim_pid)}
    assert len(left) == 4
    attached = await containers.attach(container.id, stdin=True)
    os.write(attached.stdin_fd, b"end\n")
    await ended(containers, container)
    assert await asyncio.wait_for(session.wait(), 10) == 137
    assert [pid for pid, start in left.items() if start_time(pid) == start] == []


def own_pids(containers: Containers) -> None:
    if not containers.spawner.capabilities.own_pids:
        pytest.skip(f"no namespaces of process numbers: {containers.spawner.capabilities.reason}")


async def output(session: Any) -> str:
    assert await asyncio.wait_for(session.wait(), 10) == 0
    return os.read(session.stdout_fd, 65536).decode()


NUMBERS = "ls /proc | grep -E '^[0-9]+$' | tr '\\n' ' '"


async def test_a_container_has_its_own_processes(containers: Containers) -> None:
    own_pids(containers)
    container = await start(containers, ["sh", "-c", "echo $$; kill -9 $$; kill -TERM $$; echo on; sleep 100; :"])
    await heard(container, "on")
    assert said(container).split() == ["1", "on"], "number 1 gets no signal that it has no handler for"
    seen = await output(await containers.exec(container.id, ["sh", "-c", f"echo $$ $PPID; {NUMBERS}"]))
    first, rest = seen.split("\n")
    number, parent = map(int, first.split())
    assert parent == 0
    assert {"1", str(number)} <= set(rest.split())
    assert max(map(int, rest.split())) < 100, "numbers begin anew in each container"
    assert procfs.parent(container.pid) == container.shim_pid, "the node knows it by the machine's own number"


def make_node(folder: str) -> None:
    os.makedirs(folder)
    os.mknod(f"{folder}/loop", 0o666 | stat.S_IFBLK, os.makedev(7, 0))


async def test_device_nodes_of_a_volume_are_no_devices_even_to_who_may_mount(containers: Containers) -> None:
    hierarchy = containers.spawner.capabilities.device_cgroups
    if not hierarchy:
        pytest.skip("no cgroups of version 1 for devices, or not root")
    script = (
        "mount -o remount,bind,dev / && head -c1 /dev/full | wc -c; head -c1 /loop; mknod /made c 1 7; echo on; cat"
    )
    made = spec(containers, "c", ["sh", "-c", f"({script}) 2>&1"], stdin=True)
    made["sandbox"] |= {"device_cgroups": hierarchy, "add_capabilities": ["SYS_ADMIN", "MKNOD"]}
    make_node(made["sandbox"]["root"])
    container = await containers.start(POD, "c", 0, made)
    await heard(container, "on")
    session = await containers.exec(container.id, ["sh", "-c", "head -c1 /loop 2>&1; true"])
    refused = "Operation not permitted"
    assert [line.rpartition(": ")[2] for line in said(container).splitlines()] == ["1", refused, refused, "on"]
    assert refused in await output(session)
    await containers.signal(container.id, signal.SIGKILL)
    await ended(containers, container)
    assert container.id not in os.listdir(hierarchy)


async def test_what_hears_no_signal_is_killed_where_that_is_asked_for(containers: Containers) -> None:
    own_pids(containers)
    container = await start(containers, ["sleep", "100"])
    await containers.signal(container.id, signal.SIGTERM)
    await containers.signal(container.id, signal.SIGTERM, or_kill=True)
    assert (await ended(containers, container))["signal"] == 9


@pytest.mark.parametrize("heeds", ["echo heard", ""])
async def test_what_handles_or_ignores_a_signal_is_not_killed_for_it(containers: Containers, heeds: str) -> None:
    own_pids(containers)
    container = await start(containers, ["sh", "-c", f"trap '{heeds}' TERM; echo ready; while :; do sleep 0.1; done"])
    await heard(container, "ready")
    await containers.signal(container.id, signal.SIGTERM, or_kill=True)
    session = await containers.exec(container.id, ["sh", "-c", "kill -0 1 && echo there"])
    assert "there" in await output(session)
    await containers.signal(container.id, signal.SIGKILL)
    await ended(containers, container)


async def test_a_container_that_sees_the_processes_of_another(containers: Containers) -> None:
    own_pids(containers)
    first = await start(containers, ["sleep", "100"], name="first")
    made = spec(containers, "second", ["sh", "-c", f"{NUMBERS}; cat /proc/1/cmdline; sleep 100"])
    made["sandbox"]["beside"] = {"pid": first.pid, "start": start_time(first.pid)}
    second = await containers.start(POD, "second", 0, made)
    assert second.exit is None, second.exit
    await heard(second, "sleep")
    assert said(second).split()[0] == "1"
    await containers.signal(first.id, signal.SIGKILL)
    assert (await ended(containers, second))["signal"] == 9
    made = spec(containers, "third", ["true"])
    made["sandbox"]["beside"] = {"pid": first.pid, "start": 1}
    third = await containers.start(POD, "third", 0, made)
    assert third.exit is not None
    assert third.exit["message"] == "the container whose processes it is to see has ended"


async def test_too_much_memory(containers: Containers) -> None:
    hungry = "a=x; while :; do a=$a$a; done"
    container = await start(containers, ["sh", "-c", hungry], memory_limit=50 << 20)
    exit = await ended(containers, container)
    assert (exit["exit_code"], exit["reason"]) == (137, "OOMKilled")


async def test_exec_with_pipes(containers: Containers) -> None:
    container = await start(containers, ["sleep", "100"])
    session = await containers.exec(
        container.id, ["sh", "-c", "hostname; cat; echo $WORD >&2; exit 7"], stdin=True, env={"WORD": "given"}
    )
    os.write(session.stdin_fd, b"typed")
    os.close(session.stdin_fd)
    assert await asyncio.wait_for(session.wait(), 10) == 7
    assert os.read(session.stdout_fd, 100) == b"pod\ntyped"
    assert os.read(session.stderr_fd, 100) == b"given\n"


async def test_exec_with_a_terminal(containers: Containers) -> None:
    container = await start(containers, ["sleep", "100"])
    session = await containers.exec(container.id, ["sh", "-c", "read go; stty size; test -t 0"], tty=True, stdin=True)
    session.resize(101, 33)
    os.write(session.pty_fd, b"go\n")
    assert await asyncio.wait_for(session.wait(), 10) == 0
    said = b""
    while b"33 101" not in said:  # a read may bring the echo alone; at the end it fails with EIO
        said += os.read(session.pty_fd, 1000)


async def test_exec_of_nothing(containers: Containers) -> None:
    container = await start(containers, ["sleep", "100"])
    with pytest.raises(ExecError, match="executable file not found") as caught:
        await containers.exec(container.id, ["nothing"])
    assert caught.value.exit_code == 127
    await containers.signal(container.id, signal.SIGKILL)
    await ended(containers, container)
    with pytest.raises(ProcessError):
        await containers.exec(container.id, ["true"])


async def test_attach(containers: Containers) -> None:
    container = await start(containers, ["sh", "-c", "read word; echo $word; echo no >&2"], stdin=True)
    session = await containers.attach(container.id)
    os.write(session.stdin_fd, b"yes\n")
    await ended(containers, container)
    assert os.read(session.stdout_fd, 100) == b"yes\n"
    assert os.read(session.stderr_fd, 100) == b"no\n"


async def test_a_long_path_is_no_obstacle(containers: Containers) -> None:
    container = await start(containers, ["sleep", "100"], name="n" * 120)
    assert container.pid


async def test_degraded_without_namespaces(containers: Containers) -> None:
    plain = spec(containers, "c", ["sh", "-c", "pwd; sleep 100"])
    plain["sandbox"]["mode"] = "none"
    container = await containers.start(POD, "c", 0, plain)
    session = await containers.exec(container.id, ["sh", "-c", "echo $PPID"])
    assert await asyncio.wait_for(session.wait(), 10) == 0
    await containers.signal(container.id, signal.SIGTERM)
    assert (await ended(containers, container))["exit_code"] == 143
    assert said(container) == "/\n"


# -- adoption

ABANDON = """
    import asyncio, os, sys
    from pathlib import Path
    sys.path.insert(0, {here!r})
    from test_processes import *

    async def main():
        spawner = Spawner()
        await spawner.start()
        containers = Containers(Path({data!r}), spawner)
        await start(containers, ["sleep", "1000"], name="runs")
        await start(containers, ["sh", "-c", "sleep 0.2; exit 5"], name="ends")
        os.kill(os.getpid(), 9)

    asyncio.run(main())
"""


async def test_containers_outlive_a_killed_node_and_are_found_again(containers: Containers) -> None:
    code = textwrap.dedent(ABANDON.format(here=os.path.dirname(__file__), data=str(containers.data_dir)))
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.DEVNULL)
    assert await process.wait() == -9
    found = {c.name: c for c in await adoption.adopt(containers, POD)}
    running, ending = found["runs"], found["ends"]
    assert running.is_running
    assert start_time(running.pid)
    assert (await ended(containers, ending))["exit_code"] == 5
    await containers.signal(running.id, signal.SIGKILL)
    assert (await ended(containers, running))["exit_code"] == 137


async def test_a_container_whose_shim_was_killed_is_lost(containers: Containers) -> None:
    container = await start(containers, ["sleep", "1000"])
    shim = json.loads((container.folder / "pid").read_text())["shim"]
    os.kill(shim, signal.SIGKILL)
    exit = await ended(containers, container)
    assert (exit["exit_code"], exit["reason"]) == (137, "ContainerStatusUnknown")
    again = (await adoption.adopt(containers, POD))[0]
    assert again.exit is not None
    assert again.exit["reason"] == "ContainerStatusUnknown"
    for _ in range(200):  # it dies with its shim, a moment later
        if not start_time(container.pid):
            break
        await asyncio.sleep(0.01)
    assert not start_time(container.pid)


async def test_an_intent_that_came_to_nothing_cannot_start_later(containers: Containers) -> None:
    folder = containers.folder(POD, "c", 0)
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps(spec(containers, "c", ["sleep", "1"])))
    found = (await adoption.adopt(containers, POD))[0]
    assert found.exit is not None
    assert found.exit["reason"] == adoption.NEVER_STARTED
    with pytest.raises(ProcessError, match="has run already"):
        await containers.spawner.spawn(str(folder))
