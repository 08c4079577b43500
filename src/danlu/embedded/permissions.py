"""Everything under the data directory is its owner's: looked at, and mended, at every start.

Two things keep other accounts of the machine out:

- **the way there.** Whoever may write to a folder above the data directory can put one of their own in its place. So
  each folder on the way belongs to this account or to root, and nobody else may write to it; or it has the sticky bit,
  as /tmp has, and what lies in it on our way is ours. Otherwise nothing is started: a parent is not ours to change.
- **closed folders.** The data directory and the folders in it are closed to others (0700), files too (0600). What pods
  see may be open (a volume is 0777, because pods run as any user): it lies below closed folders, and reaches a pod by a
  mount that was made for it before the pod became another user.

Volumes and container layers themselves are the pods': their owners and modes are left alone.
"""

from __future__ import annotations

import contextlib
import grp
import logging
import os
import pwd
import stat
from pathlib import Path

log = logging.getLogger(__name__)

CLOSED = 0o077  # what nobody else may do
# How many levels of a folder are closed, beyond the folder itself: where keys lie, all; of pods, a folder for each.
# What is in others has modes that pods need (volumes, hosts, images), or is not ours.
LEVELS = {"pki": 9, "backups": 9, "pods": 1}
MOST_LINKS = 40
NAMED = 5  # foreign entries that an error tells by name
OVERFLOW_UID = 65534  # how accounts look that a user namespace does not know


class OpenToOthers(Exception):
    """Other accounts could take over the data directory; the message says how, and what to do."""


def check_way(path: Path) -> None:
    """Raises OpenToOthers when another account could replace `path`, or a folder or link above it."""
    trusted = _trusted()
    here, left, links = "/", list(path.absolute().parts[1:]), 0
    while left:
        name = left.pop(0)
        folder = os.stat(here)
        try:
            entry: os.stat_result | None = os.lstat(os.path.join(here, name))
        except FileNotFoundError:
            entry = None
        _check_folder(here, folder, name, entry, trusted, path)
        if entry is None:
            return  # the rest will be made, by us
        if stat.S_ISLNK(entry.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OpenToOthers(f"{path} leads through too many symbolic links")
            to = os.readlink(os.path.join(here, name))
            here = "/" if to.startswith("/") else here
            left = [part for part in to.split("/") if part not in ("", ".")] + left
        elif stat.S_ISDIR(entry.st_mode):
            here = os.path.normpath(os.path.join(here, name))
        else:
            return  # a file: whoever uses the path is told so


def _check_folder(
    here: str, folder: os.stat_result, name: str, entry: os.stat_result | None, trusted: set[int], path: Path
) -> None:
    choose = "choose another place with --data-dir or DANLU_HOME"
    if folder.st_uid not in trusted:
        raise OpenToOthers(
            f"{here} belongs to {_account(folder.st_uid)}, who could put a data directory of their own in the place of "
            f"{path}; {choose}"
        )
    open_to_group = folder.st_mode & stat.S_IWGRP and not _is_own_group(folder.st_gid)
    if not folder.st_mode & stat.S_IWOTH and not open_to_group:
        return
    if not folder.st_mode & stat.S_ISVTX:
        raise OpenToOthers(
            f"other accounts may write to {here} (mode {stat.S_IMODE(folder.st_mode):04o}), and could put a data "
            f"directory of their own in the place of {path}; `chmod go-w {here}`, or {choose}"
        )
    if entry is not None and entry.st_uid not in trusted:
        raise OpenToOthers(
            f"{os.path.join(here, name)} belongs to {_account(entry.st_uid)}, in a folder where everybody may put "
            f"things; {choose}"
        )


def close(root: Path) -> None:
    """Takes the data directory, which exists, from everybody else. Raises OpenToOthers for what others put there."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            raise OpenToOthers(
                f"{root} belongs to {_account(found.st_uid)}; run danlu as that account, or choose another place with "
                "--data-dir or DANLU_HOME"
            )
        if found.st_mode & CLOSED:
            os.fchmod(handle, stat.S_IMODE(found.st_mode) & ~CLOSED | 0o700)  # first: now nobody changes what is below
            log.warning(
                "%s was open to other accounts (mode %04o) and is closed now; whoever looked inside may have copied "
                "its keys: `rm -r %s` while danlu is stopped makes new ones",
                root, stat.S_IMODE(found.st_mode), root / "pki",
            )  # fmt: skip
        foreign = [os.path.join(root, name) for name in _close_below(handle, "", None)]
    finally:
        os.close(handle)
    if foreign:
        more = f" and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
        raise OpenToOthers(
            f"{', '.join(foreign[:NAMED])}{more} in the data directory {root} belongs to another account, which may "
            "have put it there; look at it, then remove it, or make it yours with chown"
        )


def _close_below(folder: int, place: str, levels: int | None) -> list[str]:
    """Closes what is in a folder, following no link; names what belongs to somebody else.

    `levels`: how much deeper to go; None at the top, where `LEVELS` knows.
    """
    foreign = []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            path = os.path.join(place, name)
            if found.st_uid != os.geteuid():
                foreign.append(path)
            elif stat.S_ISDIR(found.st_mode):
                foreign += _close_folder(folder, name, path, LEVELS.get(name, 0) if levels is None else levels - 1)
            elif found.st_mode & CLOSED and not stat.S_ISLNK(found.st_mode):
                os.chmod(name, stat.S_IMODE(found.st_mode) & ~CLOSED, dir_fd=folder)
    return foreign


def _close_folder(parent: int, name: str, path: str, levels: int) -> list[str]:
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & CLOSED:
            os.fchmod(handle, mode & ~CLOSED | 0o700)
        return _close_below(handle, path, levels) if levels > 0 else []
    finally:
        os.close(handle)


def make_closed(path: str | Path) -> None:
    """A folder for ourselves alone, whatever the umask; its parents likewise where they are missing."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_closed(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def is_ours(path: str | Path) -> bool:
    """A folder, no link to one, that belongs to this account and is closed to others."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & CLOSED


def _trusted() -> set[int]:
    """Root can do everything anyway. In a user namespace the owners of outer folders look like nobody."""
    trusted = {0, os.geteuid()}
    with contextlib.suppress(OSError, ValueError):
        mapped = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
        if mapped < 1 << 31:
            trusted.add(OVERFLOW_UID)
    return trusted


def _is_own_group(gid: int) -> bool:
    """The group that many systems give each account for itself alone, or root's."""
    uid = os.geteuid()
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return gid in (0, uid)
    try:
        me = pwd.getpwuid(uid).pw_name
    except KeyError:
        me = ""
    return (gid in (0, uid) or group.gr_name == me) and set(group.gr_mem) <= {me, "root"}


def _account(uid: int) -> str:
    try:
        return f"the account {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"another account (uid {uid})"
