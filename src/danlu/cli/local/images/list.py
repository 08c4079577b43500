"""`danlu images`: environments of this machine, and the images that they stand for."""

from __future__ import annotations

import textwrap

from danlu.cli import layout
from danlu.cli.command import CommandOptions as Options
from danlu.cli.language import Text
from danlu.cli.local.images.environmentlookup import MACHINE_TOOLS, image_errors
from danlu.cli.place import data_directory
from danlu.environments.catalogue import Catalogue

__all__ = ["Options", "run"]

WIDEST = 120
ENVIRONMENT, STATE, WHERE = Text("ENVIRONMENT", "环境"), Text("STATE", "状态"), Text("WHERE", "位置")
IMAGES = Text("IMAGES", "镜像")
BUILT, NOT_BUILT, READY = Text("built", "已构建"), Text("not built", "未构建"), Text("ready", "就绪")
OWN = Text(
    "Your own entries go into {file}; `danlu images build -t NAME FOLDER` writes one.",
    "您自己的条目写在 {file} 中；`danlu images build -t 名称 目录` 会写入一条。",
)


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
    print(f"\n{OWN(file=root / 'images.yaml')}")
    return 0
