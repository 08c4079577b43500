"""Which data directory a command is about."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.cli.main import CommandError
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.storage import DataDirectoryError
from danlu.settings import default_home


@contextmanager
def stopped(directory: DataDirectory, command: str) -> Iterator[None]:
    """For what must not happen beside a server: nobody else uses the directory until the end of the block."""
    try:
        directory.prepare()
        directory.acquire()
    except DataDirectoryError as error:
        text = f"{error}; `danlu {command}` needs it stopped, and `danlu down --keep-pods` leaves the pods running"
        raise CommandError(text if "already running" in str(error) else str(error)) from error
    try:
        yield
    except DataDirectoryError as error:
        raise CommandError(str(error)) from error
    finally:
        directory.release()


def data_directory(arguments: argparse.Namespace) -> DataDirectory:
    chosen: Path | None = arguments.data_dir
    directory = DataDirectory(chosen or default_home())
    try:
        directory.check()
    except DataDirectoryError as error:
        raise CommandError(str(error)) from error
    return directory
