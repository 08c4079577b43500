"""What the node asks of images: given a name, what runs. Where they come from is the composition root's choice.

`Cluster` is handed an `ImageSource`. Without one every name stands for the tools of this machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

ENVIRONMENT, IMAGE = "environment", "image"  # the two ways that a name may go
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageError(Exception):
    """The image cannot be had: with this message, and `reason` in its container's status."""

    reason = "ErrImagePull"


class UnknownUser(Exception):
    """The image has no such user or group."""


class Account(NamedTuple):
    """Of an image."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()  # beside its own
    home: str = "/"


class Accounts(Protocol):
    """Who an image runs as."""

    @property
    def user(self) -> str:
        """As its configuration names it."""
        ...

    @property
    def is_named(self) -> bool:
        """By a name, of which nobody outside can say whose number it is."""
        ...

    def account(self, uid: int | None) -> Account:
        """Its own user, or the one with this number. Raises UnknownUser."""
        ...


@dataclass(frozen=True, slots=True)
class Image:
    """What a container gets from its image."""

    name: str
    id: str
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    files: Mapping[str, str] = field(default_factory=dict)  # target -> source, copied into the writable layer
    folders: Mapping[str, str] = field(default_factory=dict)  # target -> folder of the machine, read-only
    core_variables: tuple[str, ...] = ()  # told the whole cores of a cpu limit
    known: bool = True  # its entrypoint and cmd are what they are
    remedy: str = ""  # where nothing is known of it: what would change that
    note: str = ""  # why something else than the image itself runs; "" when it does not
    layers: tuple[str, ...] = ()  # unpacked, the topmost first: its own file tree; none: the machine's folders
    accounts: Accounts | None = None  # of its own file tree
    stop_signal: str = ""  # what it wants instead of SIGTERM
    differs: str = ""  # how what runs is not quite what its name says: another version
    environment: str = ""  # of this machine, that stands for it
    environment_digest: str = ""  # changes with what is in it
    python: str = ""  # the folder of its Python; "" when it has none of its own
    on_machine: bool = False  # its layers lie over the machine's folders
    fallback: bool = False  # nothing that is here stands for this name: the image itself is better, if it can be had


class ImageSource(Protocol):
    def prepare(self) -> None:
        """Called once, before the first pod: what takes its time can be done now."""

    def resolve(self, name: str) -> Image:
        """Raises ImageError when it cannot be had."""
        ...

    def preference(self, name: str, namespace: str) -> str:
        """ENVIRONMENT: what stands for it here and nothing else; IMAGE: the image itself; "": whichever is better."""
        ...

    def remove_unused(self) -> None:
        """The disk runs short: files that belong to no image any more go. Blocks."""


class MachineImages:
    """Every image is this machine and nothing else."""

    def prepare(self) -> None:
        return None

    def resolve(self, name: str) -> Image:
        digest = hashlib.sha256(name.encode()).hexdigest()
        return Image(name, f"{repository(name)}@sha256:{digest}", env={"PATH": DEFAULT_PATH}, known=False)

    def preference(self, name: str, namespace: str) -> str:
        return ENVIRONMENT

    def remove_unused(self) -> None:
        return None


def repository(name: str) -> str:
    """Without tag and digest."""
    name = name.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]
