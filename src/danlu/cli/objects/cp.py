"""`danlu cp FROM TO`: files and folders into a pod or out of it; POD:PATH is the side that lies there."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import argument, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text
from danlu.cli.objects.exec import place_of
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster
from danlu.client.http import HttpTransport
from danlu.resources import podcopy

ONE_SIDE = Text(
    "one side must be POD:PATH and the other a path of this machine, for example mnist-0:/tmp/model.pt .",
    "一侧必须是 POD:路径，另一侧是本机路径，例如 mnist-0:/tmp/model.pt .",
)
NO_SOURCE = Text("there is no {path} on this machine", "本机没有 {path}")
NO_FOLDER = Text("there is no folder {path} on this machine to copy into", "本机没有可以复制到其中的文件夹 {path}")
FAILED = Text(
    "{what} was not copied: {problem} (the container needs `tar`)", "{what} 没有复制：{problem}（容器中需要 `tar`）"
)
COPIED = Text("copied {what} to {target} ({size})", "已将 {what} 复制到 {target}（{size}）")
LEFT_OUT = Text(
    "left out, because it is a device or leads out of what is copied: {names}",
    "已略过（设备，或指向复制范围之外的链接）：{names}",
)


@dataclass(frozen=True)
class Options(WorkOptions):
    source: str = argument("FROM", help=Text("a path, or POD:PATH", "路径，或 POD:路径"))
    target: str = argument("TO", help=Text("POD:PATH, or a path", "POD:路径，或路径"))
    container: str = option(
        "-c", "--container", metavar="NAME", default="", help=Text("default: the first", "默认：第一个容器")
    )


def run(options: Options) -> int:
    source, target = _remote(options.source), _remote(options.target)
    if bool(source) == bool(target):
        raise UsageError(ONE_SIDE())
    if target and not Path(options.source).exists():
        raise CommandError(NO_SOURCE(path=options.source))
    if source and not Path(options.target).is_dir() and not Path(options.target).parent.is_dir():
        raise CommandError(NO_FOLDER(path=Path(options.target).parent))

    async def work(session: ClusterSession) -> int:
        transport = session.client.transport
        assert isinstance(transport, HttpTransport)
        word, path = source or target or ("", "")
        place = await place_of(session, word, options.container)
        progress = _Progress()
        try:
            if target:
                await podcopy.upload(transport, place, Path(options.source), path, progress)
                left_out = []
            else:
                left_out = await podcopy.download(transport, place, path, Path(options.target), progress)
        except podcopy.CopyFailed as error:
            raise CommandError(FAILED(what=options.source, problem=error)) from error
        finally:
            progress.end()
        if left_out:
            print(LEFT_OUT(names=", ".join(left_out)), file=sys.stderr)
        print(COPIED(what=options.source, target=options.target, size=shown_size(progress.passed)))
        return 0

    return on_cluster(options, work)


def _remote(word: str) -> tuple[str, str] | None:
    """A path of this machine that has a colon in it is written as ./a:b."""
    pod, colon, path = word.partition(":")
    return (pod, path or ".") if colon and pod and not word.startswith((".", "/")) else None


class _Progress:
    def __init__(self) -> None:
        self.passed = 0
        self._shown = sys.stderr.isatty()

    def __call__(self, passed: int) -> None:
        self.passed = passed
        if self._shown:
            sys.stderr.write(f"\r{shown_size(passed)}\x1b[K")
            sys.stderr.flush()

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def shown_size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
