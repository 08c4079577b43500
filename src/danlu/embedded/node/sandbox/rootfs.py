"""The file tree that a container sees.

Its writable layer (a folder on disk, see `layering`) is the root. System folders of the host are bound into it
read-only, /proc and /sys come from the host, /dev is made fresh, and everything else (/tmp, /run, /var, /root, /home,
and whatever the container makes) is the layer's own. Volumes are bound last, shortest path first. A mount point that is
missing inside a read-only folder is made by laying a skeleton over that folder (a read-only overlay; where the kernel
refuses one, a folder of single binds).

Runs in a mount namespace of its own, between fork and exec; standard library only.
"""

from __future__ import annotations

import os

from danlu.embedded.node.sandbox import kernel, layering
from danlu.embedded.node.sandbox.box import BindMount, Sandbox, SandboxError

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "snap", "gnu")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
OLD_ROOT = ".danlu-host"
PRIVATE_FOLDERS = ("root", "home", "run/lock", "var/log", "var/lib", "var/cache", "var/spool", "mnt", "media", "srv")
OPEN_FOLDERS = ("tmp", "var/tmp")
PRIVATE_LINKS = {"var/run": "/run", "var/lock": "/run/lock"}
KERNEL_FOLDERS = ("proc", "sys", "dev")


def build(box: Sandbox) -> None:
    root = box["root"]
    mounts = sorted(box["mounts"], key=lambda entry: entry["target"].rstrip("/").count("/"))
    folders, links = _system_folders()
    resolved = [(_inside_system(entry["target"], folders, links), entry) for entry in mounts]
    points = [(path, entry["is_file"]) for path, entry in resolved if path.split("/")[1] not in folders]
    layering.lay(root, lambda at: _make_folders(at, folders, links, points), as_user=box["mode"] == "user")
    for folder in folders:
        missing = [(path, entry["is_file"]) for path, entry in resolved if _is_missing(path, folder, entry)]
        _bring_in(f"/{folder}", f"{root}/{folder}", missing, os.path.join(os.path.dirname(root), "skeleton", folder))
    _bring_in_kernel_folders(root, box)
    _make_devices(root, box)
    sources = [os.path.realpath(entry["source"]) for _, entry in resolved]
    old_root = f"/{OLD_ROOT}" if box.get("privileged") else f"/dev/{OLD_ROOT}"  # not in the host's own /dev
    os.mkdir(root + old_root)
    kernel.pivot_root(root, root + old_root)
    os.chdir("/")
    for source, (target, entry) in zip(sources, resolved, strict=True):
        _bind_volume(old_root, source, target, entry["is_file"])
    for target, entry in resolved:
        if entry["read_only"]:
            kernel.make_read_only(target)
    kernel.detach(old_root)
    os.rmdir(old_root)
    if box.get("read_only_root"):
        kept = os.statvfs("/").f_flag & (kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        kernel.mount(None, "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kept)


def _system_folders() -> tuple[list[str], dict[str, str]]:
    folders: list[str] = []
    links: dict[str, str] = {}
    for name in SYSTEM_FOLDERS:
        path = f"/{name}"
        if os.path.islink(path):
            links[name] = os.readlink(path)
        elif os.path.isdir(path):
            folders.append(name)
    return folders, links


def _inside_system(target: str, folders: list[str], links: dict[str, str]) -> str:
    """The target with symbolic links above it followed, where it lies in a folder that comes from the host."""
    target = os.path.normpath(target)
    head = target.split("/", 2)[1] if target.count("/") > 1 else ""
    if head not in folders and head not in links:
        return target
    parent = os.path.realpath(os.path.dirname(target))
    return os.path.join(parent, os.path.basename(target))


def _is_missing(path: str, folder: str, entry: BindMount) -> bool:
    if not path.startswith(f"/{folder}/"):
        return False
    if os.path.islink(path) or not os.path.exists(path):
        return True
    return os.path.isdir(path) == entry["is_file"]


def _bring_in(host: str, target: str, missing: list[tuple[str, bool]], skeleton: str) -> None:
    if not missing:
        kernel.mount(host, target, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.make_read_only(target)
        return
    for path, is_file in missing:
        _make_mount_point(skeleton + path[len(host) :], is_file)
    try:
        layers = ":".join(part.replace("\\", "\\\\").replace(":", "\\:") for part in (skeleton, host))
        kernel.mount("overlay", target, "overlay", kernel.MS_RDONLY, f"lowerdir={layers}")
    except OSError:
        # Two volumes could share a missing parent, so the skeleton is walked, not the list.
        _bind_around(host, skeleton, target)


def _bind_around(host: str, skeleton: str, target: str) -> None:
    """What the overlay would show, made of single binds: everything of `host`, and beside it what `skeleton` has."""
    kernel.mount("tmpfs", target, "tmpfs", 0, "mode=755,size=1m")
    wanted = set(os.listdir(skeleton))
    for name in set(os.listdir(host)) | wanted:
        here, there, new = f"{host}/{name}", f"{target}/{name}", f"{skeleton}/{name}"
        if name in wanted and os.path.isdir(new) and os.path.isdir(here) and not os.path.islink(here):
            os.mkdir(there)
            _bind_around(here, new, there)
        elif name in wanted:
            _make_mount_point(there, not os.path.isdir(new))
        elif os.path.islink(here):
            os.symlink(os.readlink(here), there)
        else:
            _make_mount_point(there, not os.path.isdir(here))
            kernel.mount(here, there, None, kernel.MS_BIND | kernel.MS_REC)
            kernel.make_read_only(there)


def _make_mount_point(path: str, is_file: bool) -> None:
    if is_file:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    else:
        os.makedirs(path, exist_ok=True)


def _make_folders(root: str, folders: list[str], links: dict[str, str], points: list[tuple[str, bool]]) -> None:
    """All that mounts will lie on, and what a container expects to find; some may have come with its image."""
    for folder in (*folders, *KERNEL_FOLDERS, *PRIVATE_FOLDERS, *OPEN_FOLDERS):
        os.makedirs(f"{root}/{folder}", exist_ok=True)
    for folder in OPEN_FOLDERS:
        os.chmod(f"{root}/{folder}", 0o1777)
    for link, to in (links | PRIVATE_LINKS).items():
        if not os.path.lexists(f"{root}/{link}"):
            os.symlink(to, f"{root}/{link}")
    for path, is_file in points:
        for link, to in PRIVATE_LINKS.items():
            if path.startswith(f"/{link}/"):  # followed here, it would lead to the host's
                path = to + path[len(link) + 1 :]
        if path.split("/")[1] not in KERNEL_FOLDERS:
            _make_mount_point(root + path, is_file)


def _bring_in_kernel_folders(root: str, box: Sandbox) -> None:
    for folder in ("sys",) if box.get("hide_processes") else ("proc", "sys"):
        kernel.mount(f"/{folder}", f"{root}/{folder}", None, kernel.MS_BIND | kernel.MS_REC)
    if box.get("hide_processes"):
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", f"{root}/proc", "proc", flags, "hidepid=invisible")
    if box.get("privileged"):
        return
    kernel.make_read_only(f"{root}/sys")
    for path in ("/proc/sys", "/proc/sysrq-trigger"):  # the machine's own settings are not a container's to change
        if os.path.exists(path):
            kernel.mount(path, root + path, None, kernel.MS_BIND | kernel.MS_REC)
            kernel.make_read_only(root + path)


def _make_devices(root: str, box: Sandbox) -> None:
    dev = f"{root}/dev"
    if box.get("privileged"):
        kernel.mount("/dev", dev, None, kernel.MS_BIND | kernel.MS_REC)
        return
    kernel.mount("tmpfs", dev, "tmpfs", kernel.MS_NOSUID, "mode=755,size=65536k")
    for path in [f"/dev/{name}" for name in DEVICES] + box.get("devices", []):
        if os.path.exists(path):
            _make_mount_point(root + path, True)
            kernel.mount(path, root + path, None, kernel.MS_BIND)
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"{dev}/{name}")
    kernel.mount(
        "devpts", f"{dev}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"
    )
    kernel.mount("tmpfs", f"{dev}/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, to in links.items():
        os.symlink(to, f"{dev}/{name}")


def _bind_volume(host: str, source: str, target: str, is_file: bool) -> None:
    try:
        _make_mount_point(target, is_file)
        kernel.mount(host + source, target, None, kernel.MS_BIND | kernel.MS_REC)
    except OSError as error:
        problem = (error.strerror or "").lower()
        raise SandboxError(f'error mounting "{source}" to rootfs at "{target}": {problem}') from error
