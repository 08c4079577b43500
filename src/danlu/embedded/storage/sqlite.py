"""The journal: an append-only log of changes in SQLite, written by one thread that commits in groups.

One row per change, keyed by its revision. The newest row of a key is the object; older rows are the history that
watches resume from after a restart, and are dropped some thousand revisions or some megabytes later. So each object is
written once. What a row looks like is in `records`, how a damaged log is opened in `recovery`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from danlu.embedded.storage import database as files
from danlu.embedded.storage.encryption import Keyring, default_key_file
from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.quarantine import OBJECT, Finding, Quarantine, Version, object_id
from danlu.embedded.storage.records import (
    DELETED,
    MODIFIED,
    CheckedKey,
    Key,
    Ledger,
    Row,
    check_of,
    sealed_all,
)
from danlu.embedded.storage.recovery import Opening
from danlu.embedded.storage.space import Space
from danlu.embedded.storage.watchcache import Change

if TYPE_CHECKING:
    from danlu.embedded.storage.stored import Stored

__all__ = ["DataDirectoryError", "SqliteJournal"]
log = logging.getLogger("danlu.storage")

# History kept on disk for watches that resume after a restart: revisions, and bytes of superseded rows.
HISTORY = 10_000
HISTORY_BYTES = 64 << 20
# Superseded rows are dropped this many at a time, so that no single commit gets long.
PRUNE_BATCH = 500
COUNT_EVERY = 64  # commits between two looks at how large the database is
# After this long without a write the log goes back into the database: what lies in one file can be damaged in one file.
IDLE_S = 2.0
# A file that is mostly free pages is written anew when there is nothing else to do.
VACUUM_FREE_BYTES = 16 << 20
VACUUM_LIVE_BYTES = 256 << 20
# Nothing belongs to these, and who needs one that is gone makes it again.
TRANSIENT = frozenset(("leases.coordination.k8s.io", "events", "events.events.k8s.io"))


class SqliteJournal:
    def __init__(self, path: Path, keyring: Keyring | None = None, space: Space | None = None) -> None:
        self._path = path
        self._space = space
        self._until_count = 0
        self._wake = threading.Condition()
        self._queue: list[Change] = []
        self._ready = False  # what is in the queue is to be written
        self._gathering = False  # it is said so when the loop comes to it
        self._closing = False
        self._thread: threading.Thread | None = None
        # (revision of the change that replaced it, its own revision, bytes): droppable once history has moved on
        self._superseded: deque[tuple[int, int, int]] = deque()
        self._history_bytes = 0
        self._keyring = keyring or Keyring(default_key_file(path))
        self.quarantine = Quarantine(path.with_name("quarantine"))
        opened = Opening(path, self._keyring, self.quarantine).open()
        self._database, self._acknowledged = opened.database, opened.acknowledged
        self._ledger = opened.ledger
        self._rows = opened.rows
        self.findings: list[Finding] = opened.findings

    def forgotten(self) -> int:
        return self._ledger.forgotten

    def load(self) -> Iterator[tuple[int, str, str, str, str, bytes]]:
        newest: dict[Key, tuple[int, int]] = {}
        rows, self._rows = self._rows, []
        for row, content in rows:
            before = newest.pop(row.key, None)
            self._note_superseded(row.revision, before, row.change, len(content))
            if row.change != DELETED:
                newest[row.key] = row.revision, len(content)
            yield row.revision, row.change, row.resource, row.namespace, row.name, content

    def held(self) -> dict[Key, str]:
        """Objects that are damaged or lost and wait for `danlu repair`: they are not there, and were not deleted."""
        found: dict[Key, str] = {}
        for one in self.quarantine.findings():
            if one.kind == OBJECT:
                found[one.key] = one.reason
            for write in one.lost:
                key = (write["resource"], write["namespace"], write["name"])
                found.pop(key, None)
                if write["change"] != DELETED:
                    found[key] = f"revision {write['revision']} is lost"
        return {key: why for key, why in found.items() if key[0] not in TRANSIENT}

    def set_aside(self, stored: Stored, why: str) -> None:
        """Into quarantine, on the disk when this returns; the caller takes it out of the log."""
        place = (stored.revision, MODIFIED, stored.resource, stored.namespace, stored.name)
        row = Row(*place, self._keyring.stored(*place, stored.raw), b"")
        finding = Finding(
            object_id(stored.revision), OBJECT, f"revision {stored.revision}: {why}",
            resource=row.resource, namespace=row.namespace, name=row.name, damaged=Version.of(row),
        )  # fmt: skip
        self.quarantine.add(finding)
        self.findings.append(finding)
        log.error("%s is set aside: %s; `danlu repair` tells more", finding.what, why)

    def _note_superseded(self, revision: int, before: tuple[int, int] | None, change: str, size: int) -> None:
        if before is not None:
            self._superseded.append((revision, *before))
            self._history_bytes += before[1]
        if change == DELETED:
            self._superseded.append((revision, revision, size))
            self._history_bytes += size

    def start(self, done: Callable[[list[Change], Exception | None], None]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, args=(loop, done), name="danlu-journal", daemon=True)
        self._thread.start()

    def append(self, change: Change) -> None:
        """It is handed over when the loop has done what it is about: what comes at the same time is one commit."""
        with self._wake:
            self._queue.append(change)
        if not self._gathering:
            self._gathering = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._gathering = False
        with self._wake:
            self._ready = True
            self._wake.notify()

    def _write(self, loop: asyncio.AbstractEventLoop, done: Callable[[list[Change], Exception | None], None]) -> None:
        written = True  # what the start wrote lies in the write-ahead log, too
        while True:
            with self._wake:
                while not self._ready and not self._closing:
                    if not self._wake.wait(IDLE_S if written else None) and not self._ready:
                        break
                batch: list[Change] = []
                if self._ready or self._closing:  # else nothing has come for a while
                    batch, self._queue, self._ready = self._queue, [], False
            if not batch:
                if self._closing:
                    return
                written = False
                self._tidy()
                continue
            written = True
            error: Exception | None = None
            try:
                self._commit_or_make_room(batch)
            except Exception as problem:  # whatever it is: without this thread every write would wait for ever
                error = problem
                if not isinstance(problem, sqlite3.Error | OSError):
                    log.exception("changes could not be stored")
                # What was queued meanwhile may build on what has just failed: it fails too.
                with self._wake:
                    batch, self._queue = batch + self._queue, []
            loop.call_soon_threadsafe(done, batch, error)

    def _commit_or_make_room(self, batch: list[Change]) -> None:
        space = self._space
        try:
            self._commit(batch)
        except (sqlite3.Error, OSError) as problem:
            if space is None or not space.is_full(problem):
                raise
            space.make_room()
            self._start_log_anew(space)
            self._commit(batch)
        if space is not None:
            self._until_count -= 1
            if self._until_count <= 0 or space.alarm:
                self._until_count = COUNT_EVERY
                space.used = self._count_used()

    def _start_log_anew(self, space: Space) -> None:
        """What is in the write-ahead log goes into the database, whose pages have their blocks: the log's are free."""
        with contextlib.suppress(sqlite3.Error):
            self._database.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        space.hold()

    def _count_used(self) -> int:
        """Bytes that hold something; pages of dropped history are free, and used again before the file grows."""
        pages, free, size = (
            self._database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _commit(self, batch: list[Change]) -> None:
        pruned = self._droppable(batch[-1].revision - HISTORY)
        if pruned or len(batch) > files.MOST_ROWS:
            keys = self._commit_in_steps(batch, pruned)
        else:
            rows, keys, ledger = sealed_all(self._ledger, map(self._on_disk, batch))
            files.insert(self._database, rows)
            self._ledger = ledger
        self._acknowledge(keys)
        for _ in range(pruned):
            self._history_bytes -= self._superseded.popleft()[2]
        for change in batch:
            previous = change.previous
            before = (previous.revision, len(previous.raw)) if previous is not None else None
            self._note_superseded(change.revision, before, change.type, len(change.stored.raw))

    def _commit_in_steps(self, batch: list[Change], pruned: int) -> list[CheckedKey]:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            ledger = self._prune(pruned) if pruned else self._ledger
            rows, keys, ledger = sealed_all(ledger, map(self._on_disk, batch))
            for start in range(0, len(rows), files.MOST_ROWS):
                files.insert(database, rows[start : start + files.MOST_ROWS])
            database.execute("COMMIT")
        except Exception:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        self._ledger = ledger
        return keys

    def _on_disk(self, change: Change) -> tuple[int, str, str, str, str, bytes]:
        stored = change.stored
        revision, kind, resource = stored.revision, change.type, stored.resource
        namespace, name, raw = stored.namespace, stored.name, stored.raw
        if resource in self._keyring.resources:
            raw = self._keyring.stored(revision, kind, resource, namespace, name, raw)
        return revision, kind, resource, namespace, name, raw

    def _acknowledge(self, keys: list[CheckedKey]) -> None:
        """The commit is on the disk. If this fails, a later loss may go unnoticed; nothing is lost by it."""
        try:
            self._acknowledged.write(self._ledger, keys)
        except Exception as error:
            log.error("cannot write %s: %s", self._acknowledged.path, error)

    def _prune(self, count: int) -> Ledger:
        """The ledger without so many of the superseded rows, which go."""
        dropped = [one[1] for one in islice(self._superseded, count)]
        checks: list[int] = []
        for start in range(0, count, PRUNE_BATCH):
            some = dropped[start : start + PRUNE_BATCH]
            checks += map(check_of, files.delete(self._database, some))
        return self._ledger.without(checks, self._superseded[count - 1][0])

    def _droppable(self, limit: int) -> int:
        waiting = self._superseded
        # In need of room history is dropped at once: a delete brings some only when the object's older rows go.
        excess = self._history_bytes - (0 if self._space is not None and self._space.alarm else HISTORY_BYTES)
        if excess <= 0 and (len(waiting) < PRUNE_BATCH or waiting[PRUNE_BATCH - 1][0] > limit):
            return 0
        excess += HISTORY_BYTES // 8 if excess > 0 else 0
        count = 0
        while count < min(PRUNE_BATCH, len(waiting)) and (waiting[count][0] <= limit or excess > 0):
            excess -= waiting[count][2]
            count += 1
        # All that one change superseded goes together: `forgotten` then tells exactly what went.
        while 0 < count < len(waiting) and waiting[count][0] == waiting[count - 1][0]:
            count += 1
        return count

    def _tidy(self) -> None:
        """When nothing is to be done. Whatever fails here is tried again after the next writes."""
        if self._space is not None and self._space.alarm:
            self._start_log_anew(self._space)  # neither cut short nor written anew: others would take the blocks
            return
        with contextlib.suppress(sqlite3.Error):
            database = self._database
            database.execute("PRAGMA busy_timeout=0")  # a backup that reads is not waited for
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            free, pages, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("freelist_count", "page_count", "page_size")
            )
            live = (pages - free) * size
            if free * size > max(VACUUM_FREE_BYTES, live) and live < VACUUM_LIVE_BYTES:
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        with contextlib.suppress(sqlite3.Error):
            self._database.execute("PRAGMA busy_timeout=5000")
        if self._space is not None:
            self._space.hold()

    def close(self) -> None:
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        self._database.close()
        self._acknowledged.close()
