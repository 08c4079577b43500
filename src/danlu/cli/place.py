"""Which data directory a command is about."""

from __future__ import annotations

import argparse
from pathlib import Path

from danlu.cli.main import CommandError
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.storage import DataDirectoryError
from danlu.settings import default_home


def data_directory(arguments: argparse.Namespace) -> DataDirectory:
    chosen: Path | None = arguments.data_dir
    directory = DataDirectory(chosen or default_home())
    try:
        directory.check()
    except DataDirectoryError as error:
        raise CommandError(str(error)) from error
    return directory
