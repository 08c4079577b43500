"""`danlu encryption`: which key secrets are encrypted with, where it lies; `rotate` makes a new one."""

from __future__ import annotations

import argparse

from danlu.cli.main import CommandError
from danlu.cli.place import data_directory, stopped
from danlu.embedded.storage import SqliteJournal
from danlu.embedded.storage.encryption import Keyring, default_key_file


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", nargs="?", choices=("status", "rotate"), default="status")


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    path = default_key_file(directory.database)
    if arguments.what == "status":
        keyring = Keyring(path)
        print(f"encrypted  {', '.join(sorted(keyring.resources))} (AES-256-GCM)")
        print(f"key file   {path}" + ("" if keyring.keys else " (made when the first secret is stored)"))
        for number, key in enumerate(keyring.keys):
            print(f"key        {key.id.hex()} of {key.created}" + ("" if number == 0 else ", until the next start"))
        return 0
    with stopped(directory, "encryption rotate"):
        keyring = Keyring(path)
        if keyring.damaged:
            raise CommandError(f"{path} has keys that cannot be read; put a good copy of it in place first")
        if not directory.database.exists():
            raise CommandError(f"there is nothing in {directory.root} yet; `danlu up` makes it")
        new = keyring.add()
        # Opening the store encrypts anew what an older key encrypted, and drops the older keys. A crash in between
        # leaves both keys in the file; the next start does the rest.
        SqliteJournal(directory.database, keyring).close()
    print(f"secrets are encrypted with the new key {new.id.hex()}; older keys are gone from {path}")
    print("backups from before need the key file of their time, unless they were made with --with-keys")
    return 0
