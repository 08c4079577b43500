"""`danlu exec POD -- COMMAND`: runs a program in a container, with the streams and the terminal of whoever typed it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from danlu.cli.command import argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text
from danlu.cli.objects.completion import POD_WORDS
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster, one_named
from danlu.client.http import HttpTransport
from danlu.resources import dossier
from danlu.resources.execution import ContainerPlace, ExecStreams, Write, execute

NO_COMMAND = Text(
    "say what to run: danlu exec POD -- COMMAND [ARGS]", "请写明要运行的命令：danlu exec POD -- 命令 [参数]"
)
NO_POD = Text(
    "{about} has no running pod; `danlu why {about}` says why",
    "{about} 没有正在运行的 Pod；`danlu why {about}` 说明原因",
)
NO_TERMINAL = Text("-t needs a terminal here, and there is none; leave -t out", "-t 需要终端，而此处没有；请去掉 -t")


@dataclass(frozen=True)
class Options(WorkOptions):
    words: tuple[str, ...] = argument(
        "POD|KIND/NAME -- COMMAND",
        many=True,
        type=POD_WORDS,
        help=Text(
            "of a job or deployment the first running pod; what follows -- is run there",
            "作业或部署取其第一个运行中的 Pod；-- 之后是要运行的命令",
        ),
    )
    stdin: bool = flag("-i", "--stdin", help=Text("pass standard input on", "传递标准输入"))
    tty: bool = flag("-t", "--tty", help=Text("on a terminal (for shells: -it)", "使用终端（用于 shell：-it）"))
    container: str = option(
        "-c", "--container", metavar="NAME", default="", help=Text("default: the first", "默认：第一个容器")
    )
    rank: str = option("--rank", metavar="N", default="", help=Text("of a job: in this replica", "作业中该序号的副本"))


def run(options: Options) -> int:
    target, *command = options.words
    if not command:
        raise UsageError(NO_COMMAND())
    if options.tty and not sys.stdin.isatty():
        raise UsageError(NO_TERMINAL())

    async def work(session: ClusterSession) -> int:
        transport = session.client.transport
        assert isinstance(transport, HttpTransport)
        place = await place_of(session, target, options.container, options.rank)
        with _raw_terminal(options.tty):
            return await execute(transport, place, command, _streams(options))

    return on_cluster(options, work)


async def place_of(session: ClusterSession, word: str, container: str = "", rank: str = "") -> ContainerPlace:
    """The container of a pod, or of the first running pod of whatever has pods."""
    kind, name = await one_named(session.kinds, (word,), "pods")
    if kind.kind == "Pod":
        return ContainerPlace(session.namespace, name, container)
    pods = await dossier.pods_of(session.client, kind, name, session.home(kind))
    for pod in pods:
        fits = not rank or str(dossier.rank(pod)) == rank
        if fits and (pod.get("status") or {}).get("phase") == "Running":
            return ContainerPlace(session.namespace, pod["metadata"]["name"], container)
    raise CommandError(NO_POD(about=f"{kind.singular_name}/{name}"))


def _streams(options: Options) -> ExecStreams:
    return ExecStreams(
        _writer(1), _writer(2), _typed() if options.stdin or options.tty else None, options.tty,
        _sizes() if options.tty else None,
    )  # fmt: skip


def _writer(descriptor: int) -> Write:
    async def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    return write


async def _typed() -> AsyncIterator[bytes]:
    """Standard input, by a thread that nobody waits for: the program may end while somebody could still type."""
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        while True:
            data = os.read(0, 65536)
            asyncio.run_coroutine_threadsafe(chunks.put(data), loop)
            if not data:
                return

    import threading

    threading.Thread(target=read, daemon=True).start()
    while data := await chunks.get():
        yield data


async def _sizes() -> AsyncIterator[tuple[int, int]]:
    changed = asyncio.Event()
    changed.set()
    asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, changed.set)
    while await changed.wait():
        changed.clear()
        yield shutil.get_terminal_size()


@contextmanager
def _raw_terminal(wanted: bool) -> Iterator[None]:
    """What is typed goes to the program there, Ctrl-C too."""
    if not wanted:
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
