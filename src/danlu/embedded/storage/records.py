"""One row of the journal as it lies on the disk: what it says, and the seal by which damage shows.

A seal has a checksum over the key of the row (revision, change, resource, namespace, name), one over its object, and
the *ledger* of the whole log after this row: how many rows there are, the sum of their checksums, and up to which
revision history has been dropped. So the newest row vouches for every row before it, and no page of its own has to be
written for that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

import orjson

_SEAL = struct.Struct("<IIQQQ")
_CHECK = struct.Struct("<I")
SEAL_BYTES = _SEAL.size + _CHECK.size
_ALL = (1 << 64) - 1

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
CHANGES = (ADDED, MODIFIED, DELETED)
# A row of the journal's own: from here on revisions go on after a loss, a repair or a restore.
MARK = "MARK"

Key = tuple[str, str, str]  # resource, namespace, name
CheckedKey = tuple[int, bytes]  # the checksum of a row's key, and the key as `key_text` writes it


class Row(NamedTuple):
    revision: int
    change: str
    resource: str
    namespace: str
    name: str
    object: bytes  # as stored: JSON, or sealed by `encryption`
    seal: bytes

    @property
    def key(self) -> Key:
        return self[2:5]


class Ledger(NamedTuple):
    """The log as a whole at one revision."""

    revision: int = 0
    rows: int = 0
    total: int = 0  # sum of the rows' checksums modulo 2^64
    forgotten: int = 0  # rows up to here may be missing where a newer one took their place

    def with_row(self, revision: int, check: int) -> Ledger:
        return Ledger(revision, self.rows + 1, (self.total + check) & _ALL, self.forgotten)

    def without(self, checks: Iterable[int], forgotten: int) -> Ledger:
        checks = list(checks)
        total = (self.total - sum(checks)) & _ALL
        return Ledger(self.revision, self.rows - len(checks), total, max(forgotten, self.forgotten))


Content = tuple[int, str, str, str, str, bytes]
"""Revision, change, resource, namespace, name and what is stored: a `Row` without its seal."""


def key_text(revision: int, change: str, resource: str, namespace: str, name: str) -> bytes:
    return f"{revision}\0{change}\0{resource}\0{namespace}\0{name}".encode()


def checked_key(row: Row) -> CheckedKey:
    text = key_text(*row[:5])
    return crc32(text), text


def sealed_all(ledger: Ledger, contents: Iterable[Content]) -> tuple[list[Row], list[CheckedKey], Ledger]:
    """The rows, their keys as `store.ack` keeps them, and the ledger after them. On the way of every write: it is one
    plain loop."""
    revision, count, total, forgotten = ledger
    rows: list[Row] = []
    keys: list[CheckedKey] = []
    for revision, change, resource, namespace, name, stored in contents:
        text = f"{revision}\0{change}\0{resource}\0{namespace}\0{name}".encode()
        keyed, body = crc32(text), crc32(stored)
        count += 1
        total = (total + (keyed << 32 | body)) & _ALL
        seal = _SEAL.pack(keyed, body, count, total, forgotten)
        seal += _CHECK.pack(crc32(seal, revision & 0xFFFFFFFF))
        rows.append(Row(revision, change, resource, namespace, name, stored, seal))
        keys.append((keyed, text))
    return rows, keys, Ledger(revision, count, total, forgotten)


def sealed(ledger: Ledger, content: Content) -> tuple[Row, Ledger]:
    """The row, and the ledger after it."""
    rows, _, after = sealed_all(ledger, [content])
    return rows[0], after


class Examined(NamedTuple):
    """What the seal of a row says of it."""

    key_holds: bool
    object_holds: bool
    check: int  # of the row as it is, damaged or not
    ledger: Ledger | None  # None: the seal itself is damaged

    @property
    def holds(self) -> bool:
        return self.key_holds and self.object_holds


def examine(row: Row) -> Examined:
    seal = row.seal
    if not isinstance(seal, bytes) or len(seal) != SEAL_BYTES or not _typed(row):
        return Examined(False, False, 0, None)
    keyed, body, count, total, forgotten = _SEAL.unpack_from(seal)
    (own,) = _CHECK.unpack_from(seal, _SEAL.size)
    whole = own == crc32(seal[: _SEAL.size], row.revision & 0xFFFFFFFF)
    key_holds = keyed == crc32(key_text(*row[:5]))
    # The checksum is the sealed one: a damaged row still counts as the row that was written.
    ledger = Ledger(row.revision, count, total, forgotten) if whole else None
    return Examined(key_holds, body == crc32(row.object), keyed << 32 | body, ledger)


def check_of(seal: bytes) -> int:
    """The checksum of the row as it was written."""
    keyed, body = _SEAL.unpack_from(seal)[:2]
    return int(keyed) << 32 | int(body)


def _typed(row: Row) -> bool:
    texts = (row.change, row.resource, row.namespace, row.name)
    return isinstance(row.object, bytes) and all(isinstance(text, str) for text in texts)


def mended(row: Row, resources: Iterable[str]) -> Row | None:
    """A row whose object holds and whose key does not: the object knows its name, so the key can be tried again."""
    try:
        meta = orjson.loads(row.object)["metadata"]
        revision, namespace, name = int(meta["resourceVersion"]), meta.get("namespace") or "", meta["name"]
    except (ValueError, KeyError, TypeError):
        revision, namespace, name = row.revision, row.namespace, row.name
    for resource in (row.resource, *resources):
        for change in CHANGES:
            found = Row(revision, change, resource, namespace, name, row.object, row.seal)
            if examine(found).holds:
                return found
    return None


def problem_of_object(row: Row, content: bytes) -> str:
    """Why this cannot be the object of its key; "" when it can. For rows from before there were seals."""
    try:
        obj = orjson.loads(content)
    except ValueError:
        return "it is not JSON"
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        return "it is no object with metadata"
    if meta.get("name") != row.name or (meta.get("namespace") or "") != row.namespace:
        return f"it names itself {meta.get('namespace') or ''}/{meta.get('name')}"
    return ""
