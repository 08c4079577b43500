"""Encryption at rest: AES-256-GCM for the resources that are chosen (secrets), with keys in a file of their own.

    encryption.key      danlu-key v1 ID CREATED KEY        each line twice: one flipped bit costs no secret

The first key of the file encrypts; the others only decrypt, and go when nothing needs them any more: that is a
rotation. A row names its key, and is bound to its revision, change, resource, namespace and name, so no row can be put
in the place of another. `cryptography` is imported when the first secret comes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from danlu.embedded.storage.errors import DataDirectoryError
from danlu.embedded.storage.records import MARK, Row, key_text

SECRETS = ("secrets",)
KEY_FILE = "DANLU_ENCRYPTION_KEY_FILE"
_WORD = "danlu-key"
_SEALED = b"\x01"  # JSON begins with {
_ID, _NONCE, _KEY_BYTES = 8, 12, 32


@dataclass(frozen=True, slots=True)
class EncryptionKey:
    secret: bytes
    created: str

    @property
    def id(self) -> bytes:
        return hashlib.sha256(b"danlu encryption key" + self.secret).digest()[:_ID]

    @classmethod
    def new(cls) -> EncryptionKey:
        return cls(os.urandom(_KEY_BYTES), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))


class Unreadable(Exception):
    """The row cannot be decrypted; the message says why."""


class Keyring:
    """The key file; without a file it makes one when the first secret is written."""

    def __init__(self, path: Path, resources: Iterable[str] = SECRETS) -> None:
        self.path = path
        self.resources = frozenset(resources)
        self.keys: list[EncryptionKey] = []  # the first is the one that encrypts
        self._by_id: dict[bytes, EncryptionKey] = {}
        self.damaged = False
        self.read()

    def read(self) -> None:
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise DataDirectoryError(f"cannot read the encryption keys in {self.path}: {error.strerror}") from error
        found = [key for line in lines if (key := _read_line(line)) is not None]
        self._set(list({key.id: key for key in found}.values()))
        kept = [line for line in lines if not line.startswith(b"#")]
        self.damaged = len(kept) > 2 * len(self.keys)  # a key of which neither copy can be read
        # Written again as it should be: the copy that was damaged is no help next time.
        if self.keys and not self.damaged and self._text() != b"\n".join([*lines, b""]):
            self.write()

    def _set(self, keys: list[EncryptionKey]) -> None:
        self.keys = keys
        self._by_id = {key.id: key for key in keys}

    def write(self) -> None:
        partial = self.path.with_name(f".{self.path.name}.new")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._text())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def _text(self) -> bytes:
        head = b"# The keys of Danlu's encrypted objects. Without this file they cannot be read: keep a copy elsewhere."
        lines = [_line(key) for key in self.keys for _ in range(2)]
        return b"\n".join([head, *lines, b""])

    # -- keys

    @property
    def current(self) -> EncryptionKey:
        if not self.keys:
            self._set([EncryptionKey.new()])
            self.write()
        return self.keys[0]

    def add(self) -> EncryptionKey:
        """A new key, which encrypts from now on."""
        self._set([EncryptionKey.new(), *self.keys])
        self.write()
        return self.keys[0]

    def drop_older(self) -> int:
        older = len(self.keys) - 1
        if older > 0:
            self._set(self.keys[:1])
            self.write()
        return max(older, 0)

    def has(self, key_id: bytes) -> bool:
        return key_id in self._by_id

    # -- rows

    def stored(self, revision: int, change: str, resource: str, namespace: str, name: str, content: bytes) -> bytes:
        """The content as it is to lie on the disk."""
        if resource not in self.resources:
            return content
        key = self.current
        nonce = os.urandom(_NONCE)
        place = key_text(revision, change, resource, namespace, name)
        encrypted: bytes = _cipher(key.secret).encrypt(nonce, content, place)
        return _SEALED + key.id + nonce + encrypted

    def content(self, row: Row) -> bytes:
        """Raises Unreadable."""
        if not row.object.startswith(_SEALED):
            return row.object
        from cryptography.exceptions import InvalidTag

        key = self._by_id.get(key_of(row) or b"")
        if key is None:
            raise Unreadable(f"the key {(key_of(row) or b'').hex()} that it is encrypted with is not in {self.path}")
        data = row.object[1 + _ID :]
        try:
            plain: bytes = _cipher(key.secret).decrypt(data[:_NONCE], data[_NONCE:], key_text(*row[:5]))
        except (InvalidTag, ValueError):
            raise Unreadable("it is not what was encrypted for this revision and name") from None
        return plain

    def is_up_to_date(self, row: Row) -> bool:
        """Lies as it would be written today: plain or encrypted, and with the newest key."""
        if row.change == MARK:
            return True
        if row.resource not in self.resources:
            return not row.object.startswith(_SEALED)
        return bool(self.keys) and key_of(row) == self.keys[0].id


def key_of(row: Row) -> bytes | None:
    """The id of the key it is encrypted with; None: it is not."""
    return row.object[1 : 1 + _ID] if row.object.startswith(_SEALED) else None


def default_key_file(database: Path) -> Path:
    chosen = os.environ.get(KEY_FILE)
    return Path(chosen).expanduser() if chosen else database.with_name("encryption.key")


@cache
def _cipher(secret: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(secret)


def _line(key: EncryptionKey) -> bytes:
    return f"{_WORD} v1 {key.id.hex()} {key.created} {base64.b64encode(key.secret).decode()}".encode()


def _read_line(line: bytes) -> EncryptionKey | None:
    try:
        word, _, identity, created, encoded = line.decode().split(" ")
        key = EncryptionKey(base64.b64decode(encoded, validate=True), created)
    except (ValueError, binascii.Error):
        return None
    holds = word == _WORD and len(key.secret) == _KEY_BYTES and key.id.hex() == identity
    return key if holds else None
