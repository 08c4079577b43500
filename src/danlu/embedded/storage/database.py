"""The SQLite file: its schema and format, reading all of it, and putting a new one in its place without a gap."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from zlib import crc32

from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.quarantine import sync_folder
from danlu.embedded.storage.records import Row

FORMAT = 2  # 1: rows without seals, nothing encrypted
WAL_PAGES = 4000  # then it is written back to the database
WAL_BYTES = 16 << 20  # a longer log is cut back to this after a burst

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS log (
    revision INTEGER PRIMARY KEY, change TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL, seal BLOB NOT NULL
);
"""
INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)"
MOST_ROWS = 64  # of one statement: each number of rows is a statement that stays compiled
# Result codes of SQLite that tell of damage, not of a disk that is full, locked or not ours.
_DAMAGE = {1, 11, 24, 26}  # ERROR (the schema does not fit), CORRUPT, FORMAT, NOTADB
_SHORT_READ = 522


def is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python's module itself, over a text that is no text, or a number that is none
        return isinstance(error, sqlite3.DatabaseError)
    return code & 0xFF in _DAMAGE or code == _SHORT_READ


def connect(path: Path) -> sqlite3.Connection:
    """Changes nothing in the file."""
    return sqlite3.connect(path, check_same_thread=False, isolation_level=None, cached_statements=128 + MOST_ROWS)


def is_empty(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0


def close_as_it_is(database: sqlite3.Connection, path: Path) -> None:
    """Who closes a database last puts its log away. Where we refuse to use it, the log has to stay: its end may be
    damaged, and readable for us and not for SQLite."""
    log = path.with_name(path.name + "-wal")
    kept = path.with_name(path.name + ".kept-wal")
    kept.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.link(log, kept)
    database.close()
    if kept.exists() and not log.exists():
        kept.replace(log)
    kept.unlink(missing_ok=True)


def tune(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
    database.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")


def create(database: sqlite3.Connection) -> None:
    database.executescript(SCHEMA)
    set_format(database)


def set_format(database: sqlite3.Connection) -> None:
    facts = (("format", FORMAT), ("format_check", _format_check(FORMAT)))
    database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts)


def _format_check(number: int) -> int:
    return crc32(f"danlu format {number}".encode())


def format_of(database: sqlite3.Connection) -> int:
    """0: nothing in it. A number that is damaged is told from the table itself."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    facts: dict[object, object] = {}
    if "facts" in tables:
        with contextlib.suppress(sqlite3.DatabaseError):
            facts = dict(database.execute("SELECT name, value FROM facts"))
    number = facts.get("format")
    if isinstance(number, int) and facts.get("format_check") == _format_check(number):
        return number
    columns = [row[1] for row in database.execute("PRAGMA table_info(log)")]
    if "seal" in columns:
        return 2
    if isinstance(number, int) and number > FORMAT:
        return number
    return 1 if columns else 0


def refuse_newer(path: Path, found: int) -> None:
    if found > FORMAT:
        raise DataDirectoryError(
            f"{path} was written by a newer Danlu (format {found}, this one knows {FORMAT}); "
            "update Danlu or choose another --data-dir"
        )


def insert(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """At most MOST_ROWS of them, in one statement: alone it is a transaction of its own, and the interpreter's lock,
    for which a busy event loop lets others wait, is given up and asked for once instead of once for each row."""
    more = ", (?, ?, ?, ?, ?, ?, ?)" * (len(rows) - 1)
    database.execute(INSERT + more, [value for row in rows for value in row])


def delete(database: sqlite3.Connection, revisions: Sequence[int]) -> list[bytes]:
    """Deletes these rows, and returns the seals of those that were there. In two steps, for the same reason."""
    those = f"FROM log WHERE revision IN ({', '.join('?' * len(revisions))})"
    (seals,) = database.execute(f"SELECT group_concat(hex(seal)) {those}", revisions).fetchone()
    database.execute(f"DELETE {those}", revisions)
    return [bytes.fromhex(seal) for seal in seals.split(",")] if seals is not None else []


def read_rows(database: sqlite3.Connection) -> list[Row]:
    query = "SELECT revision, change, resource, namespace, name, object, seal FROM log ORDER BY revision"
    try:
        return [Row(*row) for row in database.execute(query)]
    except sqlite3.OperationalError as error:
        if "decode" not in str(error).lower():
            raise
    # A name with damaged letters in it. Asking a function for every text would cost every start its time.
    before, database.text_factory = database.text_factory, _lenient
    try:
        return [Row(*row) for row in database.execute(query)]
    finally:
        database.text_factory = before


def _lenient(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


# -- a new file in the place of an old one


def build(path: Path, rows: Iterable[Row]) -> Path:
    """A whole database beside `path`, on the disk when this returns; `install` puts it in place."""
    new, ready = path.with_name(path.name + ".new"), path.with_name(path.name + ".ready")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with contextlib.closing(connect(new)) as database:
        database.execute("PRAGMA journal_mode=MEMORY")
        database.execute("PRAGMA synchronous=OFF")
        create(database)
        database.execute("BEGIN")
        database.executemany(INSERT, rows)
        database.execute("COMMIT")
    os.fsync(descriptor)
    os.close(descriptor)
    new.replace(ready)
    sync_folder(path.parent)
    return ready


def files_of(path: Path) -> Iterator[Path]:
    """What belongs to a database and is there, the log first: it must never meet another database."""
    for suffix in ("-wal", "-shm", ""):
        file = path.with_name(path.name + suffix)
        if file.exists():
            yield file


def install(path: Path, aside: Path | None = None) -> None:
    """Puts what `build` made in place; the old files go to the folder `aside`, or away. A crash in between is mended
    by the next start, which does the rest."""
    ready = path.with_name(path.name + ".ready")
    if not ready.exists():
        return
    if aside is not None:
        aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in files_of(path):
        if aside is not None:
            file.replace(aside / file.name)
        else:
            file.unlink()
    ready.replace(path)
    sync_folder(path.parent)
