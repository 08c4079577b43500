"""`danlu images remove NAME`: takes an entry of one's own out of images.yaml."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.cli.command import CommandOptions, argument
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.place import data_directory
from danlu.environments import userimages

NOT_YOURS = Text("{name} is not among your own entries in {file}", "{file} 中您自己的条目里没有 {name}")
REMOVED = Text("removed {name} from {file}", "已从 {file} 删除 {name}")


@dataclass(frozen=True)
class Options(CommandOptions):
    name: str = argument("IMAGE", help=Text("as `danlu images` lists it", "名称见 `danlu images`"))


@image_errors
def run(options: Options) -> int:
    root = data_directory(options).root
    if not userimages.remove(root, options.name):
        raise CommandError(NOT_YOURS(name=options.name, file=root / "images.yaml"))
    print(REMOVED(name=options.name, file=root / "images.yaml"))
    return 0
