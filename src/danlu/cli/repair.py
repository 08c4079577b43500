"""`danlu repair`: what was found damaged, what can be had back, and taking it back.

danlu repair                                 list the findings
danlu repair show ID                         one finding, with the versions of the object that can be had
danlu repair restore ID [--from FILE] --yes  put the last good version back (or the one of a backup)
danlu repair drop ID --yes                   the finding is dealt with: forget it
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

import orjson
import yaml

from danlu.cli.main import CommandError, UsageError
from danlu.cli.place import data_directory, stopped
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.storage import Finding, Quarantine, SqliteJournal, Store
from danlu.embedded.storage.backup import BackupError, read
from danlu.embedded.storage.encryption import Keyring, Unreadable, default_key_file
from danlu.embedded.storage.quarantine import OBJECT, Version
from danlu.embedded.storage.records import Row

SHOWN = 20  # lost writes


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", nargs="?", choices=("list", "show", "restore", "drop"), default="list")
    command.add_argument("id", nargs="?", metavar="ID", help="a finding, as `danlu repair` lists it")
    command.add_argument(
        "--from", dest="backup", type=Path, metavar="FILE", help="restore: the object as it is in this backup"
    )
    command.add_argument("--yes", action="store_true", help="restore, drop: do it; without this it is only told")


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    quarantine = Quarantine(directory.quarantine)
    if arguments.what == "list":
        return _list(quarantine)
    if not arguments.id:
        raise UsageError(f"repair {arguments.what} needs the ID of a finding; `danlu repair` lists them")
    finding = quarantine.get(arguments.id)
    if finding is None:
        raise CommandError(f"there is no finding {arguments.id!r}; `danlu repair` lists them")
    if arguments.what == "show":
        return _show(directory, finding)
    if arguments.what == "drop":
        return _drop(quarantine, finding, arguments.yes)
    return _restore(directory, quarantine, finding, arguments.backup, arguments.yes)


def _list(quarantine: Quarantine) -> int:
    findings = quarantine.findings()
    if not findings:
        print("nothing was found damaged")
        return 0
    width = max(len(one.id) for one in findings)
    for one in findings:
        print(f"{one.id:<{width}}  {one.found}  {one.what}: {one.reason}")
    print("\n`danlu repair show ID` tells more about one")
    return 0


def _show(directory: DataDirectory, finding: Finding) -> int:
    print(f"{finding.what}\nfound {finding.found}: {finding.reason}")
    if finding.lost:
        print(f"\nlost, of {finding.count}:")
        for one in finding.lost[:SHOWN]:
            name = f"{one['namespace']}/{one['name']}" if one["namespace"] else one["name"]
            print(f"  {one['revision']}  {one['change']:<8}  {one['resource']} {name}")
        if len(finding.lost) > SHOWN:
            print(f"  … and {len(finding.lost) - SHOWN} more in {directory.quarantine / (finding.id + '.json')}")
    if finding.damaged is not None:
        content = finding.damaged.content
        print(f"\nthe damaged version, {len(content)} bytes, begins with {content[:60]!r}")
    if finding.kind == OBJECT:
        found = _recoverable(directory, finding)
        if found is None:
            print(
                "\nno earlier version is in the history; `danlu repair restore ID --from BACKUP` takes one from there"
            )
        else:
            revision, obj = found
            print(f"\nrevision {revision} can be had back with `danlu repair restore {finding.id} --yes`:\n")
            if finding.resource in Keyring(default_key_file(directory.database)).resources:
                obj["data"] = "…"
            print(yaml.safe_dump(obj, sort_keys=False, allow_unicode=True), end="")
    return 0


def _drop(quarantine: Quarantine, finding: Finding, sure: bool) -> int:
    if not sure:
        print(f"would forget {finding.id} ({finding.what}) and its content for good; --yes does it")
        return 0
    quarantine.drop(finding.id)
    print(f"forgot {finding.id} ({finding.what})")
    return 0


def _restore(
    directory: DataDirectory, quarantine: Quarantine, finding: Finding, backup: Path | None, sure: bool
) -> int:
    if finding.kind != OBJECT:
        raise CommandError(f"{finding.id} is no object: there is nothing to put back; `danlu repair drop` forgets it")
    found = _from_backup(directory, finding, backup) if backup else _recoverable(directory, finding)
    if found is None:
        where = f"{backup} has" if backup else "the history has"
        raise CommandError(f"{where} no version of {finding.what} that can be read")
    revision, obj = found
    if not sure:
        print(f"would put {finding.what} back as it was at revision {revision}; --yes does it")
        return 0
    with stopped(directory, "repair restore"):
        asyncio.run(_put(directory.database, finding, obj))
        quarantine.drop(finding.id)
    print(f"{finding.what} is back as it was at revision {revision}; `danlu up` starts with it")
    return 0


async def _put(database: Path, finding: Finding, obj: dict[str, Any]) -> None:
    """With its uid, straight into the store: what it owns must go on belonging to it."""
    store = Store(SqliteJournal(database))
    store.start()
    try:
        if store.get(*finding.key) is not None:
            raise CommandError(f"{finding.what} was created anew since; it is left as it is")
        await store.put(finding.resource, obj)
    finally:
        await store.close()


def _recoverable(directory: DataDirectory, finding: Finding) -> tuple[int, dict[str, Any]] | None:
    """The newest version that is an object of that name."""
    keyring = Keyring(default_key_file(directory.database))
    for version in (finding.damaged, finding.previous):
        obj = _read(keyring, finding, version) if version is not None else None
        if obj is not None and version is not None:
            return version.revision, obj
    return None


def _read(keyring: Keyring, finding: Finding, version: Version) -> dict[str, Any] | None:
    row = Row(version.revision, version.change, *finding.key, version.content, b"")
    return _object(keyring, row)


def _object(keyring: Keyring, row: Row) -> dict[str, Any] | None:
    try:
        obj = orjson.loads(keyring.content(row))
        meta = obj["metadata"]
        fits = meta["name"] == row.name and (meta.get("namespace") or "") == row.namespace
    except (Unreadable, ValueError, KeyError, TypeError):
        return None
    return obj if fits and isinstance(obj, dict) else None


def _from_backup(directory: DataDirectory, finding: Finding, path: Path) -> tuple[int, dict[str, Any]] | None:
    import tempfile

    try:
        backup = read(path.expanduser())
    except BackupError as error:
        raise CommandError(str(error)) from error
    row = backup.current().get(finding.key)
    if row is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        obj = _object(backup.keyring(Path(folder), default_key_file(directory.database)), row)
    return (row.revision, obj) if obj is not None else None
