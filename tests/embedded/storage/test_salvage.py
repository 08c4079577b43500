"""Rows out of pages: which are found there, and which must not be, for they were dropped."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from danlu.embedded.storage import database as files
from danlu.embedded.storage.records import DELETED, Ledger, Row, sealed
from danlu.embedded.storage.recovery import _without_dropped
from danlu.embedded.storage.salvage import read_pages


def rows(*entries: tuple[str, str], size: int = 1500) -> list[Row]:
    """(change, name) of each; revisions begin at 1."""
    ledger, made = Ledger(), []
    for revision, (change, name) in enumerate(entries, 1):
        row, ledger = sealed(ledger, (revision, change, "things", "default", name, b"x" * size))
        made.append(row)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two hundred rows, two on a page."""
    path = tmp_path / "store.db"
    files.build(path, rows(*(("ADDED", f"n{number}") for number in range(200))))
    files.install(path)
    return path


def test_pages_that_were_given_up_are_left_out(store: Path) -> None:
    """SQLite leaves in them what was there."""
    database = sqlite3.connect(store)
    database.execute("PRAGMA secure_delete=OFF")  # some systems have it on
    database.execute("DELETE FROM log WHERE revision <= 100")
    database.commit()
    assert database.execute("PRAGMA freelist_count").fetchone()[0] > 20
    database.close()
    assert b"n50" in store.read_bytes()
    assert sorted(row.revision for row in read_pages(store).rows()) == [*range(101, 201)]


def test_a_page_that_was_written_again_is_looked_at_in_both_versions(store: Path, tmp_path: Path) -> None:
    """What a damaged end of the log took back may stand in a frame before it."""
    database = sqlite3.connect(store)
    database.execute("PRAGMA journal_mode=WAL")
    (last,) = rows(("ADDED", "late"), size=10)
    database.execute(files.INSERT, last._replace(revision=201))
    database.commit()
    database.execute("DELETE FROM log WHERE revision = 201")
    database.commit()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("store.db", "store.db-wal"):
        shutil.copy(store.with_name(name), copy / name)
    database.close()
    pages = read_pages(copy / "store.db")
    assert 201 not in {row.revision for row in pages.rows()}
    assert 201 in {row.revision for row in pages.rows_of_the_log()}


def test_what_was_dropped_does_not_come_back() -> None:
    """Old pages may have an object before its deletion, or before a newer version that is itself long known."""
    found = rows(
        ("ADDED", "a"), ("ADDED", "b"), (DELETED, "a"), ("MODIFIED", "b"), ("ADDED", "c"), (DELETED, "c"), size=1
    )
    kept = _without_dropped(found, Ledger(0, 0, 0, 4))
    assert [(row.revision, row.name) for row in kept] == [(4, "b"), (5, "c"), (6, "c")]
    assert _without_dropped(found, None) == found
