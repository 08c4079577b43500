"""The file tree that a container sees.

Its writable layer (a folder on disk, see `layering`) is the root. System folders of the host are bound into it
read-only, /sys comes from the host, and /proc where its processes do, /dev is made fresh, and everything else (/tmp,
/run, /var, /root, /home, and whatever the container makes) is the layer's own. Volumes are bound last, shortest path
first. A mount point that is missing inside a read-only folder is made by laying a skeleton over that folder (a
read-only overlay; where the kernel refuses one, a folder of single binds). Only the device nodes that are bound into
/dev have devices behind them: all else is mounted without. A container of an image has that image's layers in place of
the host's folders: see `imageroot`.

Runs in a mount namespace of its own, between fork and exec; standard library only.
"""

from __future__ import annotations

import contextlib
import os

from danlu.embedded.node.sandbox import imageroot, inroot, kernel, layering
from danlu.embedded.node.sandbox.box import BindMount, Sandbox, SandboxError

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "snap", "gnu")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
OLD_ROOT = imageroot.OLD_ROOT
PRIVATE_FOLDERS = ("root", "home", "run/lock", "var/log", "var/lib", "var/cache", "var/spool", "mnt", "media", "srv")
OPEN_FOLDERS = ("tmp", "var/tmp")
PRIVATE_LINKS = {"var/run": "/run", "var/lock": "/run/lock"}
KERNEL_FOLDERS = imageroot.KERNEL_FOLDERS
READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")


def build(box: Sandbox) -> None:
    root = box["root"]
    mounts = sorted(box["mounts"], key=lambda entry: normal(entry["target"]).count("/"))
    is_image = box.get("layers") and not box.get("on_machine")
    resolved = imageroot.lay(box, mounts) if is_image else _lay_machine(box, mounts)
    _bring_in_kernel_folders(root, box)
    _make_devices(root, box)
    _bind_volumes(root, resolved, devices=bool(box.get("privileged")))
    old_root = f"/{OLD_ROOT}" if box.get("privileged") else f"/dev/{OLD_ROOT}"  # not in the host's own /dev
    os.mkdir(root + old_root)
    kernel.pivot_root(root, root + old_root)
    os.chdir("/")
    kernel.detach(old_root)
    os.rmdir(old_root)
    if not box.get("privileged"):
        kernel.restrict("/", kernel.MS_NODEV)
    if box.get("read_only_root"):
        kernel.restrict("/", kernel.MS_RDONLY)


def normal(target: str) -> str:
    """From the container's root on, whatever it says: a mountPath may be relative, and go up too far."""
    return os.path.normpath("/" + target.lstrip("/"))


def _lay_machine(box: Sandbox, mounts: list[BindMount]) -> list[tuple[str, BindMount]]:
    """The machine's own folders as its root; each mount with the path at which it will lie."""
    root = box["root"]
    folders, links = _system_folders()
    resolved = [(_inside_system(entry["target"], folders, links), entry) for entry in mounts]
    points = [(path, entry["is_file"]) for path, entry in resolved if path.split("/")[1] not in folders]
    trees = [f"{layer}/{imageroot.TREE}" for layer in box.get("layers", [])]
    as_user = box["mode"] == "user"
    laid = layering.lay(root, lambda at: _make_folders(at, folders, links, points), as_user=as_user, trees=trees)
    if trees and not laid:
        raise SandboxError("its image lies over folders of this machine, which needs an overlay: there is none here")
    for folder in folders:
        missing = [(path, entry["is_file"]) for path, entry in resolved if _is_missing(path, folder, entry)]
        over = [f"{tree}/{folder}" for tree in trees if os.path.isdir(f"{tree}/{folder}")]
        skeleton = os.path.join(os.path.dirname(root), "skeleton", folder)
        _bring_in(f"/{folder}", f"{root}/{folder}", missing, skeleton, over)
    return resolved


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
    target = normal(target)
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


def _bring_in(host: str, target: str, missing: list[tuple[str, bool]], skeleton: str, over: list[str]) -> None:
    """`over`: what the image's layers have in this folder, the topmost first."""
    if not missing and not over:
        kernel.mount(host, target, None, kernel.MS_BIND | kernel.MS_REC)
        kernel.make_read_only(target)
        return
    for path, is_file in missing:
        _make_mount_point(skeleton + path[len(host) :], is_file)
    os.makedirs(skeleton, exist_ok=True)
    try:
        layers = ":".join(part.replace("\\", "\\\\").replace(":", "\\:") for part in (skeleton, *over, host))
        kernel.mount("overlay", target, "overlay", kernel.MS_RDONLY, f"lowerdir={layers}")
    except OSError as error:
        if over:
            raise SandboxError(f"its image lies over {host}, which needs an overlay: {error.strerror}") from error
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
    handle = os.open(root, inroot.HANDLE)
    try:
        for path, is_file in points:
            if path.split("/")[1] not in KERNEL_FOLDERS:
                os.close(inroot.make(handle, path, is_file))
    finally:
        os.close(handle)


def _bring_in_kernel_folders(root: str, box: Sandbox) -> None:
    own_proc = box.get("own_pids") or box.get("hide_processes")
    for folder in ("sys",) if own_proc else ("proc", "sys"):
        kernel.mount(f"/{folder}", f"{root}/{folder}", None, kernel.MS_BIND | kernel.MS_REC)
    if own_proc:
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        kernel.mount("proc", f"{root}/proc", "proc", flags, "hidepid=invisible" if box.get("hide_processes") else None)
    if box.get("privileged"):
        return
    kernel.make_read_only(f"{root}/sys")
    for path in READ_ONLY:  # the machine's own settings are not a container's to change
        if os.path.exists(path):
            kernel.mount(root + path, root + path, None, kernel.MS_BIND | kernel.MS_REC)
            kernel.make_read_only(root + path)


def _make_devices(root: str, box: Sandbox) -> None:
    dev = f"{root}/dev"
    if box.get("privileged"):
        kernel.mount("/dev", dev, None, kernel.MS_BIND | kernel.MS_REC)
        return
    # What is bound below has its own mount: any other device node in here is a name without a device.
    kernel.mount("tmpfs", dev, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=65536k")
    for path in [f"/dev/{name}" for name in DEVICES] + box.get("devices", []):
        if os.path.exists(path):
            _make_mount_point(root + path, True)
            kernel.mount(path, root + path, None, kernel.MS_BIND)
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(f"{dev}/{name}")
    kernel.mount(
        "devpts", f"{dev}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"
    )
    if box.get("own_ipc"):
        with contextlib.suppress(OSError):  # a kernel without POSIX' queues
            flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
            kernel.mount("mqueue", f"{dev}/mqueue", "mqueue", flags)
    kernel.mount("tmpfs", f"{dev}/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
    for name, to in links.items():
        os.symlink(to, f"{dev}/{name}")


def _bind_volumes(root: str, resolved: list[tuple[str, BindMount]], *, devices: bool) -> None:
    """By descriptors from both sides: neither a link in a volume nor one in an image leads anywhere else, whenever it
    is put there. Device nodes that lie in a volume are files without a device behind them, as on a cluster."""
    handle = os.open(root, inroot.HANDLE)
    try:
        for target, entry in resolved:
            _bind_volume(handle, target, entry)
        for target, entry in resolved:
            limits = (kernel.MS_RDONLY if entry["read_only"] else 0) | (0 if devices else kernel.MS_NODEV)
            if limits:
                mounted = inroot.find(handle, target)
                kernel.restrict(inroot.at(mounted), limits, whole=True)
                os.close(mounted)
    finally:
        os.close(handle)


def _bind_volume(root: int, target: str, entry: BindMount) -> None:
    try:
        source = _open_source(entry)
        point = inroot.make(root, target, entry["is_file"])
        kernel.mount(inroot.at(source), inroot.at(point), None, kernel.MS_BIND | kernel.MS_REC)
    except OSError as error:
        problem = os.strerror(error.errno).lower() if error.errno else str(error)
        text = f'error mounting "{entry["source"]}" to rootfs at "{target}": {problem}'
        raise SandboxError(text) from error
    os.close(source)
    os.close(point)


def _open_source(entry: BindMount) -> int:
    within = entry.get("within")
    if within is None:
        return os.open(entry["source"], inroot.HANDLE)
    volume = os.open(within, inroot.HANDLE | os.O_DIRECTORY)
    try:
        return inroot.find(volume, os.path.relpath(entry["source"], within))
    finally:
        os.close(volume)
