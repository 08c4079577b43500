"""What a container's process may still do when its program begins: capabilities, user, CPUs, open files.

Runs between fork and exec; standard library only.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys

from danlu.embedded.node.sandbox import kernel
from danlu.embedded.node.sandbox.box import Sandbox

MOST_FILES = 1 << 20

# fmt: off
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)
DEFAULT_CAPABILITIES = frozenset((
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE",
    "NET_RAW", "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
))
# fmt: on
"""What container runtimes leave a container that asks for nothing."""
OVER_THE_MACHINE = frozenset(("MKNOD", "NET_RAW"))
"""Of these, what would reach beyond a container whose capabilities are the machine's own (root's): device nodes for all
of its hardware, and, where there is no network namespace, everybody's packets. In a user namespace both do no harm."""


def drop(box: Sandbox) -> None:
    """CPUs and capabilities first: they need what becoming another user gives away."""
    _raise_file_limit()
    cpus = box.get("cpus")
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # CPUs went offline: run on what is there
            os.sched_setaffinity(0, cpus)
    if box["mode"] != "none" and not box.get("privileged"):
        _drop_capabilities(box)
    if box["mode"] == "root" or (box["mode"] == "none" and os.geteuid() == 0):
        uid, gid = box.get("uid"), box.get("gid")
        groups = box.get("groups", [])
        if uid or gid or groups:
            os.setgroups(sorted({*groups, gid or 0}))
        if gid:
            os.setgid(gid)
        if uid:
            os.setuid(uid)
    if box.get("no_new_privs") and sys.platform.startswith("linux"):
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def _raise_file_limit() -> None:
    """As many open files as the user may have: container runtimes do not keep the shell's small limit either."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, MOST_FILES), most))


def kept(box: Sandbox) -> set[str]:
    """The capabilities that a container keeps, by their names without CAP_."""
    added = {name.upper().removeprefix("CAP_") for name in box.get("add_capabilities", [])}
    dropped = {name.upper().removeprefix("CAP_") for name in box.get("drop_capabilities", [])}
    if "ALL" in added or box.get("privileged"):
        return set(CAPABILITIES) - dropped
    usual = DEFAULT_CAPABILITIES - OVER_THE_MACHINE if box["mode"] == "root" else DEFAULT_CAPABILITIES
    return ((set() if "ALL" in dropped else set(usual)) | added) - dropped


def _drop_capabilities(box: Sandbox) -> None:
    keeping = kept(box)
    for number, name in enumerate(CAPABILITIES):
        # What is needed below to become another user is given up by becoming it.
        if name not in keeping:
            kernel.prctl(kernel.PR_CAPBSET_DROP, number)
