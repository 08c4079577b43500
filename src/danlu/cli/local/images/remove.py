"""`danlu images rm NAME`: takes an image out of the store, or an entry of one's own out of images.yaml."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.cli.command import CommandOptions, argument
from danlu.cli.failures import CommandError
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import image_errors
from danlu.cli.local.images.storelookup import store_of
from danlu.cli.place import data_directory
from danlu.embedded.node.images import reference
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.environments import userimages

NOT_YOURS = Text(
    "{name} is neither in the store nor among your own entries in {file}",
    "镜像仓和 {file} 中您自己的条目里都没有 {name}",
)
REMOVED_IMAGE = Text("removed image {name}", "已删除镜像 {name}")
REMOVED = Text("removed {name} from {file}", "已从 {file} 删除 {name}")


@dataclass(frozen=True)
class Options(CommandOptions):
    name: str = argument("IMAGE", help=Text("as `danlu images` lists it", "名称见 `danlu images`"))


@image_errors
def run(options: Options) -> int:
    root = data_directory(options).root
    if _forgotten(store_of(options), options.name):
        print(REMOVED_IMAGE(name=options.name))
        return 0
    if not userimages.remove(root, options.name):
        raise CommandError(NOT_YOURS(name=options.name, file=root / "images.yaml"))
    print(REMOVED(name=options.name, file=root / "images.yaml"))
    return 0


def _forgotten(store: ImageStore, name: str) -> bool:
    """What containers run of it goes with the next sweep of the node, which knows them."""
    try:
        return store.forget(str(reference.parse(name)))
    except reference.InvalidName:
        return False
