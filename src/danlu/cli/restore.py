"""`danlu restore FILE`: verifies a backup, then puts it in place of what is there, which is kept aside."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from danlu.cli.main import CommandError
from danlu.cli.place import data_directory, stopped
from danlu.embedded.storage.backup import BackupError, read, restore


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="what `danlu backup` wrote")
    command.add_argument(
        "--force", action="store_true", help="although objects are there: they are kept under quarantine/ and replaced"
    )
    command.add_argument("--check", action="store_true", help="only verify the file")


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    try:
        backup = read(arguments.file.expanduser())
        count = len(backup.current())
        if arguments.check:
            print(f"{arguments.file} is whole: {count} objects at revision {backup.revision}")
            return 0
        with stopped(directory, "restore"):
            if directory.database.exists() and not arguments.force:
                raise CommandError(
                    f"there is a store in {directory.root} already; --force replaces it and keeps it aside, "
                    "--data-dir chooses another place"
                )
            aside = directory.quarantine / f"before-restore-{time.strftime('%Y%m%d-%H%M%S')}"
            revision = restore(backup, directory.database, aside)
    except BackupError as error:
        raise CommandError(str(error)) from error
    print(f"{count} objects of revision {backup.revision} are back in {directory.root}; revisions go on at {revision}")
    if aside.exists():
        print(f"what was there is in {aside}")
    print("`danlu up` starts it")
    return 0
