"""Opening the store: what was acknowledged is there, or it is said what is missing.

1. The rows are read and inspected (`integrity`). Where all is well, which costs a checksum for each row, that is all.
2. What is missing or damaged is looked for in the pages themselves (`salvage`).
3. What cannot be had is recorded (`quarantine`): damaged rows as they are, lost writes by revision and, where known, by
   name. A mark in the log lets revisions go on beyond all that can have been handed out, and ends watches from before.

Every step can be interrupted: findings are on the disk before rows go, and the next start comes to the same verdict.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from danlu.embedded.storage import database as files
from danlu.embedded.storage.acknowledged import Acknowledged
from danlu.embedded.storage.encryption import Keyring, Unreadable, key_of
from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.integrity import Damaged, IntegrityVerdict, inspect
from danlu.embedded.storage.migration import from_format_1, sealed_format_1
from danlu.embedded.storage.quarantine import HISTORY, LOSS, OBJECT, Finding, Quarantine, Version, object_id
from danlu.embedded.storage.records import DELETED, MARK, Key, Ledger, Row, checked_key, examine, sealed
from danlu.embedded.storage.salvage import DatabasePages, read_pages

log = logging.getLogger("danlu.storage")

# Revisions skipped after a loss: more than a server can hand out between two states of the disk.
MARGIN = 1_000_000
NAMED = 1000  # lost writes that are recorded by name


@dataclass(slots=True)
class Opened:
    database: sqlite3.Connection
    acknowledged: Acknowledged
    rows: list[tuple[Row, bytes]]  # with their contents in the clear, in the order of revisions
    ledger: Ledger
    findings: list[Finding] = field(default_factory=list)  # of this start


class Opening:
    def __init__(self, path: Path, keyring: Keyring, quarantine: Quarantine) -> None:
        self.path = path
        self.keyring = keyring
        self.quarantine = quarantine
        self.findings: list[Finding] = []
        self._connection: sqlite3.Connection | None = None
        self._new = False  # or from before there was a record of what was acknowledged
        self._unsure = ""  # why nothing can say whether all is there
        self._aside = quarantine.folder / f"{path.name}-{time.strftime('%Y%m%d-%H%M%S')}"

    def open(self) -> Opened:
        files.install(self.path, self._aside)
        self.acknowledged = Acknowledged(self.path.with_suffix(".ack"))
        try:
            return self._open()
        except sqlite3.Error as error:
            self.acknowledged.close()
            raise DataDirectoryError(f"cannot use {self.path}: {error}") from error
        except BaseException:
            self.acknowledged.close()
            raise

    def _open(self) -> Opened:
        try:
            return self._judge(self._rows())
        except BaseException:
            if self._connection is not None:
                files.close_as_it_is(self._connection, self.path)
            raise

    def _rows(self) -> list[Row]:
        if files.is_empty(self.path) and (self._has_log() or self._was_written()):
            # SQLite would take it for a new one, and throw the log away that may have everything.
            return self._salvage_file("it is empty")
        try:
            self._connection = files.connect(self.path)
            return self._read(self._connection)
        except sqlite3.DatabaseError as error:
            if not files.is_damage(error):
                raise
            return self._salvage_file(str(error))

    @property
    def database(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def _has_log(self) -> bool:
        return not files.is_empty(self.path.with_name(self.path.name + "-wal"))

    def _was_written(self) -> bool:
        return self.acknowledged.ledger is not None and self.acknowledged.ledger.rows > 0

    # -- reading

    def _read(self, database: sqlite3.Connection) -> list[Row]:
        found = files.format_of(database)
        files.refuse_newer(self.path, found)
        if found == 0:
            if self._was_written():
                raise sqlite3.DatabaseError("it is empty")
            files.tune(database)
            files.create(database)
            self._new = True
            return []
        files.tune(database)
        if found == 1:
            self.findings += from_format_1(database, self.keyring, self.quarantine)
            self._new = True
        return files.read_rows(database)

    def _salvage_file(self, why: str) -> list[Row]:
        """SQLite does not read this file: its rows into a new one, the old one aside."""
        pages = read_pages(self.path)
        rows = self._holding(pages.rows_of_the_log())
        self._refuse_ruins(len(rows), why)
        files.build(self.path, rows)
        self._replace_file()
        log.error(
            "%s was damaged (%s): %d rows were read out of its pages into a new one; the old one is in %s",
            self.path, why, len(rows), self._aside,
        )  # fmt: skip
        if self.acknowledged.ledger is None:
            self._unsure = (
                f"{self.path.name} was damaged ({why}); {len(rows)} rows of it could be read, and nothing says how "
                f"many there were; the old file is in {self._aside}"
            )
        return rows

    def _refuse_ruins(self, found: int, why: str) -> None:
        """With less than half of its objects a cluster does harm: what belongs to lost ones would be cleaned up."""
        ledger = self.acknowledged.ledger
        if ledger is None or not ledger.rows:
            if not found:
                raise DataDirectoryError(f"cannot use {self.path}: {why}; move it away and `danlu up` begins anew")
        elif found * 2 < ledger.rows:
            raise DataDirectoryError(
                f"cannot use {self.path}: {why}: {found} of the {ledger.rows} rows are left that were written up to "
                f"revision {ledger.revision}. Put the file back, or `danlu restore --force` a backup; to go on with "
                f"what is left, move {self.acknowledged.path} away"
            )

    def _holding(self, rows: Iterable[Row]) -> list[Row]:
        """Rows that can be trusted, each once, in order; none that nobody was told of."""
        last = self.acknowledged.ledger.revision if self.acknowledged.ledger else None
        found: dict[int, Row] = {}
        older: dict[int, Row] = {}
        for row in rows:
            if examine(row).holds and (last is None or row.revision <= last):
                found[row.revision] = row
            elif row.seal == b"":
                older[row.revision] = row
        if not found and older:
            return sealed_format_1(older[revision] for revision in sorted(older))
        rows_in_order = [found[revision] for revision in sorted(found)]
        return _without_dropped(rows_in_order, self.acknowledged.ledger)

    # -- judging

    def _judge(self, rows: list[Row]) -> Opened:
        ledger = self.acknowledged.ledger
        if ledger is None and not self._new and not self._unsure:
            state = "missing" if self.acknowledged.missing else "damaged"
            self._unsure = (
                f"{self.acknowledged.path.name} was {state} and was made anew; all that is in the log is whole, "
                "but nothing else says whether it ends where it should"
            )
        verdict = inspect(rows, ledger)
        if not verdict.whole:
            verdict = self._search(rows, ledger, verdict)
        contents, damaged = self._contents(verdict.rows)
        verdict.damaged += damaged
        as_read = verdict.rows == rows
        if verdict.whole and as_read and not self._unsure:
            return self._unharmed(verdict, contents)
        return self._mend(rows, verdict, contents)

    def _unharmed(self, verdict: IntegrityVerdict, contents: list[tuple[Row, bytes]]) -> Opened:
        if self.acknowledged.ledger != verdict.ledger:
            self.acknowledged.write(verdict.ledger, sync=True)
        opened = Opened(self.database, self.acknowledged, contents, verdict.ledger, self.findings)
        if any(not self.keyring.is_up_to_date(row) for row in verdict.rows):
            self._encrypt_anew(opened)
        if self.keyring.drop_older():
            log.info("the old encryption keys are no longer needed and were removed from %s", self.keyring.path)
        return opened

    def _search(self, rows: list[Row], ledger: Ledger | None, verdict: IntegrityVerdict) -> IntegrityVerdict:
        """Once more, with what the pages have; and with names for what they have not."""
        pages = read_pages(self.path)
        recent = self.acknowledged.written_after(0) if ledger is not None else []
        found = self._found(pages, rows, verdict)
        if found:
            better = [*(row for row in rows if row.revision not in found), *found.values()]
            better = _without_dropped(sorted(better, key=lambda row: row.revision), ledger)
            again = inspect(better, ledger, recent)
            if again.missing >= 0 and len(again.damaged) <= len(verdict.damaged):
                log.error("%d rows were read out of the pages of %s, which was damaged", len(found), self.path)
                return again
        return inspect(rows, ledger, recent)

    def _found(self, pages: DatabasePages, rows: list[Row], verdict: IntegrityVerdict) -> dict[int, Row]:
        known = set(verdict.checks)
        damaged = {one.row.revision for one in verdict.damaged}
        first = verdict.tail[0] if verdict.tail else verdict.ledger.forgotten + 1
        wanted = pages.rows_of_the_log() if verdict.tail or damaged else pages.rows()
        return {
            row.revision: row
            for row in wanted
            if row.revision not in known
            and (row.revision in damaged or first <= row.revision <= verdict.ledger.revision)
            and examine(row).holds
        }

    def _contents(self, rows: list[Row]) -> tuple[list[tuple[Row, bytes]], list[Damaged]]:
        found, damaged = [], []
        missing_key: list[Row] = []
        for row in rows:
            try:
                found.append((row, self.keyring.content(row)))
            except Unreadable as error:
                if not self.keyring.has(key_of(row) or b""):
                    missing_key.append(row)
                damaged.append(Damaged(row, str(error), True))
        if missing_key:
            names = sorted({(key_of(row) or b"").hex() for row in missing_key})
            state = "damaged" if self.keyring.damaged else "not there" if not self.keyring.keys else "another one"
            raise DataDirectoryError(
                f"{len({row.key for row in missing_key})} objects in {self.path} are encrypted with the key "
                f"{', '.join(names)}, which {self.keyring.path} does not have (that file is {state}); put the key file "
                "back (a backup with --with-keys has it; DANLU_ENCRYPTION_KEY_FILE names another place)"
            )
        return found, damaged

    # -- repair

    def _mend(self, rows: list[Row], verdict: IntegrityVerdict, contents: list[tuple[Row, bytes]]) -> Opened:
        # A damaged row whose name is known is held, so nobody takes its object for gone: it does no harm.
        named = sum(one.key_holds for one in verdict.damaged)
        self._refuse_ruins(len(verdict.rows) + named, "most of its rows cannot be read")
        dropped = self._set_aside(verdict)
        exact = not (verdict.damaged or verdict.missing or verdict.lost or verdict.tail or verdict.forgotten_unknown)
        exact = exact and not self._unsure
        mark = max(verdict.ledger.revision, verdict.rows[-1].revision) + (1 if exact else MARGIN)
        self._report_loss(verdict, mark)
        kept = [(row, content) for row, content in contents if row.revision not in dropped]
        ledger = Ledger(0, 0, 0, verdict.ledger.forgotten if exact else mark)
        for row, _ in kept:
            ledger = ledger.with_row(row.revision, verdict.checks[row.revision])
        last, ledger = sealed(ledger, (mark, MARK, "", "", "", b"{}"))
        if [row for row, _ in kept] == rows:
            self.database.execute(files.INSERT, last)
            self.acknowledged.write(ledger, [checked_key(last)], sync=True)
        else:
            # Into a file of its own: who can say what a delete does in a tree with damaged pages?
            files.build(self.path, [*(row for row, _ in kept), last])
            self.acknowledged.write(ledger, [checked_key(last)], sync=True)
            self._replace_file()
            log.error("the damaged files of %s are kept in %s", self.path, self._aside)
        return Opened(self.database, self.acknowledged, [*kept, (last, b"{}")], ledger, self.findings)

    def _replace_file(self) -> None:
        files.install(self.path, self._aside)
        if self._connection is not None:
            self._connection.close()  # after it was moved: closing would write its log back into it
        self._connection = files.connect(self.path)
        files.tune(self._connection)

    def _set_aside(self, verdict: IntegrityVerdict) -> set[int]:
        """Records damaged rows; returns the revisions of rows that hold and must not be served in their place."""
        dropped: set[int] = set()
        newest: dict[Key, Row] = {row.key: row for row in verdict.rows if row.revision in verdict.checks}
        for one in verdict.damaged:
            row = one.row
            dropped.add(row.revision)
            holding = newest.get(row.key) if one.key_holds else None
            newer = holding is not None and holding.revision > row.revision
            if not newer and one.key_holds:
                dropped |= {other.revision for other in verdict.rows if other.key == row.key}
            hurt = not newer and row.change != DELETED
            finding = Finding(
                object_id(row.revision), OBJECT if hurt else HISTORY,
                f"revision {row.revision}: {one.reason}" + ("" if hurt else "; what is current is not hurt"),
                resource=str(row.resource), namespace=str(row.namespace), name=str(row.name),
                damaged=Version.of(row),
                previous=Version.of(holding) if hurt and holding and holding.change != DELETED else None,
            )  # fmt: skip
            self._add(finding)
        return dropped

    def _report_loss(self, verdict: IntegrityVerdict, mark: int) -> None:
        count = max(verdict.missing, len(verdict.lost))
        if verdict.tail:
            first, last = verdict.tail
            span = f"revision {last}" if first == last else f"revisions {first} to {last}"
            count = max(count, 1)
            reason = f"the end of the log is missing: {span}, at least {count} acknowledged writes, are lost"
        elif verdict.missing > 0:
            reason = f"{count} rows that were acknowledged up to revision {verdict.ledger.revision} are missing"
        elif verdict.missing < 0:
            reason = f"{-verdict.missing} rows are there that had been dropped; an object may be back that was deleted"
        elif self._unsure:
            count, reason = 0, self._unsure
        elif verdict.forgotten_unknown:
            count, reason = 0, "the seal of the newest row is damaged; watches from before have to list again"
        else:
            return
        lost = [asdict(write) for write in verdict.lost[:NAMED]]
        self._add(Finding(f"loss-{mark}", LOSS, reason, lost=lost, count=count))

    def _add(self, finding: Finding) -> None:
        self.quarantine.add(finding)
        self.findings.append(finding)
        log.error("damage in %s: %s: %s; `danlu repair` tells more", self.path, finding.what, finding.reason)

    # -- keys

    def _encrypt_anew(self, opened: Opened) -> None:
        """Rows of an old key, or of none, under the present one; then no trace of them stays in the file."""
        ledger = Ledger(0, 0, 0, opened.ledger.forgotten)
        after: list[tuple[Row, bytes]] = []
        changed: list[tuple[bytes, bytes, int]] = []
        for row, content in opened.rows:
            if self.keyring.is_up_to_date(row):
                ledger = ledger.with_row(row.revision, examine(row).check)
                after.append((row, content))
                continue
            stored = self.keyring.stored(*row[:5], content)
            new, ledger = sealed(ledger, (*row[:5], stored))
            changed.append((new.object, new.seal, new.revision))
            after.append((new, content))
        mark, ledger = sealed(ledger, (opened.ledger.revision + 1, MARK, "", "", "", b"{}"))
        database = self.database
        database.execute("PRAGMA secure_delete=ON")
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("UPDATE log SET object = ?, seal = ? WHERE revision = ?", changed)
            database.execute(files.INSERT, mark)
            database.execute("COMMIT")
        except sqlite3.Error:
            database.execute("ROLLBACK")
            raise
        scrub(database)
        self.acknowledged.write(ledger, [checked_key(mark)], sync=True)
        opened.rows, opened.ledger = [*after, (mark, b"{}")], ledger
        log.info("%d rows were encrypted with the key %s", len(changed), self.keyring.current.id.hex())


def scrub(database: sqlite3.Connection) -> None:
    """Nothing of what was overwritten stays in free pages or in the write-ahead log."""
    database.execute("VACUUM")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.execute("PRAGMA secure_delete=OFF")


def _without_dropped(rows: list[Row], ledger: Ledger | None) -> list[Row]:
    """Rows whose successor is so old that they were dropped: old pages may still have them."""
    if ledger is None:
        return rows
    newest: dict[Key, Row] = {}
    dropped: set[int] = set()
    for row in rows:
        before = newest.pop(row.key, None)
        if before is not None and row.revision <= ledger.forgotten:
            dropped.add(before.revision)
        if row.change == DELETED and row.revision <= ledger.forgotten:
            dropped.add(row.revision)
        elif row.change != DELETED:
            newest[row.key] = row
    return [row for row in rows if row.revision not in dropped]
