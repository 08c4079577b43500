"""What was acknowledged, kept beside the database: SQLite drops the end of a damaged write-ahead log without a word.

`store.ack` has two slots that are written in turns with the ledger of the log (see `records`), and a ring of the keys
written last, so that a loss can be told by name. It is written after the commit is on the disk and before the write
is acknowledged, without an fsync of its own:

- kill -9: the page cache survives, so it is never behind what was acknowledged;
- power loss: it may be behind the database, never ahead of it, because the database was synced first. What is behind
  raises no alarm;
- damage to one file: the other one tells.

The file has its full size from the beginning and is only ever overwritten, so a full disk cannot stop it.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from danlu.embedded.storage.quarantine import sync_folder
from danlu.embedded.storage.records import CheckedKey, Ledger

_SLOT = struct.Struct("<8sQQQQQQd")  # magic, turn, ledger, place in the ring, when
_CHECK = struct.Struct("<I")
_MAGIC = b"DanluAck"
_SLOT_SPACING = 4096  # slots share no sector
_RING_AT = 2 * _SLOT_SPACING
_RING_BYTES = 1 << 20  # the keys of all that a write-ahead log of 4,000 pages can hold
_RECORD = struct.Struct("<2sII")  # mark, length of the key (a name may be as long as a request), checksum
_RECORD_MARK = b"\xda\x17"


@dataclass(frozen=True, slots=True)
class Written:
    """A write whose key is remembered."""

    revision: int
    change: str
    resource: str
    namespace: str
    name: str


class Acknowledged:
    def __init__(self, path: Path) -> None:
        """`ledger` is None when there is no file, or none that can be read: `missing` and `damaged` tell which."""
        self.path = path
        self.missing = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size != _RING_AT + _RING_BYTES:
            _reserve(self._file, _RING_AT + _RING_BYTES)
            sync_folder(path.parent)
        slots = [slot for number in (0, 1) if (slot := self._read_slot(number)) is not None]
        newest = max(slots, default=None, key=lambda slot: slot[0])
        self._turn, self._place = 0, 0
        self.ledger: Ledger | None = None
        if newest is not None:
            self._turn, self.ledger, self._place = newest
        self.damaged = not self.missing and newest is None

    def _read_slot(self, number: int) -> tuple[int, Ledger, int] | None:
        data = os.pread(self._file, _SLOT.size + _CHECK.size, number * _SLOT_SPACING)
        if len(data) != _SLOT.size + _CHECK.size or _CHECK.unpack_from(data, _SLOT.size)[0] != crc32(
            data[: _SLOT.size]
        ):
            return None
        magic, turn, revision, count, total, forgotten, place, _ = _SLOT.unpack_from(data)
        if magic != _MAGIC:
            return None
        return turn, Ledger(revision, count, total, forgotten), place % _RING_BYTES

    def write(self, ledger: Ledger, keys: Iterable[CheckedKey] = (), *, sync: bool = False) -> None:
        """`keys`: of the new rows, with the checksums that their seals have already."""
        pack = _RECORD.pack
        records = b"".join([pack(_RECORD_MARK, len(key), check) + key for check, key in keys])
        if records:
            self._append(records[-_RING_BYTES:])
        self._turn += 1
        slot = _SLOT.pack(_MAGIC, self._turn, *ledger, self._place, time.time())
        os.pwrite(self._file, slot + _CHECK.pack(crc32(slot)), self._turn % 2 * _SLOT_SPACING)
        self.ledger = ledger
        if sync:
            os.fsync(self._file)

    def _append(self, records: bytes) -> None:
        room = _RING_BYTES - self._place
        os.pwrite(self._file, records[:room], _RING_AT + self._place)
        if len(records) > room:
            os.pwrite(self._file, records[room:], _RING_AT)
        self._place = (self._place + len(records)) % _RING_BYTES

    def written_after(self, revision: int) -> list[Written]:
        """Writes after this revision whose keys are still in the ring, in order."""
        data = os.pread(self._file, _RING_BYTES, _RING_AT)
        data = data[self._place :] + data[: self._place]
        last = self.ledger.revision if self.ledger else 0
        found: dict[int, Written] = {}
        at = data.find(_RECORD_MARK)
        while at != -1:
            one = _read_record(data, at)
            if one is not None and revision < one.revision <= last:
                found[one.revision] = one
            at = data.find(_RECORD_MARK, at + 1)
        return [found[number] for number in sorted(found)]

    def close(self) -> None:
        os.close(self._file)


def _reserve(file: int, size: int) -> None:
    os.ftruncate(file, size)
    with contextlib.suppress(OSError):  # a file system that cannot promise space: it works as long as there is some
        os.posix_fallocate(file, 0, size)
    os.fsync(file)


def _read_record(data: bytes, at: int) -> Written | None:
    if at + _RECORD.size > len(data):
        return None
    _, length, check = _RECORD.unpack_from(data, at)
    key = data[at + _RECORD.size : at + _RECORD.size + length]
    if len(key) != length or crc32(key) != check:
        return None
    try:
        revision, change, resource, namespace, name = key.decode().split("\0")
        return Written(int(revision), change, resource, namespace, name)
    except ValueError:
        return None
