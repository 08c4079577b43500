"""`Sandbox`: what a container's process needs to know to be put into its place. A part of the container's spec.json."""

from __future__ import annotations

from typing import NamedTuple, NotRequired, TypedDict

from danlu.embedded.node.network import ownports


class BindMount(TypedDict):
    source: str
    target: str
    read_only: bool
    is_file: bool


class Sandbox(TypedDict):
    """What `enter` needs to know; a part of the container's spec.json."""

    mode: str
    root: str  # the writable layer, an existing folder
    hostname: str  # "" keeps the host's
    mounts: list[BindMount]
    cwd: str
    uid: NotRequired[int | None]
    gid: NotRequired[int | None]
    groups: NotRequired[list[int]]
    devices: NotRequired[list[str]]  # device nodes of the host, e.g. /dev/nvidia0
    privileged: NotRequired[bool]
    add_capabilities: NotRequired[list[str]]
    drop_capabilities: NotRequired[list[str]]
    no_new_privs: NotRequired[bool]
    read_only_root: NotRequired[bool]
    cpus: NotRequired[list[int]]  # CPU affinity; empty leaves it
    host_network: NotRequired[bool]
    ports: NotRequired[ownports.Ports]  # absent: its sockets are not watched
    hide_processes: NotRequired[bool]  # of other users; in mode root, from Linux 5.8 on


class SandboxError(Exception):
    """What a container runs in could not be made; the message is for the pod's status."""


class Capabilities(NamedTuple):
    mode: str  # "root", "user" or "none"
    reason: str  # one line for `danlu status`
    own_ports: str = ""  # "yes" when no pod can bind what is another's: see `ownports`
