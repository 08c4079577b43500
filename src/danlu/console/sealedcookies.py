"""Sealed texts, which only this console (and its replicas with the same key) can make and read, and long cookies."""

from __future__ import annotations

import hmac
import os
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import orjson
from starlette.responses import Response

from danlu.console.asgi import Cookies, Header

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12
PIECE = 3800  # of a cookie's value; browsers take 4096 bytes for name, value and attributes
MAX_PIECES = 8
COUNTED = "."  # between the number of pieces and the first of them
MAX_READINGS = 8  # of cookies that came several times: ours, and what others have planted
OUR_COOKIES = ("danlu-", "__host-danlu-", "__secure-danlu-")  # in lower case: none of these is an app's to set or see


class Sealer:
    """Encrypts and authenticates (AES-256-GCM). `purpose` keeps one sort of sealed text from being used as another."""

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise ValueError(f"the session key has {len(key)} bytes and must have 32")
        self._key = key
        self._cipher: AESGCM | None = None

    def seal(self, purpose: str, content: Any) -> str:
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._aes().encrypt(nonce, zlib.compress(orjson.dumps(content)), purpose.encode())
        return urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, purpose: str, text: str) -> Any:
        """None when it was not sealed with this key for this purpose."""
        from cryptography.exceptions import InvalidTag

        try:
            data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            plain = self._aes().decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], purpose.encode())
        except (ValueError, InvalidTag):
            return None
        return orjson.loads(zlib.decompress(plain))

    def code(self, *words: str) -> str:
        """What only whoever has the key can make of these words: always the same, 64 hexadecimal digits."""
        return hmac.digest(self._key, orjson.dumps(words), "sha256").hex()

    def _aes(self) -> AESGCM:
        if self._cipher is None:
            # Slow to import: that waits for the first person who comes, `danlu up` does not.
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(self._key)
        return self._cipher


@dataclass(frozen=True, slots=True)
class LongCookie:
    """A value that may need several cookies: tokens of identity providers can be longer than one takes."""

    name: str
    path: str
    same_site: Literal["strict", "lax"]
    secure: bool

    def readings(self, cookies: Cookies) -> Iterator[str]:
        """What the value may be. Where somebody else has planted cookies of these names, one of several."""
        every = [cookies.get(f"{self.name}-{number}", ()) for number in range(MAX_PIECES)]
        for turn in range(min(MAX_READINGS, max(map(len, every)))):
            pieces = [values[min(turn, len(values) - 1)] if values else "" for values in every]
            count, _, first = pieces[0].partition(COUNTED)
            if count.isdecimal() and len(count) == 1:
                yield "".join([first, *pieces[1 : int(count)]])

    def write(self, text: str, life_s: int, had: Cookies) -> list[Header]:
        """`had` are the request's cookies: pieces of a longer value that was there before are removed."""
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        if len(pieces) > MAX_PIECES:
            raise ValueError("the token is too long to be kept in cookies")
        # How many there are, or a further one that is not ours would spoil them.
        pieces[0] = f"{len(pieces)}{COUNTED}{pieces[0]}"
        return [
            *(self._one(number, piece, life_s) for number, piece in enumerate(pieces)),
            *self.remove(had, len(pieces)),
        ]

    def remove(self, had: Cookies, first: int = 0) -> list[Header]:
        return [self._one(number, "", 0) for number in range(first, MAX_PIECES) if f"{self.name}-{number}" in had]

    def _one(self, number: int, value: str, life_s: int) -> Header:
        made = Response()
        made.set_cookie(
            f"{self.name}-{number}",
            value,
            max_age=max(0, life_s),
            path=self.path,
            secure=self.secure,
            httponly=True,
            samesite=self.same_site,
        )
        return made.raw_headers[-1]


def is_ours(name: str) -> bool:
    return name.strip().lower().startswith(OUR_COOKIES)
