"""What was found damaged: which version of it can be had, from the history or from a backup, and putting it back."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson

from danlu.embedded.storage.backup import read
from danlu.embedded.storage.encryption import Keyring, Unreadable, default_key_file
from danlu.embedded.storage.quarantine import Finding, Version
from danlu.embedded.storage.records import Row
from danlu.embedded.storage.sqlite import SqliteJournal
from danlu.embedded.storage.store import Store


class CreatedAnew(Exception):
    """There is an object of that name again; it is left as it is."""


async def put_back(database: Path, finding: Finding, obj: dict[str, Any]) -> None:
    """With its uid, straight into the store: what it owns must go on belonging to it."""
    store = Store(SqliteJournal(database))
    store.start()
    try:
        if store.get(*finding.key) is not None:
            raise CreatedAnew(finding.what)
        await store.put(finding.resource, obj)
    finally:
        await store.close()


def recoverable(database: Path, finding: Finding) -> tuple[int, dict[str, Any]] | None:
    """The newest version that is an object of that name."""
    keyring = Keyring(default_key_file(database))
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


def from_backup(database: Path, finding: Finding, path: Path) -> tuple[int, dict[str, Any]] | None:
    """Raises BackupError."""
    backup = read(path)
    row = backup.current().get(finding.key)
    if row is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        obj = _object(backup.keyring(Path(folder), default_key_file(database)), row)
    return (row.revision, obj) if obj is not None else None
