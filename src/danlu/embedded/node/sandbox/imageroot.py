"""The file tree of a container that runs an image: its layers below, what it writes above.

The layers were packed by somebody else, so every path in them that something of ours is to lie on is looked up here,
before anything of the machine is in reach: from the container's root, link by link, and never into /proc, /sys or the
old root. What is looked up stays true, for nothing of the container runs yet and no other knows its layer.

Where the kernel has no overlay, or a layer could not be given the overlay's marks, the layers are copied.

Runs in a mount namespace of its own, between fork and exec; standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat

from danlu.embedded.node.sandbox import layering, symlinks
from danlu.embedded.node.sandbox.box import BindMount, Sandbox, SandboxError

OLD_ROOT = ".danlu-host"  # where the machine's own root is, for a moment
KERNEL_FOLDERS = ("proc", "sys", "dev")
OWN_FOLDERS = (*KERNEL_FOLDERS, "etc")
FORBIDDEN = ("proc", "sys")
TREE, ABOUT = "tree", "layer.json"  # of a layer: see images/unpacking.py


def lay(box: Sandbox, mounts: list[BindMount]) -> list[tuple[str, BindMount]]:
    """Makes `root` the image's; each mount with the path at which it will lie, all links in it followed."""
    root, layers = box["root"], box.get("layers", [])
    trees = [f"{layer}/{TREE}" for layer in layers]
    abouts = [_about(layer) for layer in layers]
    marked = all(about["marked"] for about in abouts)
    laid = layering.lay(root, _make_folders, as_user=box["mode"] == "user", trees=trees) if marked else False
    if not marked:
        layering.lay(root, lambda at: None, as_user=box["mode"] == "user")
    if not laid:
        if box.get("needs_overlay"):
            raise SandboxError("there is no overlay here, so what is written could not be told from what was there")
        for layer, about in zip(reversed(layers), reversed(abouts), strict=True):
            _copy_over(f"{layer}/{TREE}", root, about)
        _make_folders(root)
    for folder in KERNEL_FOLDERS:  # an image may have anything there
        if not stat.S_ISDIR(os.lstat(f"{root}/{folder}").st_mode):
            os.unlink(f"{root}/{folder}")
            os.mkdir(f"{root}/{folder}", 0o755)
    _make_point(root, _inside(root, box["cwd"], strict=True), is_file=False)
    found = []
    for entry in mounts:
        path = _inside(root, entry["target"])
        if not path.startswith("/dev/"):  # that will be made fresh
            _make_point(root, path, is_file=entry["is_file"])
        found.append((path, entry))
    return found


def _about(layer: str) -> dict[str, list[str]]:
    with open(f"{layer}/{ABOUT}") as file:
        found: dict[str, list[str]] = json.load(file)
    return found


def _make_folders(root: str) -> None:
    for folder in OWN_FOLDERS:
        if not os.path.lexists(f"{root}/{folder}"):
            os.mkdir(f"{root}/{folder}", 0o755)


def _inside(root: str, target: str, *, strict: bool = False) -> str:
    """The path without links, as the container's root has them; what is missing of it stays as it is written.

    `strict`: not into the kernel's folders even where it says so itself, for an image may have said it.
    """

    def leads_to(parts: list[str]) -> str | None:
        here = f"{root}/{'/'.join(parts)}"
        return os.readlink(here) if os.path.islink(here) else None

    try:
        at = symlinks.follow(target, leads_to)
    except symlinks.TooManyLinks as error:
        raise SandboxError(f'"{target}" has too many links in it') from error
    path = "/" + "/".join(at)
    leads_out = bool(at) and (at[0] in FORBIDDEN or OLD_ROOT in at)
    if leads_out and (strict or path != os.path.normpath(target)):
        raise SandboxError(f'"{target}" leads to "{path}" in this image, where nothing may be put')
    return path


def _make_point(root: str, path: str, *, is_file: bool) -> None:
    """All of the path is made here or was looked up: nothing in it is a link."""
    folder = path if not is_file else os.path.dirname(path)
    at = root
    for part in folder.split("/")[1:]:
        at = f"{at}/{part}" if part else at
        if not os.path.lexists(at):
            os.mkdir(at, 0o755)
    if is_file and not os.path.lexists(root + path):
        os.close(os.open(root + path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o644))


# -- where there is no overlay


def _copy_over(tree: str, root: str, about: dict[str, list[str]]) -> None:
    for path in about["whiteouts"]:
        _remove(f"{root}/{path}")
    for path in about["opaque"]:
        if os.path.isdir(f"{root}/{path}") and not os.path.islink(f"{root}/{path}"):
            for name in os.listdir(f"{root}/{path}"):
                _remove(f"{root}/{path}/{name}")
    links: dict[tuple[int, int], str] = {}
    _copy_folder(tree, root, links)


def _copy_folder(source: str, target: str, links: dict[tuple[int, int], str]) -> None:
    for entry in sorted(os.scandir(source), key=lambda one: one.name):
        here, there = entry.path, f"{target}/{entry.name}"
        about = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            if os.path.islink(there) or not os.path.isdir(there):
                _remove(there)
                os.mkdir(there, 0o700)
            _copy_folder(here, there, links)
            _dress(there, about)
            continue
        _remove(there)
        known = links.get((about.st_dev, about.st_ino)) if about.st_nlink > 1 else None
        if known is not None:
            os.link(known, there, follow_symlinks=False)
            continue
        if stat.S_ISLNK(about.st_mode):
            os.symlink(os.readlink(here), there)
            with contextlib.suppress(OSError):
                os.chown(there, about.st_uid, about.st_gid, follow_symlinks=False)
            continue
        if stat.S_ISREG(about.st_mode):
            shutil.copyfile(here, there, follow_symlinks=False)
        elif stat.S_ISFIFO(about.st_mode):
            os.mkfifo(there)
        else:
            continue  # a whiteout's mark
        _dress(there, about)
        links[about.st_dev, about.st_ino] = there


def _dress(path: str, about: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        os.chown(path, about.st_uid, about.st_gid, follow_symlinks=False)
    os.chmod(path, stat.S_IMODE(about.st_mode))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
