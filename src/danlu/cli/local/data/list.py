"""`danlu data list`"""

from __future__ import annotations

from danlu.cli.command import CommandOptions as Options
from danlu.cli.language import Text
from danlu.environments.datasets import DATA_SETS

__all__ = ["Options", "run"]


PICTURES = Text("{folder}/raw, 60,000 + 10,000 pictures of 28 × 28", "{folder}/raw，60,000 + 10,000 张 28 × 28 的图片")


def run(_: Options) -> int:
    for name, one in DATA_SETS.items():
        print(f"{name:<15} {PICTURES(folder=one.folder)}")
    return 0
