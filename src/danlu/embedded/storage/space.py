"""Room for the store: a reserve on the disk, a quota, and an alarm, as etcd has them (NOSPACE).

A full disk must not be a deadlock: making room begins with deletes, and a delete is a write. So

- **room is held in the store's own files.** Blocks beyond the end of `store.db` and of its write-ahead log are
  allocated ahead: no pod that fills the disk can take them, and writes go on when nothing else can be written.
- **a reserve lies beside it** (`store.reserve`): given back when a write fails, or before SQLite opens on a full disk.
- **the alarm** is raised when a write found no room, when free space falls below a mark, or when the store outgrows its
  quota. Then what makes the store grow is refused, in etcd's words and with the remedy; deletes, what belongs to
  them, and updates that do not grow go on. History is dropped early. It ends by itself when there is room again and
  the reserve is whole: no restart, no command.

Invariant: while the alarm stands, what the store may still grow by is bounded: by `GRACE_BYTES` in all, by
`OBJECT_GRACE` for each object that is being deleted, and by `GRACE_EVENTS`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from danlu.embedded import private_files
from danlu.embedded.settings import SpaceSettings
from danlu.embedded.storage.watchcache import Change
from danlu.errors import InsufficientStorage

if TYPE_CHECKING:
    from danlu.embedded.storage.stored import Stored

log = logging.getLogger("danlu.space")

EXCEEDED = "etcdserver: mvcc: database space exceeded"
REMEDY = "delete what is not needed (deletes work) or free disk space; creating goes on by itself then"
SMALLEST_RESERVE = 1 << 20
WRITTEN_AT_ONCE = 1 << 20
LEFT_FREE = 512 << 10
# What an alarm lets the store grow by: conditions that deletes need, a node's status, events that say what goes on.
GRACE_BYTES = 1 << 20
GRACE_EVENTS = 50
SMALL_GROWTH = 4096  # bytes that one update may add
OBJECT_GRACE = 4 * SMALL_GROWTH  # bytes that an object may gain by being deleted: its containers' ends, conditions
KEPT_GOING = frozenset(("nodes", "leases.coordination.k8s.io"))  # without them the node is taken for dead
SQLITE_FULL, SQLITE_IOERR = 13, 10


class Space:
    """Of one store. `check` and `make_room` come from threads of their own; `alarm` may be read from anywhere."""

    def __init__(self, database: Path, settings: SpaceSettings | None = None) -> None:
        self._database = database
        self._reserve = database.with_name("store.reserve")
        settings = settings or SpaceSettings()
        total = _disk(database.parent)[0]
        self.reserve_bytes = max(SMALLEST_RESERVE, min(settings.reserve, total // 16))
        self.least_free = min(settings.least_free, total // 32)
        self.quota = settings.quota
        self.used = 0  # bytes of the database that hold something, as the journal counts them
        self.alarm = ""  # why; "" while all is well
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}  # descriptors of the store's files: closing one would drop SQLite's locks
        self._grant()

    def _grant(self) -> None:
        self._grace_bytes, self._grace_events = GRACE_BYTES, GRACE_EVENTS
        self._grown: dict[tuple[str, str, str], int] = {}  # objects that are being deleted

    # -- life

    def open(self) -> None:
        """Before SQLite opens its files, which needs some room. The alarm stands until the reserve is whole again."""
        problem = self._problem()
        if problem:
            self._raise_alarm(problem, hold=False)

    def close(self) -> None:
        """After SQLite has closed them: what it gave up is kept for the next start."""
        with self._lock:
            for handle in self._held.values():
                os.close(handle)
            self._held.clear()
            self._refill()

    # -- looking

    def check(self) -> None:
        """Raises the alarm, or ends it. Blocks for a system call or two."""
        with self._lock:
            problem = self._problem()
            if problem:
                if not self.alarm:
                    self._raise_alarm(problem)
                return
            if not self.alarm:
                self._hold()
                if self._free() > self.least_free + self.reserve_bytes:
                    self._refill()
                return
            # There is room: first for the reserve, then for others.
            if self._free() < 2 * self.least_free + self.reserve_bytes - self._reserved() or not self._refill():
                return
            self.alarm = ""
            self._grant()
            log.warning("there is room for the store again: the alarm NOSPACE has ended")

    def _problem(self) -> str:
        if self.used > self.quota * (0.9 if self.alarm else 1.0):
            return f"the store holds {_mib(self.used)} and its quota is {_mib(self.quota)}"
        free = self._free()
        if free < self.least_free:
            return f"the disk of {self._database.parent} has {_mib(free)} left"
        return ""

    def _raise_alarm(self, problem: str, *, hold: bool = True) -> None:
        self.alarm = problem
        self._give_back()
        if hold:
            self._hold()  # at once: others wait for every block
        log.warning("alarm NOSPACE: %s; %s", problem, REMEDY)

    def is_full(self, error: Exception) -> bool:
        """Whether a write of SQLite failed for want of room. The index of the write-ahead log fails as an I/O error."""
        if private_files.is_full(error):
            return True
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code == SQLITE_FULL or (code == SQLITE_IOERR and self._free() < self.least_free)

    def make_room(self) -> None:
        """A write found none: it may be tried again after this."""
        with self._lock:
            if not self.alarm:
                self._raise_alarm(f"the disk of {self._database.parent} is full")
            else:
                self._give_back()
                self._hold()

    def hold(self) -> None:
        """After a checkpoint, at which SQLite cuts off what is held beyond the database's end."""
        with self._lock:
            self._hold()

    # -- what is let through while the alarm stands

    def refusal(self, change: Change) -> InsufficientStorage | None:
        """None: this may be written. To be asked only while there is an alarm."""
        before, stored = change.previous, change.stored
        if change.type == "DELETED":
            return None
        growth = len(stored.raw) - (len(before.raw) if before is not None else 0)
        if before is not None and (growth <= 0 or self._is_ending(stored, growth)):
            return None
        if stored.resource == "events" and self._grace_events > 0 and growth <= SMALL_GROWTH:
            self._grace_events -= 1
            return None
        essential = stored.resource in KEPT_GOING
        if (before is not None or essential) and growth <= (OBJECT_GRACE if essential else SMALL_GROWTH):
            self._grace_bytes -= growth
            if self._grace_bytes > 0:
                return None
        return self.exceeded()

    def _is_ending(self, stored: Stored, growth: int) -> bool:
        if not stored.obj["metadata"].get("deletionTimestamp"):
            return False
        key = (stored.resource, stored.namespace, stored.name)
        self._grown[key] = self._grown.get(key, 0) + growth
        return self._grown[key] <= OBJECT_GRACE

    def exceeded(self) -> InsufficientStorage:
        return InsufficientStorage(f"{EXCEEDED}: {self.alarm or 'the disk is full'}; {REMEDY}")

    # -- blocks

    def _free(self) -> int:
        return _disk(self._database.parent)[1]

    def _reserved(self) -> int:
        try:
            return os.stat(self._reserve).st_blocks * 512
        except OSError:
            return 0

    def _give_back(self) -> None:
        with contextlib.suppress(OSError):
            os.truncate(self._reserve, 0)  # not removed: making the file again needs room, too

    def _refill(self) -> bool:
        """Whether the reserve is whole. A smaller one is better than none."""
        try:
            handle = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            size = self.reserve_bytes
            while os.fstat(handle).st_blocks * 512 < size:
                try:
                    _allocate(handle, size)
                except OSError:
                    os.ftruncate(handle, 0)
                    size //= 2
                    if size < SMALLEST_RESERVE:
                        return False
            return size == self.reserve_bytes
        finally:
            os.close(handle)

    def _hold(self) -> None:
        """Blocks of their own for the database and its log, beyond what they use now. As far as there are any."""
        for suffix in ("", "-wal"):
            path = f"{self._database}{suffix}"
            with contextlib.suppress(OSError):
                handle = self._open(path)
                found = os.fstat(handle)
                wanted = self.reserve_bytes // 2 + (0 if suffix else found.st_size)
                if found.st_blocks * 512 < wanted:
                    # Not the last blocks: what fails half way keeps what it got, and SQLite needs its index.
                    length = min(wanted - found.st_size, self._free() - LEFT_FREE)
                    private_files.allocate(handle, found.st_size, length, keep_size=True)

    def _open(self, path: str) -> int:
        held = self._held.get(path)
        if held is not None and path.endswith("-wal") and not _is_same(held, path):
            os.close(held)  # SQLite made a new log; its locks are on other files
            held = None
        if held is None:
            held = self._held[path] = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        return held


def _disk(folder: Path) -> tuple[int, int]:
    """(bytes of the file system, bytes that this account may still write)."""
    found = os.statvfs(folder)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def _is_same(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _allocate(handle: int, size: int) -> None:
    try:
        private_files.allocate(handle, 0, size, keep_size=False)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        os.lseek(handle, 0, os.SEEK_SET)
        for _ in range(0, size, WRITTEN_AT_ONCE):  # a file system without: not nothing, for some leave out zeros
            os.write(handle, os.urandom(WRITTEN_AT_ONCE))
        os.fsync(handle)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB" if size < 1 << 30 else f"{size / (1 << 30):.1f} GiB"
