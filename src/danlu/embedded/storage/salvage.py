"""Rows out of a database that SQLite refuses, or out of a write-ahead log whose end it has dropped.

Every row has a seal (`records`), so a row that is found can be trusted wherever it is found: the pages are read one by
one, by SQLite's file format, without the tree that should lead to them. A page counts in its newest version (database,
then the frames of the log in order); pages on the free list are left out, because what was dropped there stays dropped.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from danlu.embedded.storage.records import Row

PAGE = 4096  # what SQLite has made by default since 2016, and what we never change
_FRAME = 24
_LEAF = 0x0D
_COLUMNS = (6, 7)  # format 1 had no seal
_MAX_PAYLOAD = 64 << 20


class _NotARow(Exception):
    """These bytes are no row of ours."""


@dataclass(slots=True)
class DatabasePages:
    """The pages of a database as they were last written, and older versions that the write-ahead log still has."""

    newest: dict[int, bytes] = field(default_factory=dict)
    older: list[bytes] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        free = self._free()
        for number, page in self.newest.items():
            if number not in free:
                yield from self._rows_of(page, 100 if number == 1 else 0)

    def rows_of_the_log(self) -> Iterator[Row]:
        """Also those in pages of the write-ahead log that were overwritten later: for what came after a known state."""
        yield from self.rows()
        for page in self.older:
            yield from self._rows_of(page, 0)

    def _free(self) -> set[int]:
        found: set[int] = set()
        first = self.newest.get(1, b"")
        trunk = _number(first, 32) if len(first) == PAGE else 0
        while trunk and trunk not in found and trunk in self.newest:
            found.add(trunk)
            page = self.newest[trunk]
            count = min(_number(page, 4), PAGE // 4 - 2)
            found.update(_number(page, 8 + 4 * index) for index in range(count))
            trunk = _number(page, 0)
        return found

    def _rows_of(self, page: bytes, start: int) -> Iterator[Row]:
        if len(page) != PAGE or page[start] != _LEAF:
            return
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        for index in range(min(count, PAGE // 4)):
            at = int.from_bytes(page[start + 8 + 2 * index : start + 10 + 2 * index], "big")
            try:
                yield self._row(page, at)
            except (_NotARow, IndexError, struct.error, UnicodeDecodeError):
                continue

    def _row(self, page: bytes, at: int) -> Row:
        length, at = _varint(page, at)
        revision, at = _varint(page, at)
        payload = self._payload(page, at, length)
        size, position = _varint(payload, 0)
        types = []
        while position < size:
            kind, position = _varint(payload, position)
            types.append(kind)
        if len(types) not in _COLUMNS or types[0] != 0:
            raise _NotARow
        values: list[bytes] = []
        at = size
        for number, kind in enumerate(types[1:], 1):
            is_text = number < 5
            if kind < 12 or kind % 2 != is_text:
                raise _NotARow
            end = at + (kind - 12) // 2
            values.append(payload[at:end])
            at = end
        if at != len(payload):
            raise _NotARow
        change, resource, namespace, name = (value.decode() for value in values[:4])
        return Row(revision, change, resource, namespace, name, values[4], values[5] if len(values) == 6 else b"")

    def _payload(self, page: bytes, at: int, length: int) -> bytes:
        if length <= PAGE - 35:
            return page[at : at + length]
        if length > _MAX_PAYLOAD:
            raise _NotARow
        least = (PAGE - 12) * 32 // 255 - 23
        local = least + (length - least) % (PAGE - 4)
        local = local if local <= PAGE - 35 else least
        parts = [page[at : at + local]]
        missing, following = length - local, _number(page, at + local)
        while missing > 0:
            further = self.newest.get(following)
            if further is None:
                raise _NotARow
            parts.append(further[4 : 4 + min(missing, PAGE - 4)])
            missing -= PAGE - 4
            following = _number(further, 0)
        return b"".join(parts)


def read_pages(database: Path) -> DatabasePages:
    """Reads the files and changes nothing; either may be missing, cut or damaged."""
    pages = DatabasePages()
    content = _content(database)
    for number in range(len(content) // PAGE):
        pages.newest[number + 1] = content[number * PAGE : (number + 1) * PAGE]
    log = _content(database.with_name(database.name + "-wal"))
    for number, page in _frames(log):
        if number in pages.newest:
            pages.older.append(pages.newest[number])
        pages.newest[number] = page
    return pages


def _frames(log: bytes) -> Iterator[tuple[int, bytes]]:
    """The frames of the log's present generation: each names it, so a damaged header does not matter."""
    starts = range(32, len(log) - _FRAME - PAGE + 1, _FRAME + PAGE)
    salts = Counter(log[at + 8 : at + 16] for at in starts)
    present = log[16:24]
    if present not in salts and salts:
        present = log[32 + 8 : 32 + 16]  # the first frame is always of the present generation
    for at in starts:
        if log[at + 8 : at + 16] == present:
            yield _number(log, at), log[at + _FRAME : at + _FRAME + PAGE]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | data[at + 8], at + 9
