"""`Sandbox`: what a container's process needs to know to be put into its place. A part of the container's spec.json."""

from __future__ import annotations

from typing import NamedTuple, NotRequired, TypedDict

from danlu.embedded.node.network import ownports


class BindMount(TypedDict):
    source: str
    target: str
    read_only: bool
    is_file: bool
    within: NotRequired[str]  # a folder that the source must not lead out of, whatever lies in it by then


class Beside(TypedDict):
    pid: int
    start: int  # clock ticks, so that it is this process and no later one


class Sandbox(TypedDict):
    """What `enter` needs to know; a part of the container's spec.json."""

    mode: str
    root: str  # the writable layer, an existing folder
    hostname: str  # "" keeps the host's
    layers: NotRequired[list[str]]  # of its image, the topmost first; none: the machine's own folders
    on_machine: NotRequired[bool]  # `layers` lie over the machine's own folders
    needs_overlay: NotRequired[bool]  # what is written has to lie apart from the layers: they are not copied
    mounts: list[BindMount]
    cwd: str
    uid: NotRequired[int | None]
    gid: NotRequired[int | None]
    groups: NotRequired[list[int]]
    devices: NotRequired[list[str]]  # device nodes of the host, e.g. /dev/nvidia0
    device_cgroups: NotRequired[str]  # where the container's is made; absent: it has none
    privileged: NotRequired[bool]
    add_capabilities: NotRequired[list[str]]
    drop_capabilities: NotRequired[list[str]]
    no_new_privs: NotRequired[bool]
    default_seccomp: NotRequired[bool]  # the profile RuntimeDefault, see `seccomp`
    read_only_root: NotRequired[bool]
    cpus: NotRequired[list[int]]  # CPU affinity; empty leaves it
    host_network: NotRequired[bool]
    ports: NotRequired[ownports.Ports]  # absent: its sockets are not watched
    hide_processes: NotRequired[bool]  # of other users; in mode root, from Linux 5.8 on
    own_pids: NotRequired[bool]  # its first process is 1, and it sees and signals its own processes only
    beside: NotRequired[Beside]  # whose processes those of its own are: a container of the same pod
    own_ipc: NotRequired[bool]  # System V's shared memory, semaphores and queues, and POSIX' queues


class SandboxError(Exception):
    """What a container runs in could not be made; the message is for the pod's status."""


class Capabilities(NamedTuple):
    mode: str  # "root", "user" or "none"
    reason: str  # one line for `danlu status`
    own_ports: str = ""  # "yes" when no pod can bind what is another's: see `ownports`
    own_pids: str = ""  # "yes" when a container can have process numbers of its own
    seccomp: str = ""  # "yes" when calls can be refused: see `seccomp`
    device_cgroups: str = ""  # where they can be made: see `devicecgroup`
