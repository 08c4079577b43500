"""Names of images, as every engine reads them: [REGISTRY/]PATH[:TAG][@DIGEST]."""

from __future__ import annotations

import re
from typing import NamedTuple

from danlu.embedded.node.imagesource import ImageError

HUB = "docker.io"  # what a name without a registry means everywhere
OFFICIAL = "library"
LATEST = "latest"

PATH = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*", re.ASCII)
TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
REGISTRY = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?", re.ASCII)
LONGEST_PATH = 255


class InvalidName(ImageError):
    """No registry could have it."""

    reason = "InvalidImageName"


class Reference(NamedTuple):
    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        return f"{self.registry}/{self.path}"

    @property
    def version(self) -> str:
        """What a registry is asked for."""
        return self.digest or self.tag

    def __str__(self) -> str:
        return self.repository + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def familiar(self) -> str:
        """As people write it."""
        return str(self).removeprefix(f"{HUB}/").removeprefix(f"{OFFICIAL}/")


def parse(name: str) -> Reference:
    """Raises InvalidName."""
    rest, at, digest = name.partition("@")
    head, slash, last = rest.rpartition("/")
    last, colon, tag = last.partition(":")
    registry, slash, path = (head + slash + last).partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, path = HUB, head + ("/" if head else "") + last
    if registry == HUB and "/" not in path:
        path = f"{OFFICIAL}/{path}"
    right = PATH.fullmatch(path) and len(path) <= LONGEST_PATH and REGISTRY.fullmatch(registry)
    if not right or (colon and not TAG.fullmatch(tag)) or (at and not DIGEST.fullmatch(digest)):
        raise InvalidName(f'couldn\'t parse image name "{name}": invalid reference format')
    return Reference(registry, path, tag or ("" if digest else LATEST), digest)
