"""With which identity provider people sign in: as was chosen at the start, or as the files of a mounted Secret say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from danlu.console.settings import SCOPES, OidcSettings

ISSUER, CLIENT_ID, CLIENT_SECRET, CA, SCOPES_FILE, TOKEN = FILES = (
    "issuer",
    "client-id",
    "client-secret",
    "ca.crt",
    "scopes",
    "token",
)
TOKENS = ("id_token", "access_token")
LOOK_AGAIN_S = 5.0


class OidcOptionError(Exception):
    """What was chosen does not fit together; the message says what to change."""


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """What is chosen counts before the files of `folder`."""

    issuer: str = ""
    client_id: str = ""
    client_secret_file: Path | None = None
    scopes: str = ""
    token: str = ""
    ca_file: Path | None = None
    folder: Path | None = None

    def settings(self) -> OidcSettings | None:
        """None: no identity provider. Raises OidcOptionError."""
        files = {name: text for name in FILES if (text := self._file(name)) is not None}
        words = {name: text.decode(errors="replace").strip() for name, text in files.items()}
        issuer, client_id = self.issuer or words.get(ISSUER, ""), self.client_id or words.get(CLIENT_ID, "")
        if not issuer and not client_id:
            return None
        if not issuer or not client_id:
            where = f", or {ISSUER} and {CLIENT_ID} in {self.folder}" if self.folder else ""
            raise OidcOptionError(f"--oidc-issuer and --oidc-client-id belong together{where}")
        token = self.token or words.get(TOKEN) or TOKENS[0]
        if token not in TOKENS:
            raise OidcOptionError(f"{(self.folder or Path()) / TOKEN}: {token} is none of {', '.join(TOKENS)}")
        secret = _chosen("--oidc-client-secret-file", self.client_secret_file).decode(errors="replace").strip()
        return OidcSettings(
            issuer=issuer,
            client_id=client_id,
            client_secret=secret or words.get(CLIENT_SECRET, ""),
            scopes=self.scopes or words.get(SCOPES_FILE) or SCOPES,
            token=token,
            ca=_chosen("--oidc-ca-file", self.ca_file) or files.get(CA, b""),
        )

    def _file(self, name: str) -> bytes | None:
        path = self.folder / name if self.folder else None
        return path.read_bytes() if path is not None and path.is_file() else None

    async def follow(self, now: OidcSettings | None, use: Callable[[OidcSettings | None], Awaitable[None]]) -> None:
        """A Secret that is made or changed reaches the folder by itself; nobody has to start the console anew."""
        while self.folder:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                found = self.settings()
            except (OidcOptionError, OSError):
                continue  # half written, or wrong: what was right before stays
            if found != now:
                now = found
                await use(found)


def _chosen(option: str, file: Path | None) -> bytes:
    try:
        return file.read_bytes() if file is not None else b""
    except OSError as error:
        raise OidcOptionError(f"{option} {file}: {error.strerror}") from None
