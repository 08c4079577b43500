"""Which data directory a command is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from danlu.cli.command import CommandOptions
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.embedded.datadir import DataDirectory, InUse
from danlu.embedded.settings import default_home
from danlu.embedded.storage import DataDirectoryError

MUST_BE_STOPPED = Text(
    "{problem}; `danlu {command}` needs it stopped, and `danlu down --keep-pods` leaves the pods running",
    "{problem}；`danlu {command}` 需要先停止它，`danlu down --keep-pods` 会让 Pod 继续运行",
)


@contextmanager
def stopped(directory: DataDirectory, command: str) -> Iterator[None]:
    """For what must not happen beside a server: nobody else uses the directory until the end of the block."""
    try:
        directory.prepare()
        directory.acquire()
    except InUse as error:
        raise CommandError(MUST_BE_STOPPED(problem=translated(error), command=command)) from error
    except DataDirectoryError as error:
        raise CommandError(translated(error)) from error
    try:
        yield
    except DataDirectoryError as error:
        raise CommandError(translated(error)) from error
    finally:
        directory.release()


def data_directory(options: CommandOptions) -> DataDirectory:
    directory = DataDirectory(options.data_dir or default_home())
    try:
        directory.check()
    except DataDirectoryError as error:
        raise CommandError(translated(error)) from error
    return directory
