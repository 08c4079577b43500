"""Who asks a registry: what `docker login` writes, as secrets of pods and as files of this account."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from danlu.embedded.node.images.reference import HUB, Reference

HUB_NAMES = ("index.docker.io", "registry-1.docker.io", HUB)
FORMS = {".dockerconfigjson": "auths", ".dockercfg": ""}  # key of the secret -> where its registries stand


class Credentials(NamedTuple):
    user: str
    password: str
    token: str = ""  # an identity token, instead of a password
    source: str = ""  # where they are from, for whoever reads what was tried

    @property
    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


class RegistryKeyring:
    """All that is known, and what of it fits an image."""

    def __init__(self, entries: Iterable[tuple[str, Credentials]] = ()) -> None:
        self._entries = [*entries]

    def __add__(self, other: RegistryKeyring) -> RegistryKeyring:
        return RegistryKeyring([*self._entries, *other._entries])

    def matching(self, reference: Reference) -> list[Credentials]:
        """The most particular first."""
        found = [(len(key), one) for key, one in self._entries if _fits(key, reference)]
        return [*dict.fromkeys(one for _, one in sorted(found, key=lambda pair: -pair[0]))]


def _fits(key: str, reference: Reference) -> bool:
    """A host or host:port, wildcards in the parts of its name, perhaps with the beginning of a path."""
    host, _, path = key.partition("://")[2].partition("/") if "://" in key else key.partition("/")
    if reference.registry == HUB and host in HUB_NAMES:
        return not path or path.startswith(("v1", "v2")) or f"{reference.path}/".startswith(f"{path.rstrip('/')}/")
    path = "" if path.rstrip("/") in ("v1", "v2") else path.rstrip("/")
    patterns, parts = host.split("."), reference.registry.split(".")
    same = len(patterns) == len(parts) and all(map(fnmatchcase, parts, patterns))
    return same and (not path or f"{reference.path}/".startswith(f"{path}/"))


def of_secret(secret: Mapping[str, Any], name: str) -> RegistryKeyring:
    """Of a Secret's data; one that is not what its type says gives none."""
    for key, inner in FORMS.items():
        data = (secret.get("data") or {}).get(key)
        if data is None:
            continue
        try:
            found = json.loads(base64.b64decode(data))
            return _read(found[inner] if inner else found, f"imagePullSecret {name}")
        except (ValueError, KeyError, TypeError, AttributeError):
            return RegistryKeyring()
    return RegistryKeyring()


def of_account() -> RegistryKeyring:
    """What this account has logged in to with docker, podman or buildah."""
    folder = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")
    files = [Path(folder) / "config.json"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        files.append(Path(runtime) / "containers" / "auth.json")
    ring = RegistryKeyring()
    for file in files:
        try:
            ring += _read(json.loads(file.read_bytes())["auths"], str(file))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return ring


def _read(auths: Mapping[str, Any], source: str) -> RegistryKeyring:
    found = []
    for key, entry in auths.items():
        user, password = str(entry.get("username") or ""), str(entry.get("password") or "")
        if entry.get("auth"):
            try:
                user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                continue
        token = str(entry.get("identitytoken") or "")
        if user or token:
            found.append((str(key), Credentials(user, password, token, source)))
    return RegistryKeyring(found)
