"""Which data directory a command is about."""

from __future__ import annotations

import argparse
from pathlib import Path

from danlu.embedded.datadir import DataDirectory
from danlu.settings import default_home


def data_directory(arguments: argparse.Namespace) -> DataDirectory:
    chosen: Path | None = arguments.data_dir
    return DataDirectory(chosen or default_home())
