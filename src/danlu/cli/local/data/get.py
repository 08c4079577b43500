"""`danlu data get mnist|fashion-mnist`: the data sets of the examples, where torchvision and Keras look for them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, flag, option
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.cli.valuetypes import PATH
from danlu.environments.datasets import DATA_SETS, DataSetError, copy_to, get

NO_DATA_SET = Text("there is no data set {name!r}; there are {known}", "没有数据集 {name!r}；有 {known}")
FETCHED = Text(
    "{name} is in {folder}; torchvision finds it with root={root!r}, download=False",
    "{name} 在 {folder} 中；torchvision 用 root={root!r}, download=False 即可找到",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    name: str | None = argument("NAME", default=None, help=Text("mnist or fashion-mnist", "mnist 或 fashion-mnist"))
    to: Path = option(
        "--to",
        metavar="FOLDER",
        type=PATH,
        default=Path("data"),
        help=Text("where to put it (default: ./data)", "存放位置（默认 ./data）"),
    )
    cache: bool = flag(
        "--cache",
        help=Text("only into this machine's cache, where pods find it", "只放入本机缓存，Pod 可以直接使用"),
    )


def run(options: Options) -> int:
    if options.name not in DATA_SETS:
        raise CommandError(NO_DATA_SET(name=options.name, known=", ".join(DATA_SETS)))
    try:
        kept = get(options.name, lambda line: print(translated(line), file=sys.stderr))
    except DataSetError as error:
        raise CommandError(translated(error)) from error
    if options.cache:
        return 0
    target = options.to / DATA_SETS[options.name].folder / "raw"
    copy_to(kept, target)
    print(FETCHED(name=options.name, folder=target, root=str(options.to)))
    return 0
