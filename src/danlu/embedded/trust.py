"""What several people on one instance are promised, and what this machine would have to have for it.

Checks give codes and parameters; `danlu.cli.local.trustwords` has the words. Nothing here starts or changes anything.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from danlu.embedded.node.sandbox.box import Capabilities

ALONE, SHARED = "alone", "shared"
PROC_OPTIONS_SINCE = (5, 8)  # Linux: before, options of one /proc were those of all
# File systems that show modes and owners which they do not keep, or that another machine enforces.
WITHOUT_PERMISSIONS = ("vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk", "9p", "drvfs", "cifs", "smb3")


class Unmet(NamedTuple):
    """A promise that could not be kept: a code, and what its words need to know."""

    code: str
    parameters: dict[str, str]


class Unshareable(Exception):
    """The instance cannot be one for several people; `problems` says why."""

    def __init__(self, problems: list[Unmet]) -> None:
        super().__init__(", ".join(code for code, _ in problems))
        self.problems = problems


def unmet(pods: Capabilities, hiding_problem: str, data_dir: Path) -> list[Unmet]:
    """Everything that stands in the way of several people, not only the first.

    `hiding_problem`: why a container cannot be kept from seeing processes of others (`detection.hiding_problem`).
    """
    found: list[Unmet] = []
    if pods.mode == "none":
        found.append(Unmet("no-namespaces", {"reason": pods.reason}))
    elif pods.mode == "user":
        found.append(Unmet("one-account", {"account": str(os.geteuid())}))
    elif not pods.own_ports:
        found.append(Unmet("ports-shared", {"reason": pods.reason}))
    if sys.platform.startswith("linux") and _release() < PROC_OPTIONS_SINCE:
        found.append(Unmet("old-kernel", {"release": os.uname().release}))
    elif pods.mode == "root" and hiding_problem:
        found.append(Unmet("processes-visible", {"problem": hiding_problem}))
    problem = _permissions(data_dir)
    if problem:
        found.append(Unmet("no-permissions", {"path": str(data_dir), "problem": problem}))
    return found


def _release() -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _permissions(data_dir: Path) -> str:
    """Why the file system does not keep others out; "" when it does. Tried, and looked up: some only pretend."""
    place = data_dir
    while not place.is_dir():
        place = place.parent
    kind = _file_system(place)
    if kind in WITHOUT_PERMISSIONS:
        return f"{kind} keeps no owners and modes"
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".danlu-trust-") as file:
            for mode in (0o600, 0o640):
                os.chmod(file.name, mode)
                if stat.S_IMODE(os.stat(file.name).st_mode) != mode:
                    return "a mode that was set is not there afterwards"
            if os.stat(file.name).st_uid != os.geteuid():
                return "a new file does not belong to this account"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _file_system(place: Path) -> str:
    """The kind of the mount that holds the folder; "" where nobody tells."""
    device = os.stat(place).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0]
    return ""
