"""`danlu kubeconfig`: the path of the kubeconfig; `--merge` adds its context to the user's own file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, flag, option
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.cli.place import data_directory
from danlu.cli.valuetypes import PATH
from danlu.embedded.apiserver.auth.kubeconfig import KubeconfigError, merge
from danlu.meta import yamlreader

NOT_YET = Text("there is no {file} yet; `danlu up` makes it", "还没有 {file}；`danlu up` 会生成它")
LEFT = Text("{file} was left as it is: {problem}", "{file} 保持原样：{problem}")
MERGED = Text("{file} now has the context `danlu`", "{file} 中现在有上下文 `danlu`")
MERGED_AND_USED = Text(
    "{file} now has the context `danlu`, and it is the current one", "{file} 中现在有上下文 `danlu`，并且是当前上下文"
)


@dataclass(frozen=True)
class Options(CommandOptions):
    merge: bool = flag(
        "--merge",
        help=Text(
            "add the context `danlu` to your own kubeconfig ($KUBECONFIG or ~/.kube/config)",
            "把上下文 `danlu` 加入您自己的 kubeconfig（$KUBECONFIG 或 ~/.kube/config）",
        ),
    )
    into: Path | None = option(
        "--into",
        metavar="FILE",
        type=PATH,
        help=Text("with --merge: the file to add it to", "与 --merge 同用：要并入的文件"),
    )
    keep_context: bool = flag(
        "--keep-context",
        help=Text("with --merge: leave the current context as it is", "与 --merge 同用：不改变当前上下文"),
    )


def run(options: Options) -> int:
    ours = data_directory(options).kubeconfig
    if not ours.exists():
        raise CommandError(NOT_YET(file=ours))
    if not options.merge:
        print(ours)
        return 0
    target = options.into or _own_file(ours)
    try:
        merge(target, yamlreader.load(ours.read_bytes())[0], use=not options.keep_context)
    except KubeconfigError as error:
        raise CommandError(translated(error)) from error
    except OSError as error:
        raise CommandError(LEFT(file=target, problem=error.strerror or error)) from error
    print((MERGED if options.keep_context else MERGED_AND_USED)(file=target))
    return 0


def _own_file(ours: Path) -> Path:
    """The first file of $KUBECONFIG that is not Danlu's own, as kubectl would write to; else ~/.kube/config."""
    for text in os.environ.get("KUBECONFIG", "").split(os.pathsep):
        if text and Path(text).expanduser().absolute() != ours:
            return Path(text).expanduser()
    return Path("~/.kube/config").expanduser()
