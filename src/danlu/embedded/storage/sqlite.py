"""The journal: an append-only log of changes in SQLite, written by one thread that commits in groups.

One row per change, keyed by its revision. The newest row of a key is the object; older rows are the history that
watches resume from after a restart, and are dropped some thousand revisions later. So each object is written once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from danlu.embedded.storage.events import Change

FORMAT = 1
# Revisions of history kept on disk for watches that resume after a restart.
HISTORY = 10_000
# Superseded rows are dropped this many at a time, so that no single commit gets long.
PRUNE_BATCH = 500

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, change TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL
);
"""


class DataDirectoryError(Exception):
    """The data directory cannot be used; the message says why and what to do."""


class SqliteJournal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._wake = threading.Condition()
        self._queue: list[Change] = []
        self._closing = False
        self._thread: threading.Thread | None = None
        # (revision of the change that replaced it, its own revision): droppable once history has moved on
        self._superseded: deque[tuple[int, int]] = deque()
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            database = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
            found = self._format(database)  # before anything is written to it
            if found > FORMAT:
                raise DataDirectoryError(
                    f"{self._path} was written by a newer Danlu (format {found}, this one knows {FORMAT}); "
                    "update Danlu or choose another --data-dir"
                )
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            database.execute("PRAGMA wal_autocheckpoint=4000")
            database.executescript(SCHEMA)
            database.execute("INSERT OR IGNORE INTO facts VALUES ('format', ?), ('forgotten', 0)", (FORMAT,))
        except sqlite3.Error as error:
            raise DataDirectoryError(f"cannot use {self._path}: {error}") from error
        return database

    @staticmethod
    def _format(database: sqlite3.Connection) -> int:
        if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone() is None:
            return 0
        row = database.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
        return int(row[0]) if row else 0

    def forgotten(self) -> int:
        row = self._database.execute("SELECT value FROM facts WHERE name = 'forgotten'").fetchone()
        return int(row[0])

    def load(self) -> Iterator[tuple[int, str, str, str, str, bytes]]:
        newest: dict[tuple[str, str, str], int] = {}
        rows = self._database.execute(
            "SELECT revision, change, resource, namespace, name, object FROM log ORDER BY revision"
        )
        for row in rows:
            revision, change, key = row[0], row[1], row[2:5]
            self._note_superseded(revision, newest.pop(key, None), change)
            if change != "DELETED":
                newest[key] = revision
            yield row

    def _note_superseded(self, revision: int, before: int | None, change: str) -> None:
        if before is not None:
            self._superseded.append((revision, before))
        if change == "DELETED":
            self._superseded.append((revision, revision))

    def start(self, done: Callable[[list[Change], Exception | None], None]) -> None:
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, args=(loop, done), name="danlu-journal", daemon=True)
        self._thread.start()

    def append(self, change: Change) -> None:
        with self._wake:
            self._queue.append(change)
            if len(self._queue) == 1:
                self._wake.notify()

    def _write(self, loop: asyncio.AbstractEventLoop, done: Callable[[list[Change], Exception | None], None]) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    self._wake.wait()
                batch, self._queue = self._queue, []
            if not batch:
                return
            error: Exception | None = None
            try:
                self._commit(batch)
            except sqlite3.Error as problem:
                error = problem
                # What was queued meanwhile may build on what has just failed: it fails too.
                with self._wake:
                    batch, self._queue = batch + self._queue, []
            loop.call_soon_threadsafe(done, batch, error)

    def _commit(self, batch: list[Change]) -> None:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany(
                "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (c.revision, c.type, c.stored.resource, c.stored.namespace, c.stored.name, c.stored.raw)
                    for c in batch
                ],
            )
            pruned = self._prune(batch[-1].revision)
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        for _ in range(pruned):
            self._superseded.popleft()
        for change in batch:
            before = change.previous.revision if change.previous is not None else None
            self._note_superseded(change.revision, before, change.type)

    def _prune(self, revision: int) -> int:
        limit = revision - HISTORY
        if len(self._superseded) < PRUNE_BATCH or self._superseded[PRUNE_BATCH - 1][0] > limit:
            return 0
        dropped = [self._superseded[index][1] for index in range(PRUNE_BATCH)]
        forgotten = self._superseded[PRUNE_BATCH - 1][0]
        self._database.executemany("DELETE FROM log WHERE revision = ?", [(number,) for number in dropped])
        self._database.execute("UPDATE facts SET value = ? WHERE name = 'forgotten'", (forgotten,))
        return PRUNE_BATCH

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        self._database.close()
