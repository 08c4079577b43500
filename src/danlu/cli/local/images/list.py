"""`danlu images`: environments of this machine, and the images that they stand for."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

from danlu.cli import layout
from danlu.cli.command import CommandOptions as Options
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import MACHINE_TOOLS, image_errors
from danlu.cli.place import data_directory
from danlu.embedded.node.images import reference
from danlu.embedded.node.images.imagestore import ImageStore, usage
from danlu.embedded.node.images.ways import Ways
from danlu.embedded.node.imagesource import ImageError
from danlu.environments.catalogue import Catalogue

__all__ = ["Options", "run"]

WIDEST = 120
ENVIRONMENT, STATE, WHERE = Text("ENVIRONMENT", "环境"), Text("STATE", "状态"), Text("WHERE", "位置")
IMAGES = Text("IMAGES", "镜像")
BUILT, NOT_BUILT, READY = Text("built", "已构建"), Text("not built", "未构建"), Text("ready", "就绪")
IMAGE, WAY, SIZE = Text("IMAGE", "镜像"), Text("RUNS", "运行方式"), Text("SIZE", "大小")
BY_HAND, PULLED = Text("itself, put here by hand", "镜像本身（手动放入）"), Text("itself, pulled", "镜像本身（已拉取）")
STANDS = Text("environment {environment}", "环境 {environment}")
INSTEAD = Text("environment {environment}, in its place", "由环境 {environment} 代替")
BROKEN = Text("not whole", "不完整")
DISK = Text("The images take {size} MB of the disk, in {folder}.", "镜像占用磁盘 {size} MB，位于 {folder}。")
OWN = Text(
    "Your own entries go into {file}; `danlu images build -t NAME FOLDER` makes an image.",
    "您自己的条目写在 {file} 中；`danlu images build -t 名称 目录` 可制作镜像。",
)


def _stored(store: ImageStore, ways: Ways) -> None:
    """Images of the store, and which way each went that a pod has asked for."""
    rows = [(IMAGE(), WAY(), SIZE())]
    names = store.names()
    for name, entry in sorted(names.items()):
        try:
            size = f"{store.image(entry.digest).packed / 1e6:.1f} MB"
        except ImageError:
            size = BROKEN()
        rows.append((reference.parse(name).familiar, (BY_HAND if entry.by_hand else PULLED)(), size))
    for name, way in sorted(ways.read().items()):
        if way.environment and not _is_stored(name, names):
            rows.append((name, (INSTEAD if way.replaced else STANDS)(environment=way.environment), ""))
    if len(rows) == 1:
        return
    widths = [max(layout.width(row[column]) for row in rows) + 2 for column in range(2)]
    print()
    for row in rows:
        print((layout.padded(row[0], widths[0]) + layout.padded(row[1], widths[1]) + row[2]).rstrip())
    print(f"\n{DISK(size=f'{usage(store.root) / 1e6:.1f}', folder=store.root)}")


def _is_stored(name: str, names: Collection[str]) -> bool:
    try:
        return str(reference.parse(name)) in names
    except reference.InvalidName:
        return False


@image_errors
def run(options: Options) -> int:
    root = data_directory(options).root
    catalogue = Catalogue(root)
    rows = [(ENVIRONMENT(), STATE(), WHERE())]
    for name, environment in catalogue.environments().items():
        state = (BUILT if environment.is_built else NOT_BUILT) if environment.requirements else READY
        rows.append((name, state(), str(environment.folder or MACHINE_TOOLS())))
    for name, state_text, where in rows:
        print(f"{layout.padded(name, 14)} {layout.padded(state_text, 10)} {where}")
    print(f"\n{layout.padded(ENVIRONMENT(), 14)} {IMAGES()}")
    width = max(layout.NARROWEST, min(layout.columns(), WIDEST)) - 15
    for entry in catalogue.entries():
        first, *more = textwrap.wrap("  ".join(entry.get("match") or ()), width) or [""]
        print(f"{entry.get('environment', 'default'):<14} {first}")
        for line in more:
            print(f"{'':<14} {line}")
    _stored(ImageStore(root), Ways(ImageStore(root).root))
    print(f"\n{OWN(file=root / 'images.yaml')}")
    return 0
