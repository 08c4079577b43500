"""Who is signed in, kept in a sealed cookie and nowhere else.

Stateless, so that two replicas with the same key know the same people and a restart signs nobody out. The price is
that a single session cannot be revoked before its end; what counts, the token inside, is the cluster's to revoke.
"""

from __future__ import annotations

import os
import secrets
import time
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from danlu.console.asgi import Header

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12
PIECE = 3800  # of a cookie's value; browsers take 4096 bytes for name, value and attributes
MAX_PIECES = 8


@dataclass(frozen=True, slots=True)
class Identity:
    """As whom the API is asked: with this bearer token, or as the owner of the embedded cluster."""

    token: str = ""
    owner: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    identity: Identity
    expires: int  # seconds since 1970
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))


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

    def _aes(self) -> AESGCM:
        if self._cipher is None:
            # Half of the time that `danlu up` may take: imported when the first person comes.
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(self._key)
        return self._cipher


class Sessions:
    def __init__(self, sealer: Sealer, url: str) -> None:
        self._sealer = sealer
        self._secure = url.startswith("https:")
        # Cookies know no ports: two consoles on one host must not overwrite each other's. __Host- also keeps sibling
        # domains from setting ours.
        port = url.rpartition(":")[2].strip("/")
        self.name = "__Host-danlu" if self._secure else f"danlu-{port if port.isdigit() else 80}"

    def read(self, cookies: Mapping[str, str]) -> Session | None:
        text = "".join(cookies.get(f"{self.name}-{number}", "") for number in range(MAX_PIECES))
        found = self._sealer.open("session", text) if text else None
        if found is None or found["expires"] <= time.time():
            return None
        return Session(Identity(**found["identity"]), found["expires"], found["csrf"])

    def cookies_for(self, session: Session, had: Mapping[str, str]) -> list[Header]:
        """`had` are the request's cookies: pieces of a longer one that was there before are removed."""
        text = self._sealer.seal("session", asdict(session))
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        if len(pieces) > MAX_PIECES:
            raise ValueError("the token is too long to be kept in cookies")
        life = max(0, session.expires - int(time.time()))
        kept = [self._cookie(number, piece, life) for number, piece in enumerate(pieces)]
        return [*kept, *self.no_cookies(had, len(pieces))]

    def no_cookies(self, had: Mapping[str, str], first: int = 0) -> list[Header]:
        return [self._cookie(number, "", 0) for number in range(first, MAX_PIECES) if f"{self.name}-{number}" in had]

    def _cookie(self, number: int, value: str, life: int) -> Header:
        # Strict: no other site can make the browser send it, not even with a link.
        attributes = f"Path=/; Max-Age={life}; HttpOnly; SameSite=Strict" + ("; Secure" if self._secure else "")
        return b"set-cookie", f"{self.name}-{number}={value}; {attributes}".encode()
