"""How registries are reached: `registries.yaml` of the data directory, read again when it changes.

pull: true                      # false: nothing is pulled for pods; `danlu images pull` still is
registries:
  docker.io:
    mirrors: [https://cache.example.com]     # asked first, in this order
  registry.example.com:5000:
    insecure: true              # http, or a certificate that nobody vouches for
    ca: /etc/ssl/own-ca.pem     # who vouches for it, beside the system's
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu.embedded.node.images.reference import HUB
from danlu.embedded.node.imagesource import ImageError

FILE = "registries.yaml"
HUB_HOST = "registry-1.docker.io"  # where the hub answers
PULL = "DANLU_PULL"  # "never" in the environment: as `pull: false`


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a registry's images are asked for."""

    url: str  # scheme and host
    insecure: bool = False
    ca: str = ""
    is_mirror: bool = False

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]


class RegistrySettings:
    def __init__(self, data_dir: Path) -> None:
        self.file = data_dir / FILE
        self._stamp = -1.0
        self._read: dict[str, Any] = {}

    @property
    def pulls(self) -> bool:
        """Whether images are pulled for pods."""
        return os.environ.get(PULL) != "never" and self._settings().get("pull", True) is not False

    def endpoints(self, registry: str) -> list[Endpoint]:
        """In the order in which they are asked: mirrors, then the registry itself."""
        stated = (self._settings().get("registries") or {}).get(registry) or {}
        if not isinstance(stated, Mapping):
            raise ImageError(f"{self.file}: registry {registry} has to be a map")
        ca = str(stated.get("ca") or "")
        found = [
            Endpoint(str(url).rstrip("/") if "://" in str(url) else f"https://{url}", False, ca, True)
            for url in stated.get("mirrors") or ()
        ]
        host = HUB_HOST if registry == HUB else registry
        insecure = bool(stated.get("insecure", is_loopback(host)))
        if insecure and not is_loopback(host):
            return [*found, Endpoint(f"https://{host}", True, ca), Endpoint(f"http://{host}", True)]
        if insecure:
            return [*found, Endpoint(f"http://{host}", True), Endpoint(f"https://{host}", True, ca)]
        return [*found, Endpoint(f"https://{host}", False, ca)]

    def _settings(self) -> dict[str, Any]:
        try:
            stamp = self.file.stat().st_mtime
        except OSError:
            return {}
        if stamp != self._stamp:
            from danlu.meta import yamlreader

            try:
                found = yamlreader.load(self.file.read_bytes())[0] or {}
            except yamlreader.YamlError as error:
                raise ImageError(f"{self.file} is not valid YAML: {error}; mend it or remove it") from None
            if not isinstance(found, dict) or not isinstance(found.get("registries") or {}, dict):
                raise ImageError(f"{self.file} has to be a map with `registries` and `pull`")
            self._read, self._stamp = found, stamp
        return self._read


def is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
