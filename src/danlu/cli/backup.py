"""`danlu backup FILE`: all objects at one revision, verified, in one file. The server may run meanwhile."""

from __future__ import annotations

import argparse
from pathlib import Path

from danlu import __version__
from danlu.cli.main import CommandError
from danlu.cli.place import data_directory, stopped
from danlu.embedded.storage.backup import KEYS, Backup, BackupError, make


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="where to write it; replaced when it is there")
    command.add_argument(
        "--with-keys",
        action="store_true",
        help="also the certificates and all keys, those of encrypted secrets too: whoever has the file has everything",
    )


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    target = arguments.file.expanduser().absolute()
    extra = [*sorted(directory.certificates.glob("*")), directory.root / KEYS] if arguments.with_keys else []
    try:
        if directory.holder() is not None:
            made = make(directory.database, target, __version__, running=True, extra=extra)
        else:
            with stopped(directory, "backup"):
                made = make(directory.database, target, __version__, running=False, extra=extra)
    except BackupError as error:
        raise CommandError(str(error)) from error
    print(f"{target}: {_counted(made)} at revision {made.revision}, {target.stat().st_size:,} bytes, verified")
    if not arguments.with_keys:
        print("without keys: secrets in it can be read only with the key file (`danlu encryption`), or use --with-keys")
    print("volumes are not in it: copy them from the data directory by other means")
    return 0


def _counted(made: Backup) -> str:
    number = len(made.current())
    return f"{number} object" if number == 1 else f"{number} objects"
