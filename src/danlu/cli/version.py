"""`danlu version`"""

from __future__ import annotations

import argparse

from danlu import __version__


def arguments(_: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(_: argparse.Namespace) -> int:
    print(f"danlu {__version__} (serves the API of Kubernetes v1.36)")
    return 0
