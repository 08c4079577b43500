"""The container's view of the machine: its own file tree, host name and user, made with namespaces and no programs.

Runs in a freshly forked, single-threaded child of the shim, between fork and exec, and needs only the standard library.
Three modes, found by trying (`detect`):

- ``root``: mount and uts namespaces directly;
- ``user``: the same inside a user namespace, so that an ordinary user may do it;
- ``none``: degraded. No namespace can be made (macOS, locked-down hosts): a plain process, volumes by symbolic links
  where the path can be made.

The tree: the container's writable layer (a folder on disk, see `layering`) is the root. System folders of the host are
bound into it read-only, /proc and /sys come from the host, /dev is made fresh, and everything else (/tmp, /run, /var,
/root, /home, and whatever the container makes) is the layer's own. Volumes are bound last, shortest path first. A mount
point that is missing inside a read-only folder is made by laying a skeleton over that folder (a read-only overlay;
where the kernel refuses one, a folder of single binds).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple, NotRequired, TypedDict

from danlu.embedded.node import kernel, layering, ownports

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "snap", "gnu")
NO_LINKS = (*SYSTEM_FOLDERS, "dev", "proc", "sys", "boot")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
FORCED = "DANLU_SANDBOX"  # "none" in the environment: run degraded, to try out what others have to live with
MOST_FILES = 1 << 20
OLD_ROOT = ".danlu-host"
PRIVATE_FOLDERS = ("root", "home", "run/lock", "var/log", "var/lib", "var/cache", "var/spool", "mnt", "media", "srv")
OPEN_FOLDERS = ("tmp", "var/tmp")
PRIVATE_LINKS = {"var/run": "/run", "var/lock": "/run/lock"}
KERNEL_FOLDERS = ("proc", "sys", "dev")

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


class Mount(TypedDict):
    source: str
    target: str
    read_only: bool
    is_file: bool


class Sandbox(TypedDict):
    """What `enter` needs to know; a part of the container's spec.json."""

    mode: str
    root: str  # the writable layer, an existing folder
    hostname: str  # "" keeps the host's
    mounts: list[Mount]
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
    """The container's surroundings could not be made; the message is for the pod's status."""


class Capabilities(NamedTuple):
    mode: str  # "root", "user" or "none"
    reason: str  # one line for `danlu status`
    own_ports: str = ""  # "yes" when no pod can bind what is another's: see `ownports`


# ---------------------------------------------------------------- detection


def detect() -> Capabilities:
    """Tries each mode in a child. Call it from a single-threaded process."""
    if not sys.platform.startswith("linux"):
        return Capabilities("none", f"{sys.platform} has no namespaces: containers share the host's file tree")
    if os.environ.get(FORCED) == "none":
        return Capabilities("none", f"containers share the host's file tree, because {FORCED}=none asks for it")
    problems: list[str] = []
    for mode in ("root", "user"):
        if mode == "root" and os.geteuid() != 0:
            continue
        problem = _attempt(mode)
        if not problem:
            who = "as root" if mode == "root" else "through user namespaces"
            lacking = _attempt(mode, ownports.probe)
            if lacking:
                text = f"each container has its own file tree and host name ({who}); ports are shared: {lacking}"
                return Capabilities(mode, text)
            return Capabilities(mode, f"each container has its own file tree, host name and ports ({who})", "yes")
        problems.append(problem)
    return Capabilities("none", f"containers share the host's file tree: {'; '.join(problems)}")


def capabilities() -> Capabilities:
    """For `danlu status`: asks a fresh interpreter, because a process with threads must not fork and unshare."""
    found = _asked("print_detected")
    return Capabilities(**found) if "mode" in found else Capabilities("none", found["problem"])


def hiding_problem() -> str:
    """Why a container cannot have a /proc with the processes of its own user alone; "" when it can."""
    return _asked("print_hiding_problem")["problem"]


def _asked(function: str) -> dict[str, str]:
    import subprocess

    from danlu.embedded.node.bootstrap import helper_command

    answer = subprocess.run(helper_command("sandbox", function), capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return {"problem": answer.stderr.strip().rsplit("\n", 1)[-1]}
    found: dict[str, str] = json.loads(answer.stdout)
    return found


def print_hiding_problem() -> None:
    print(json.dumps({"problem": _attempt("root", hide_processes=True)}))


def print_detected() -> None:
    found = detect()
    print(json.dumps(found._asdict()))


def _attempt(
    mode: str, attempt: Callable[[Callable[[], None]], str] | None = None, *, hide_processes: bool = False
) -> str:
    """ "" when a sandbox of this mode can be entered, else why not; `attempt` tries something with who enters it."""
    import tempfile
    from pathlib import Path

    from danlu.embedded.node.traces import remove_tree

    folder = tempfile.mkdtemp(prefix="danlu-sandbox-")
    root = os.path.join(folder, "root")
    os.mkdir(root)
    box: Sandbox = {"mode": mode, "root": root, "hostname": "danlu-probe", "mounts": [], "cwd": "/"}
    box["hide_processes"] = hide_processes
    problem = (attempt or _in_a_child)(lambda: enter(box))
    remove_tree(Path(folder))
    return problem


def _in_a_child(enter: Callable[[], None]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        problem = ""
        try:
            enter()
        except BaseException as error:  # whatever it is, it is the answer
            problem = str(error) or type(error).__name__
        os.write(writer, problem.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        problem = answer.read().decode()
    os.waitpid(child, 0)
    return problem


# ---------------------------------------------------------------- entering


def enter(box: Sandbox) -> None:
    """Puts the calling process into its sandbox, up to (not including) giving up privileges: see `drop_privileges`."""
    try:
        if box["mode"] == "none":
            _enter_degraded(box)
        else:
            _enter_namespaces(box)
    except OSError as error:
        raise SandboxError(error.strerror or str(error)) from error


def _enter_namespaces(box: Sandbox) -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = kernel.CLONE_NEWNS | (kernel.CLONE_NEWUTS if box["hostname"] else 0)
    if box["mode"] == "user":
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _map_user(uid, gid, box.get("uid") or 0, box.get("gid") or 0)
    else:
        kernel.unshare(flags)
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    _build_root(box)
    if box["hostname"]:
        socket.sethostname(box["hostname"])
    _go_to(box["cwd"])


def _map_user(uid: int, gid: int, inside_uid: int, inside_gid: int) -> None:
    for path, text in (
        ("/proc/self/setgroups", "deny"),
        ("/proc/self/uid_map", f"{inside_uid} {uid} 1"),
        ("/proc/self/gid_map", f"{inside_gid} {gid} 1"),
    ):
        with open(path, "w") as file:
            file.write(text)


def _go_to(cwd: str) -> None:
    try:
        os.makedirs(cwd, exist_ok=True)
        os.chdir(cwd)
    except OSError as error:
        problem = (error.strerror or "").lower()
        raise SandboxError(f'chdir to cwd ("{cwd}") set in config.json failed: {problem}') from error


def _build_root(box: Sandbox) -> None:
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


def _is_missing(path: str, folder: str, entry: Mount) -> bool:
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


def _enter_degraded(box: Sandbox) -> None:
    """Volumes by links where the path is free; the rest is told through the environment (see launch).

    The paths are the host's, and other pods may want the same ones: what is there is never touched, system folders
    get no links, and `remove_links` takes ours away when the pod is over.
    """
    for entry in sorted(_linkable(box), key=lambda entry: entry["target"].count("/")):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(entry["target"]), exist_ok=True)
            os.symlink(entry["source"], entry["target"])
    for candidate in (box["cwd"], box["root"] + box["cwd"]):
        try:
            os.chdir(candidate)
            return
        except OSError:
            continue
    os.makedirs(box["root"] + box["cwd"], exist_ok=True)
    os.chdir(box["root"] + box["cwd"])


def _linkable(box: Sandbox) -> list[Mount]:
    return [
        entry
        for entry in box["mounts"]
        if entry["target"] != entry["source"] and entry["target"].split("/")[1] not in NO_LINKS
    ]


def remove_links(box: Sandbox) -> None:
    """Takes away the links of a degraded container that still lead to its volumes. Nothing to do in other modes."""
    if box["mode"] != "none":
        return
    for entry in _linkable(box):
        with contextlib.suppress(OSError):
            if os.readlink(entry["target"]) == entry["source"]:
                os.unlink(entry["target"])


# ---------------------------------------------------------------- giving up privileges


def drop_privileges(box: Sandbox) -> None:
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


def _drop_capabilities(box: Sandbox) -> None:
    added = {name.upper().removeprefix("CAP_") for name in box.get("add_capabilities", [])}
    dropped = {name.upper().removeprefix("CAP_") for name in box.get("drop_capabilities", [])}
    if "ALL" in added:
        kept = set(CAPABILITIES)
    else:
        kept = set() if "ALL" in dropped else set(DEFAULT_CAPABILITIES)
        kept |= added
    kept -= dropped
    for number, name in enumerate(CAPABILITIES):
        # What is needed below to become another user is given up by becoming it.
        if name not in kept:
            kernel.prctl(kernel.PR_CAPBSET_DROP, number)


def join(pid: int, box: Sandbox) -> None:
    """Into the sandbox of a running container, for exec. The owner of a user namespace may enter it."""
    if box["mode"] == "none":
        _enter_degraded(box)
        return
    kinds = [("mnt", kernel.CLONE_NEWNS)]
    if box["hostname"]:
        kinds.insert(0, ("uts", kernel.CLONE_NEWUTS))
    if box["mode"] == "user":
        kinds.insert(0, ("user", kernel.CLONE_NEWUSER))
    handles = [(os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind) for name, kind in kinds]
    for handle, kind in handles:
        kernel.setns(handle, kind)
        os.close(handle)
    _go_to(box["cwd"])
