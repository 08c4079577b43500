"""With which identity provider `danlu console` signs people in: from its options, or the files of a mounted Secret."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from danlu.cli.main import UsageError
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


def settings(arguments: argparse.Namespace) -> OidcSettings | None:
    """Options count before files. Raises UsageError."""
    folder = arguments.oidc_folder
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()} if folder else {}
    words = {name: text.decode(errors="replace").strip() for name, text in files.items()}
    issuer = arguments.oidc_issuer or words.get(ISSUER, "")
    client_id = arguments.oidc_client_id or words.get(CLIENT_ID, "")
    if not issuer and not client_id:
        return None
    if not issuer or not client_id:
        where = f", or {ISSUER} and {CLIENT_ID} in {folder}" if folder else ""
        raise UsageError(f"--oidc-issuer and --oidc-client-id belong together{where}")
    token = arguments.oidc_token or words.get(TOKEN) or TOKENS[0]
    if token not in TOKENS:
        raise UsageError(f"{folder / TOKEN}: {token} is none of {', '.join(TOKENS)}")
    secret, authority = arguments.oidc_client_secret_file, arguments.oidc_ca_file
    return OidcSettings(
        issuer=issuer,
        client_id=client_id,
        client_secret=read("--oidc-client-secret-file", secret).decode().strip()
        if secret
        else words.get(CLIENT_SECRET, ""),
        scopes=arguments.oidc_scopes or words.get(SCOPES_FILE) or SCOPES,
        token=token,
        ca=read("--oidc-ca-file", authority) if authority else files.get(CA, b""),
    )


async def follow(
    arguments: argparse.Namespace, now: OidcSettings | None, use: Callable[[OidcSettings | None], Awaitable[None]]
) -> None:
    """A Secret that is made or changed reaches the folder by itself; nobody has to start the console anew."""
    while arguments.oidc_folder:
        await asyncio.sleep(LOOK_AGAIN_S)
        try:
            found = settings(arguments)
        except (UsageError, OSError):
            continue  # half written, or wrong: what was right before stays
        if found != now:
            now = found
            await use(found)
            print(f"sign-in with {found.issuer}" if found else "no sign-in with an identity provider", flush=True)


def read(option: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None
