"""`danlu images share torch`: an environment for every account of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from danlu.cli.command import CommandOptions, argument, option
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import environment_called, image_errors
from danlu.cli.place import data_directory
from danlu.cli.progressline import ProgressLine
from danlu.cli.valuetypes import PATH
from danlu.environments.catalogue import SHARED_CACHE, Catalogue
from danlu.environments.sharing import share

SHARING = Text("sharing environment {name}", "正在共享环境 {name}")
SHARED = Text("environment {name} is shared: {folder}", "环境 {name} 已共享：{folder}")
FOR_OTHERS = Text(
    "accounts that are to use it: export DANLU_CACHE={folder}", "要使用它的账户：export DANLU_CACHE={folder}"
)


@dataclass(frozen=True)
class Options(CommandOptions):
    name: str = argument("ENVIRONMENT", help=Text("as `danlu images` lists it", "名称见 `danlu images`"))
    to: Path = option(
        "--to",
        metavar="FOLDER",
        type=PATH,
        default=SHARED_CACHE,
        help=Text(
            f"another folder than {SHARED_CACHE}; accounts that are to use it set DANLU_CACHE to it",
            f"放到 {SHARED_CACHE} 以外的目录；要使用它的账户把 DANLU_CACHE 设为该目录",
        ),
    )


@image_errors
def run(options: Options) -> int:
    catalogue = Catalogue(data_directory(options).root)
    bar = ProgressLine(SHARING(name=options.name))
    shared = share(environment_called(catalogue, options.name), options.to.absolute(), bar.show)
    bar.done(SHARED(name=options.name, folder=shared))
    if options.to != SHARED_CACHE:
        print(FOR_OTHERS(folder=options.to.absolute()))
    return 0
