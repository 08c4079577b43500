"""The seccomp filter of a container: which of its calls about sockets the shim gets to see (`ownports`).

Standard library only; runs between fork and exec.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from danlu.embedded.node.sandbox import seccomp
from danlu.embedded.node.sandbox.seccomp import (
    ALLOW,
    AT_ARCH,
    AT_FIRST_ARGUMENT,
    AT_NUMBER,
    ERROR,
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    LOAD,
    RETURN,
    X32,
    Instruction,
)


class Machine(NamedTuple):
    """Numbers of one kind of processor; `other` are those of its 32-bit programs."""

    arch: int
    bind: int
    listen: int
    connect: int
    sendto: int
    other_arch: int
    other_bind: int
    other_listen: int


MACHINES = {
    "x86_64": Machine(0xC000003E, 49, 50, 42, 44, 0x40000003, 361, 363),
    "aarch64": Machine(0xC00000B7, 200, 201, 203, 206, 0x40000028, 282, 284),
}
IO_URING_SETUP = 425
SOCKETCALL, SOCKETCALL_BIND, SOCKETCALL_LISTEN = 102, 2, 4
AT_DESTINATION, HALF = AT_FIRST_ARGUMENT + 4 * 8, 4  # of sendto: a pointer, looked at in halves
NOTIFY = 0x7FC00000
NEW_LISTENER, WAIT_KILLABLE = 1 << 3, 1 << 5


def install(*, clients: bool) -> int:
    """In the process that is to be watched, while it still has CAP_SYS_ADMIN in its user namespace. Returns the
    descriptor of its notifications, for the shim. `clients`: also where it connects and sends to."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(errno.ENOSYS, f"system calls are not known on {os.uname().machine}")
    # Linux 5.19: a signal does not break off a call that the shim has begun to do.
    return seccomp.load(seccomp.assemble(_instructions(machine, clients)), NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER)


def _instructions(machine: Machine, clients: bool) -> list[Instruction]:
    watched = [machine.bind, machine.listen, *([machine.connect] if clients else [])]
    found: list[Instruction] = [
        ("", LOAD, AT_ARCH, "", ""),
        ("", JUMP_EQUAL, machine.arch, "own", "other"),
        ("own", LOAD, AT_NUMBER, "", ""),
        ("", JUMP_EQUAL, IO_URING_SETUP, "missing", ""),
        ("", JUMP_AT_LEAST, X32, "missing", ""),  # x86-64's second set of calls; elsewhere there are no such numbers
        *(("", JUMP_EQUAL, number, "notify", "") for number in watched),
        *(_sends_somewhere(machine) if clients else []),
        ("", RETURN, ALLOW, "", ""),
        ("other", JUMP_EQUAL, machine.other_arch, "", "missing"),
        ("", LOAD, AT_NUMBER, "", ""),
        ("", JUMP_EQUAL, IO_URING_SETUP, "missing", ""),
        ("", JUMP_EQUAL, machine.other_bind, "denied", ""),
        ("", JUMP_EQUAL, machine.other_listen, "denied", ""),
        ("", JUMP_EQUAL, SOCKETCALL, "", "allow"),
        ("", LOAD, AT_FIRST_ARGUMENT, "", ""),
        ("", JUMP_EQUAL, SOCKETCALL_BIND, "denied", ""),
        ("", JUMP_EQUAL, SOCKETCALL_LISTEN, "denied", ""),
        ("allow", RETURN, ALLOW, "", ""),
        ("notify", RETURN, NOTIFY, "", ""),
        ("missing", RETURN, ERROR | errno.ENOSYS, "", ""),
        ("denied", RETURN, ERROR | errno.EACCES, "", ""),
    ]
    return found


def _sends_somewhere(machine: Machine) -> list[Instruction]:
    """`send` is sendto without a destination: the way of all connected sockets, and as quick as ever."""
    halves = (AT_DESTINATION, AT_DESTINATION + HALF)
    return [
        ("", JUMP_EQUAL, machine.sendto, "", "fine"),
        *(one for half in halves for one in (("", LOAD, half, "", ""), ("", JUMP_EQUAL, 0, "", "notify"))),
        ("fine", RETURN, ALLOW, "", ""),
    ]
