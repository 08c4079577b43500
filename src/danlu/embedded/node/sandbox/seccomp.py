"""What a container may not ask of the kernel: the profile `RuntimeDefault`, and how any filter is loaded.

The profile refuses what container runtimes' own refuse, each call unless the container has the capability that the
kernel wants for it: mounts, namespaces, modules, kexec, the clock, BPF, keys, file handles, userfaultfd, sockets to the
machine's hypervisor. It is a list of what is refused, not of what is allowed: a new call that only reads is not
missing from pods until somebody adds it here.

The kernel works out once which numbers a filter always allows and then does not run it for them: only what is refused,
and `clone` and `socket`, whose arguments count, cost anything. `clone3` hides its flags in memory, so it is said not to
exist: C libraries then use `clone`.

Standard library only; runs between fork and exec.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Collection

from danlu.embedded.node.sandbox import kernel

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
AT_NUMBER, AT_ARCH, AT_FIRST_ARGUMENT = 0, 4, 16  # in struct seccomp_data
ALLOW, ERROR = 0x7FFF0000, 0x00050000
SET_MODE_FILTER = 1
X32 = 0x40000000  # x86-64's second set of calls; elsewhere there are no such numbers

Instruction = tuple[str, int, int, str, str]  # label, code, value, where to go if so, and if not

SECCOMP = {"x86_64": 317, "aarch64": 277}
ARCHITECTURES = {"x86_64": (0xC000003E, 0x40000003), "aarch64": (0xC00000B7, 0x40000028)}  # and of 32-bit programs
NAMESPACE_FLAGS = 0x7E020000  # of clone
AF_VSOCK = 40

# capability -> call -> its numbers on x86-64, arm64, and for 32-bit programs on each; -1 where there is none
REFUSED: dict[str, dict[str, tuple[int, int, int, int]]] = {
    "SYS_ADMIN": {
        "mount": (165, 40, 21, 21),
        "umount": (-1, -1, 22, -1),
        "umount2": (166, 39, 52, 52),
        "pivot_root": (155, 41, 217, 218),
        "open_tree": (428, 428, 428, 428),
        "move_mount": (429, 429, 429, 429),
        "fsopen": (430, 430, 430, 430),
        "fsconfig": (431, 431, 431, 431),
        "fsmount": (432, 432, 432, 432),
        "fspick": (433, 433, 433, 433),
        "mount_setattr": (442, 442, 442, 442),
        "open_tree_attr": (467, 467, 467, 467),
        "quotactl": (179, 60, 131, 131),
        "quotactl_fd": (443, 443, 443, 443),
        "swapon": (167, 224, 87, 87),
        "swapoff": (168, 225, 115, 115),
        "sethostname": (170, 161, 74, 74),
        "setdomainname": (171, 162, 121, 121),
        "lookup_dcookie": (212, 18, 253, 249),
        "fanotify_init": (300, 262, 338, 367),
        "setns": (308, 268, 346, 375),
        "unshare": (272, 97, 310, 337),
    },
    "BPF": {"bpf": (321, 280, 357, 386)},
    "PERFMON": {"perf_event_open": (298, 241, 336, 364)},
    "SYS_BOOT": {
        "reboot": (169, 142, 88, 88),
        "kexec_load": (246, 104, 283, 347),
        "kexec_file_load": (320, 294, -1, 401),
    },
    "SYS_MODULE": {
        "init_module": (175, 105, 128, 128),
        "finit_module": (313, 273, 350, 379),
        "delete_module": (176, 106, 129, 129),
    },
    "SYS_TIME": {
        "settimeofday": (164, 170, 79, 79),
        "stime": (-1, -1, 25, -1),
        "clock_settime": (227, 112, 264, 262),
        "clock_settime64": (-1, -1, 404, 404),
    },
    "SYS_PACCT": {"acct": (163, 89, 51, 51)},
    "SYS_RAWIO": {"iopl": (172, -1, 110, -1), "ioperm": (173, -1, 101, -1)},
    "SYSLOG": {"syslog": (103, 116, 103, 103)},
    "SYS_TTY_CONFIG": {"vhangup": (153, 58, 111, 111)},
    "DAC_READ_SEARCH": {"open_by_handle_at": (304, 265, 342, 371)},
    "": {  # whatever capabilities it has
        "add_key": (248, 217, 286, 309),
        "request_key": (249, 218, 287, 310),
        "keyctl": (250, 219, 288, 311),
        "userfaultfd": (323, 282, 374, 388),
        "nfsservctl": (180, 42, 169, 169),
        "uselib": (134, -1, 86, 86),
    },
}
CLONE, CLONE3, SOCKET = (56, 220, 120, 120), 435, (41, 198, 359, 281)


def load_default(capabilities: Collection[str]) -> None:
    """In the process that is to have the profile, while it has CAP_SYS_ADMIN in its user namespace."""
    machine = os.uname().machine
    load(default_program(machine, frozenset(capabilities)), 0)


@functools.cache
def default_program(machine: str, capabilities: frozenset[str]) -> bytes:
    return assemble(_profile(machine, capabilities))


def _profile(machine: str, capabilities: Collection[str]) -> list[Instruction]:
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"system calls are not known on {machine}")
    own = list(ARCHITECTURES).index(machine)
    arch, other_arch = ARCHITECTURES[machine]
    return [
        ("", LOAD, AT_ARCH, "", ""),
        ("", JUMP_EQUAL, arch, "own", "other"),
        ("own", LOAD, AT_NUMBER, "", ""),
        ("", JUMP_AT_LEAST, X32, "missing", ""),
        *_calls(own, capabilities),
        ("", RETURN, ALLOW, "", ""),
        ("other", JUMP_EQUAL, other_arch, "", "missing"),
        ("", LOAD, AT_NUMBER, "", ""),
        *_calls(own + 2, capabilities),
        ("", RETURN, ALLOW, "", ""),
        ("clone", LOAD, AT_FIRST_ARGUMENT, "", ""),
        ("", JUMP_ANY_BIT, NAMESPACE_FLAGS, "denied", "allowed"),
        ("socket", LOAD, AT_FIRST_ARGUMENT, "", ""),
        ("", JUMP_EQUAL, AF_VSOCK, "denied", "allowed"),
        ("allowed", RETURN, ALLOW, "", ""),
        ("missing", RETURN, ERROR | errno.ENOSYS, "", ""),
        ("denied", RETURN, ERROR | errno.EPERM, "", ""),
    ]


def _calls(column: int, capabilities: Collection[str]) -> list[Instruction]:
    numbers = [
        row[column]
        for capability, calls in REFUSED.items()
        if capability not in capabilities
        for row in calls.values()
        if row[column] >= 0
    ]
    found: list[Instruction] = [("", JUMP_EQUAL, number, "denied", "") for number in numbers]
    found.append(("", JUMP_EQUAL, SOCKET[column], "socket", ""))
    if "SYS_ADMIN" not in capabilities:
        found += [("", JUMP_EQUAL, CLONE3, "missing", ""), ("", JUMP_EQUAL, CLONE[column], "clone", "")]
    return found


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def load(program: bytes, *flags: int) -> int:
    """With the first of the `flags` that this kernel knows; what it returns is 0 or a descriptor."""
    number = SECCOMP.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"seccomp is not known on {os.uname().machine}")
    code = ctypes.create_string_buffer(program, len(program))
    given = _Program(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    for chosen in flags:
        answer = int(kernel.libc().syscall(number, SET_MODE_FILTER, chosen, ctypes.byref(given)))
        if answer >= 0:
            return answer
    problem = ctypes.get_errno()
    raise OSError(problem, f"seccomp: {os.strerror(problem)}")


def assemble(instructions: list[Instruction]) -> bytes:
    places = {label: place for place, (label, *_) in enumerate(instructions) if label}
    code = b""
    for place, (_, operation, value, then, otherwise) in enumerate(instructions):
        jumps = [places[label] - place - 1 if label else 0 for label in (then, otherwise)]
        code += struct.pack("=HBBI", operation, *jumps, value)
    return code
