"""What differs between the places where the console runs; unit, default and reason beside every field."""

from __future__ import annotations

import os
from dataclasses import dataclass

from danlu import __version__

HOUR = 3600
IMAGE = os.environ.get("DANLU_IMAGE") or f"docker.io/danlu/danlu:{__version__}"
SCOPES = "openid email profile groups offline_access"  # the last one: with a refresh token


@dataclass(frozen=True, slots=True)
class OidcSettings:
    issuer: str
    client_id: str
    client_secret: str = ""  # public clients have none: PKCE takes its place
    scopes: str = SCOPES
    # What Kubernetes is shown as the bearer token: its own OIDC authenticator wants the ID token.
    token: str = "id_token"
    ca: bytes = b""  # PEM, of a provider whose certificate the system does not know


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    target: str  # "embedded" or "cluster": the pages say where one is
    url: str  # the console's origin as browsers see it: http://127.0.0.1:8080
    # The origin of notebooks and TensorBoards, on another host name, so that no cookie is shared; `https://*.…`: each
    # has a name of its own below it (`origins.py`).
    apps_url: str
    key: bytes  # 32 bytes that seal the cookies; the same in all replicas
    link_token: str = ""  # whoever has it is the owner of this machine's danlu; "": nobody is
    session_s: int = 12 * HOUR  # a sign-in's life, if the token does not end before
    oidc: OidcSettings | None = None
    # Further names under which the console may be reached. Addresses always may: a foreign page cannot point its own
    # name at ours (DNS rebinding) and have an address in the Host header.
    names: tuple[str, ...] = ()
    image: str = IMAGE  # what the console's own small pods run (the file browser); `danlu install` says which is there
