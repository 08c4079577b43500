"""Backups: one file with the whole log at one revision, checksums inside, keys and certificates by choice.

A tar archive: `store.db` (rows as they lie on the disk, so what is encrypted stays encrypted), `pki/…` and
`encryption.key` where asked for, `manifest.json` with the SHA-256 of each, and `manifest.sha256`.

A backup is taken beside a running server: one SELECT of SQLite sees one revision. A restore verifies everything before
it touches anything, and lets revisions go on beyond all that can have been handed out since.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from danlu.embedded.storage import database as files
from danlu.embedded.storage.acknowledged import Acknowledged
from danlu.embedded.storage.encryption import Keyring, Unreadable, default_key_file
from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.integrity import inspect
from danlu.embedded.storage.quarantine import Quarantine, sync_folder
from danlu.embedded.storage.records import DELETED, MARK, Key, Ledger, Row, checked_key, examine, sealed
from danlu.embedded.storage.recovery import Opening

VERSION = 1
STORE, MANIFEST, CHECKSUM, KEYS = "store.db", "manifest.json", "manifest.sha256", "encryption.key"
# Revisions skipped by a restore: what was handed out since the backup is unknown. No server writes so many in a second.
MARGIN = 1_000_000_000
PER_SECOND = 10_000


class BackupError(Exception):
    """The backup cannot be made or used; the message says why and what to do."""


@dataclass(slots=True)
class Backup:
    """A backup that was read and found whole."""

    revision: int
    created: float
    rows: list[Row]
    extra: dict[str, bytes] = field(default_factory=dict)  # pki/… and encryption.key

    def current(self) -> dict[Key, Row]:
        found: dict[Key, Row] = {}
        for row in self.rows:
            found.pop(row.key, None)
            if row.change not in (DELETED, MARK):
                found[row.key] = row
        return found

    def keyring(self, folder: Path, present: Path) -> Keyring:
        """The keys that are there, which go on encrypting, and its own if it has them."""
        both = (present.read_bytes() if present.exists() else b"") + b"\n" + self.extra.get(KEYS, b"")
        path = folder / KEYS
        path.write_bytes(both)
        path.chmod(0o600)
        return Keyring(path)


# -- making one


def make(database: Path, target: Path, version: str, *, running: bool, extra: Iterable[Path] = ()) -> Backup:
    """`extra`: files of the data directory that go with it. Raises BackupError; `target` is then as it was."""
    rows = _rows_beside_a_server(database) if running else _rows_of_a_stopped(database)
    verdict = inspect(rows, None)
    if not verdict.whole or not rows:
        raise BackupError(f"{database} is damaged or empty; `danlu up` mends it and says what is missing")
    root = database.parent
    further = {
        str(path.relative_to(root)): path.read_bytes() for path in extra if path.is_file() and root in path.parents
    }
    key_file = default_key_file(database)
    if KEYS in {path.name for path in extra} and key_file.exists():
        further[KEYS] = key_file.read_bytes()
    made = Backup(verdict.ledger.revision, time.time(), rows, further)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".danlu-backup-", dir=target.parent) as folder:
        built = files.build(Path(folder) / STORE, rows)
        members = {STORE: built.read_bytes(), **further}
        _write(Path(folder) / "archive", members, made, version)
        os.replace(Path(folder) / "archive", target)
    sync_folder(target.parent)
    read(target)  # what was just written can be read: a backup that nobody has looked at is a hope
    return made


def _rows_beside_a_server(path: Path) -> list[Row]:
    try:
        with contextlib.closing(files.connect(path)) as database:
            if files.format_of(database) != files.FORMAT:
                raise BackupError(f"{path} has another format; `danlu down && danlu up` brings it up to date")
            return files.read_rows(database)
    except sqlite3.Error as error:
        raise BackupError(f"cannot read {path}: {error}") from error


def _rows_of_a_stopped(path: Path) -> list[Row]:
    """Opened as a start opens it: who closes a database last puts its log away, damaged or not."""
    if not path.exists():
        raise BackupError(f"there is no {path}: nothing to back up")
    try:
        opened = Opening(path, Keyring(default_key_file(path)), Quarantine(path.with_name("quarantine"))).open()
    except DataDirectoryError as error:
        raise BackupError(str(error)) from error
    opened.database.close()
    opened.acknowledged.close()
    return [row for row, _ in opened.rows]


def _write(path: Path, members: dict[str, bytes], made: Backup, version: str) -> None:
    manifest: dict[str, Any] = {
        "version": VERSION,
        "danlu": version,
        "revision": made.revision,
        "created": made.created,
        "rows": len(made.rows),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    text = json.dumps(manifest, indent=1, sort_keys=True).encode()
    content = {MANIFEST: text, CHECKSUM: hashlib.sha256(text).hexdigest().encode(), **members}
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, data in content.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(data), 0o600, int(made.created)
                archive.addfile(entry, io.BytesIO(data))
        file.flush()
        os.fsync(file.fileno())


# -- reading one


def read(path: Path) -> Backup:
    """All of it, verified. Raises BackupError."""
    try:
        members = _members(path)
        text = members.pop(MANIFEST)
        if hashlib.sha256(text).hexdigest().encode() != members.pop(CHECKSUM):
            raise BackupError(f"{path} is damaged: its manifest does not fit its checksum; take another backup")
        manifest = json.loads(text)
        if manifest["version"] > VERSION:
            raise BackupError(f"{path} was made by a newer Danlu ({manifest['danlu']}); update Danlu")
        wanted: dict[str, str] = manifest["files"]
        for name, digest in wanted.items():
            if hashlib.sha256(members[name]).hexdigest() != digest:
                raise BackupError(f"{path} is damaged: {name} in it does not fit its checksum; take another backup")
        rows = _rows(members[STORE])
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError) as error:
        raise BackupError(f"{path} is no backup of Danlu, or damaged ({error})") from error
    extra = {name: members[name] for name in wanted if name != STORE}
    verdict = inspect(rows, None)
    if not verdict.whole or verdict.ledger.revision != manifest["revision"] or len(rows) != manifest["rows"]:
        raise BackupError(f"{path} is damaged: its rows do not fit their seals; take another backup")
    return Backup(manifest["revision"], float(manifest["created"]), rows, extra)


def _members(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(path, "r:") as archive:
        for entry in archive:
            data = archive.extractfile(entry) if entry.isreg() else None
            if data is None or entry.name.startswith("/") or ".." in entry.name.split("/"):
                raise BackupError(f"{path} is no backup of Danlu: {entry.name!r} has no place in one")
            found[entry.name] = data.read()
    return found


def _rows(content: bytes) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="danlu-backup-") as folder:
        path = Path(folder) / STORE
        path.touch(0o600)
        path.write_bytes(content)
        try:
            with contextlib.closing(files.connect(path)) as database:
                return files.read_rows(database)
        except sqlite3.Error as error:
            raise BackupError(f"the database in the backup cannot be read: {error}") from error


# -- putting one back


def restore(backup: Backup, database: Path, aside: Path) -> int:
    """Into a directory whose lock the caller holds; what is there goes to the folder `aside`. The revision after it."""
    root = database.parent
    key_file = default_key_file(database)
    with tempfile.TemporaryDirectory(prefix=".danlu-restore-", dir=root) as folder:
        keyring = backup.keyring(Path(folder), key_file)
        for row in backup.rows:
            try:
                keyring.content(row)
            except Unreadable as error:
                raise BackupError(
                    f"{row.resource} {row.namespace}/{row.name} in the backup cannot be decrypted: {error}; put the "
                    f"key file of that time at {key_file}"
                ) from error
        acknowledged = Acknowledged(database.with_suffix(".ack"))
        mark, ledger = _mark(backup, acknowledged.ledger)
        files.build(database, [*backup.rows, mark])
        if keyring.keys:
            keyring.path = key_file
            keyring.write()
    _put_files(backup, root, aside)
    acknowledged.write(ledger, [checked_key(mark)], sync=True)
    acknowledged.close()
    files.install(database, aside)
    return mark.revision


def _mark(backup: Backup, acknowledged: Ledger | None) -> tuple[Row, Ledger]:
    elapsed = max(time.time() - backup.created, 0.0)
    last = max(backup.revision, acknowledged.revision if acknowledged else 0)
    revision = last + max(MARGIN, int(elapsed * PER_SECOND))
    ledger = Ledger(0, 0, 0, revision)
    for row in backup.rows:
        ledger = ledger.with_row(row.revision, examine(row).check)
    mark, ledger = sealed(ledger, (revision, MARK, "", "", "", b"{}"))
    return mark, ledger


def _put_files(backup: Backup, root: Path, aside: Path) -> None:
    for name, content in backup.extra.items():
        if name == KEYS:
            continue  # both sets of keys are kept: see `keyring`
        path = root / name
        if path.exists() and path.read_bytes() != content:
            kept = aside / name
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.replace(kept)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.new")
        partial.touch(0o600)
        partial.write_bytes(content)
        partial.replace(path)
