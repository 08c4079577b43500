"""`danlu version`"""

from __future__ import annotations

from danlu import __version__
from danlu.cli.command import CommandOptions as Options
from danlu.cli.language import Text

__all__ = ["Options", "run"]


SERVES = Text("danlu {version} (serves the API of Kubernetes v1.36)", "danlu {version}（提供 Kubernetes v1.36 的 API）")


def run(_: Options) -> int:
    print(SERVES(version=__version__))
    return 0
