"""Data directories of format 1: rows get seals, secrets get encrypted, in one transaction of the same file."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable

from danlu.embedded.storage import database as files
from danlu.embedded.storage.encryption import Keyring
from danlu.embedded.storage.quarantine import HISTORY, OBJECT, Finding, Quarantine, Version, object_id
from danlu.embedded.storage.records import CHANGES, DELETED, Key, Ledger, Row, problem_of_object, sealed

log = logging.getLogger("danlu.storage")


def from_format_1(database: sqlite3.Connection, keyring: Keyring, quarantine: Quarantine) -> list[Finding]:
    """A crash leaves format 1 as it was. Objects that cannot be read are set aside first."""
    database.execute("PRAGMA secure_delete=ON")  # secrets in the clear must not stay in free pages
    database.execute("BEGIN IMMEDIATE")
    try:
        forgotten = 0
        row = database.execute("SELECT value FROM facts WHERE name = 'forgotten'").fetchone()
        if row and isinstance(row[0], int):
            forgotten = row[0]
        query = "SELECT revision, change, resource, namespace, name, object, x'' FROM log ORDER BY revision"
        rows = [Row(*found) for found in database.execute(query)]
        kept, findings = _sorted_out(rows)
        for finding in findings:
            quarantine.add(finding)
        database.execute("ALTER TABLE log ADD COLUMN seal BLOB NOT NULL DEFAULT x''")
        gone = {row.revision for row in rows} - {row.revision for row in kept}
        database.executemany("DELETE FROM log WHERE revision = ?", [(revision,) for revision in gone])
        if gone and rows:
            forgotten = rows[-1].revision
        ledger = Ledger(0, 0, 0, forgotten)
        changed = []
        for row in kept:
            stored = keyring.stored(*row[:5], row.object)
            new, ledger = sealed(ledger, (*row[:5], stored))
            changed.append((stored, new.seal, row.revision))
        database.executemany("UPDATE log SET object = ?, seal = ? WHERE revision = ?", changed)
        database.execute("DELETE FROM facts")
        files.set_format(database)
        database.execute("COMMIT")
    except sqlite3.Error:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    database.execute("VACUUM")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("PRAGMA secure_delete=OFF")
    log.warning("the store was brought to format %d: %d rows", files.FORMAT, len(kept))
    return findings


def sealed_format_1(rows: Iterable[Row]) -> list[Row]:
    """Rows that were read out of the pages of a damaged file: only what is plainly the object of its name."""
    ledger = Ledger()
    found = []
    for row in rows:
        if row.change in CHANGES and not problem_of_object(row, row.object):
            new, ledger = sealed(ledger, (*row[:5], row.object))
            found.append(new)
    return found


def _sorted_out(rows: list[Row]) -> tuple[list[Row], list[Finding]]:
    newest: dict[Key, Row] = {}
    good: dict[Key, Row] = {}
    problems: dict[int, str] = {}
    for row in rows:
        newest[row.key] = row
        problem = "what happened to it is unknown" if row.change not in CHANGES else problem_of_object(row, _bytes(row))
        if problem:
            problems[row.revision] = problem
        else:
            good[row.key] = row
    findings = []
    hurt: set[Key] = set()
    for row in rows:
        if row.revision not in problems:
            continue
        current = newest[row.key] is row and row.change != DELETED
        if current:
            hurt.add(row.key)
        before = good.get(row.key)
        findings.append(
            Finding(
                object_id(row.revision), OBJECT if current else HISTORY,
                f"revision {row.revision}: {problems[row.revision]}",
                resource=str(row.resource), namespace=str(row.namespace), name=str(row.name),
                damaged=Version.of(row),
                previous=Version.of(before) if current and before and before.change != DELETED else None,
            )
        )  # fmt: skip
    gone = {row.key for row in rows if row.revision in problems and newest[row.key] is row}
    kept = [row for row in rows if row.revision not in problems and row.key not in hurt | gone]
    return kept, findings


def _bytes(row: Row) -> bytes:
    return row.object if isinstance(row.object, bytes) else b""
