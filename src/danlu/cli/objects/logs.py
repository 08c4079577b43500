"""`danlu logs KIND/NAME`: what the program wrote; of a job all replicas, each line with who wrote it, in its colour."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from danlu.cli import layout
from danlu.cli.command import argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text
from danlu.cli.objects.completion import POD_WORDS
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster, one_named
from danlu.cli.valuetypes import WHOLE
from danlu.meta.kind import Kind, Object
from danlu.resources import dossier, loglines
from danlu.resources.loglines import LogLine, LogSelection

NO_PODS = Text(
    "{about} has no pods, so nothing wrote a log; `danlu why {about}` says what keeps it",
    "{about} 没有 Pod，因此没有日志；`danlu why {about}` 说明原因",
)
NO_RANK = Text(
    "{about} has no replica of rank {rank}; there are: {there}", "{about} 没有序号为 {rank} 的副本；现有：{there}"
)
WAITING = Text(
    "waiting for the first pod to start ({about}); Ctrl-C ends this", "等待第一个 Pod 启动（{about}）；Ctrl-C 结束"
)
NO_DURATION = Text("{text!r} is no duration: write 30s, 5m, 2h", "{text!r} 不是时长：请写 30s、5m、2h")
COLOURS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95)
_DURATION = re.compile(r"(\d+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Options(WorkOptions):
    words: tuple[str, ...] = argument(
        "POD|KIND/NAME",
        many=True,
        type=POD_WORDS,
        help=Text(
            "mnist-worker-0, pytorchjob/mnist, deployment/web: whatever has pods",
            "mnist-worker-0、pytorchjob/mnist、deployment/web：任何拥有 Pod 的对象",
        ),
    )
    follow: bool = flag("-f", "--follow", help=Text("go on until they end", "持续输出直到结束"))
    previous: bool = flag("-p", "--previous", help=Text("of the life before the restart", "重启之前的日志"))
    rank: int | None = option("--rank", metavar="N", type=WHOLE, help=Text("of this replica alone", "只看该序号的副本"))
    container: str = option(
        "-c", "--container", metavar="NAME", default="", help=Text("default: the first", "默认：第一个容器")
    )
    all_containers: bool = flag("--all-containers", help=Text("of all containers", "所有容器"))
    tail: int = option(
        "--tail",
        metavar="LINES",
        type=WHOLE,
        default=-1,
        help=Text("the last lines (default: all)", "最后若干行（默认：全部）"),
    )
    since: str = option(
        "--since", metavar="TIME", default="", help=Text("not older than 30s, 5m, 2h", "不早于 30s、5m、2h")
    )
    timestamps: bool = flag("--timestamps", help=Text("with the time of each line", "每行带时间"))
    plain: bool = flag("--no-prefix", help=Text("without who wrote it", "不显示由谁输出"))


def run(options: Options) -> int:
    wanted = LogSelection(
        options.follow, options.previous, seconds(options.since), options.tail, options.timestamps,
        options.container, options.all_containers,
    )  # fmt: skip
    return on_cluster(options, lambda session: _work(session, options, wanted))


async def _work(session: ClusterSession, options: Options, wanted: LogSelection) -> int:
    kind, name = await one_named(session.kinds, options.words, "pods")
    about = f"{kind.singular_name}/{name}"
    first = await _pods(session, kind, name, options.rank)
    if (
        not first
        and options.rank is not None
        and (there := await dossier.pods_of(session.client, kind, name, session.home(kind)))
    ):
        ranks = sorted({rank for pod in there if (rank := dossier.rank(pod)) is not None})
        raise CommandError(NO_RANK(about=about, rank=options.rank, there=", ".join(map(str, ranks)) or "-"))
    if not first and not options.follow:
        raise CommandError(NO_PODS(about=about))
    if not first:
        print(WAITING(about=about), file=sys.stderr)

    async def pods() -> Sequence[Object]:
        return await _pods(session, kind, name, options.rank)

    several = (
        len(first) > 1 or options.all_containers or (kind.kind != "Pod" and options.rank is None and options.follow)
    )
    prefixes = _Prefixes(
        name, colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"), containers=options.all_containers
    )
    async for line in loglines.lines(session.client, pods, wanted):
        before = prefixes.of(line) if several and not options.plain else b""
        sys.stdout.buffer.write(before + line.text + b"\n")
        sys.stdout.buffer.flush()
    return 0


async def _pods(session: ClusterSession, kind: Kind, name: str, rank: int | None) -> list[Object]:
    found = await dossier.pods_of(session.client, kind, name, session.home(kind))
    return found if rank is None else [pod for pod in found if dossier.rank(pod) == rank]


class _Prefixes:
    """Of each pod one, in a colour of its own: what is the same in all, the object's name, is left out."""

    def __init__(self, owner: str, *, colour: bool, containers: bool) -> None:
        self._owner = owner
        self._colour = colour
        self._containers = containers
        self._known: dict[tuple[str, str], bytes] = {}
        self._width = 0

    def of(self, line: LogLine) -> bytes:
        key = (line.source.pod["metadata"]["name"], line.source.container)
        if key not in self._known:
            self._known[key] = self._made(*key, line.source.pod)
        return self._known[key]

    def _made(self, pod: str, container: str, obj: Object) -> bytes:
        short = pod.removeprefix(f"{self._owner}-") or pod
        rank = dossier.rank(obj)
        text = short + (f" #{rank}" if rank is not None else "") + (f" {container}" if self._containers else "")
        self._width = max(self._width, layout.width(text))
        shown = f"{layout.padded(text, self._width)} │ "
        number = rank if rank is not None else len(self._known)
        return (f"\x1b[{COLOURS[number % len(COLOURS)]}m{shown}\x1b[0m" if self._colour else shown).encode()


def seconds(text: str) -> int:
    if not text:
        return 0
    if not re.fullmatch(rf"(?:{_DURATION.pattern})+", text):
        raise UsageError(NO_DURATION(text=text))
    return sum(int(count) * _SECONDS[unit] for count, unit in _DURATION.findall(text))
