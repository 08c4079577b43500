"""From a container of a pod to the spec of its process: command, variables, mounts, user, limits."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from danlu.diagnose import say, stated
from danlu.embedded import private_files
from danlu.embedded.node import machine
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.images import driverfiles
from danlu.embedded.node.imagesource import Accounts, Image, UnknownUser
from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pods import environment, pause
from danlu.embedded.node.pods.resolvconf import resolver_file
from danlu.embedded.node.sandbox.box import BindMount, Sandbox
from danlu.embedded.node.sandbox.procfs import start_time
from danlu.embedded.node.sandbox.rootfs import SYSTEM_FOLDERS, normal
from danlu.embedded.node.sandbox.shim import LaunchSpec
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.node.volumes.folders import PreparedVolumes, VolumeMount
from danlu.embedded.reservedports import RESERVED_PORTS
from danlu.meta.kind import Object
from danlu.meta.quantity import parse

LEAST_LOG_FILE = 64 << 10
TERMINATION_LOG = "/dev/termination-log"


class CreateError(Exception):
    """CreateContainerError, or CreateContainerConfigError, with this message."""

    def __init__(self, message: str, reason: str = "CreateContainerError") -> None:
        super().__init__(message)
        self.reason = reason


def security_context(pod: Object, container: Object) -> Object:
    """The container's, with what the pod's says where it is silent."""
    of_pod = {k: v for k, v in (pod["spec"].get("securityContext") or {}).items() if v is not None}
    own = {k: v for k, v in (container.get("securityContext") or {}).items() if v is not None}
    return {**of_pod, **own}


def pod_key(pod: Object) -> str:
    meta = pod["metadata"]
    return f"{meta['name']}_{meta['namespace']}({meta['uid']})"


async def build(
    pod: Object, container: Object, attempt: int, image: Image, volumes: PreparedVolumes, context: NodeContext
) -> LaunchSpec:
    """Raises CreateError, environment.ConfigError or VolumeError. `pod` knows its address (status.podIP)."""
    uid, name = pod["metadata"]["uid"], container["name"]
    folder = context.containers.folder(uid, name, attempt)
    own = await environment.build(pod, container, context)
    argv = command_line(container, image, own)
    security = security_context(pod, container)
    account = _account(security, image, context)
    _refuse_root(pod, container, security, image.accounts)
    devices = context.devices(pod, container)
    env = _variables(pod, container, image, account.home, {**devices.env, **own})
    mounts = await _mounts(pod, container, image, folder, context, volumes.mounts(container, own))
    if context.mode == "none":
        env |= _hints(mounts, folder, env, own)
    if image.layers:
        files, found = driverfiles.of_container(devices.nodes, env)
        mounts += [_bound(source, target) for target, source in files.items()]
        env |= found
    for target, source in image.files.items():
        if target.split("/")[1] in SYSTEM_FOLDERS and context.mode != "none":
            # The host's folder lies over the container's own layer there, so the file has to be bound into it.
            mounts.append(_bound(source, target))
        else:
            _copy_in(source, folder / "root" / target.lstrip("/"))
    identity = uuid.uuid4().hex + uuid.uuid4().hex
    group = context.containers.cgroups.spec(identity, cpu_limit(container), memory_limit(container))
    return {
        "id": identity,
        **({"cgroup": group} if group is not None else {}),  # type: ignore[typeddict-item]
        "argv": argv,
        "env": env,
        "tty": bool(container.get("tty")),
        "stdin": bool(container.get("stdin")),
        "stdin_once": bool(container.get("stdinOnce")),
        "log": logfiles.path_for(context.data_dir, uid, name, attempt),
        "log_limits": log_limits(context.settings, machine.disk(Path(context.data_dir))),
        "memory_limit": memory_limit(container),
        "stop_signal": image.stop_signal,
        "sandbox": _sandbox(
            pod,
            {**security, "runAsUser": account.uid, "runAsGroup": account.gid},
            context,
            _FileTree(
                folder / "root",
                mounts,
                container.get("workingDir") or image.workdir,
                devices.nodes,
                [*image.layers],
                [*account.groups],
                image.on_machine,
            ),
        )
        | separation(pod, container, context),
    }


def separation(pod: Object, container: Object, context: NodeContext) -> Sandbox:
    """What of the machine the container's processes do not share; a part of its sandbox."""
    spec, can = pod["spec"], context.containers.spawner.capabilities
    security = security_context(pod, container)
    profile = (security.get("seccompProfile") or {}).get("type")
    found: Sandbox = {
        "own_pids": bool(can.own_pids and not spec.get("hostPID")),
        "own_ipc": bool(can.own_pids and not spec.get("hostIPC")),
        "default_seccomp": bool(can.seccomp) and not (security.get("privileged") or profile == "Unconfined"),
    }  # type: ignore[typeddict-item]
    if can.device_cgroups and not security.get("privileged"):
        found["device_cgroups"] = can.device_cgroups
    target = pause.NAME if spec.get("shareProcessNamespace") else container.get("targetContainerName")
    seen = next((c for c in context.containers.running_in(pod["metadata"]["uid"]) if target and c.name == target), None)
    if found["own_pids"] and seen is not None:
        found["beside"] = {"pid": seen.pid, "start": start_time(seen.pid)}
    return found


class _User(NamedTuple):
    """Whose a container's processes are; None: nobody asked, so whose the machine gives them."""

    uid: int | None
    gid: int | None
    groups: tuple[int, ...]
    home: str


def _account(security: Object, image: Image, context: NodeContext) -> _User:
    asked, group = security.get("runAsUser"), security.get("runAsGroup")
    if image.accounts is None:
        # A user without an account has no home; where every pod has such a user, programs get a place to write to.
        home = "/root" if not asked else "/tmp" if context.settings.shared else "/"
        return _User(asked, group, (), home)
    try:
        found = image.accounts.account(asked)
    except UnknownUser as error:
        raise CreateError(str(error)) from error
    return _User(found.uid, found.gid if group is None else group, found.groups, found.home)


class _FileTree(NamedTuple):
    """What a container's processes see."""

    root: Path
    mounts: list[BindMount]
    cwd: str
    devices: list[str]
    layers: list[str]
    groups: list[int]  # that the image gives its user
    on_machine: bool  # the layers lie over the machine's folders


def _sandbox(pod: Object, security: Object, context: NodeContext, tree: _FileTree) -> Sandbox:
    capabilities = security.get("capabilities") or {}
    host_network = bool(pod["spec"].get("hostNetwork"))
    box: Sandbox = {
        "mode": context.mode,
        "root": str(tree.root),
        "layers": tree.layers,
        "on_machine": tree.on_machine,
        "hostname": "" if host_network else environment.hostname(pod),
        "mounts": tree.mounts,
        "cwd": tree.cwd,
        "uid": security.get("runAsUser"),
        "gid": security.get("runAsGroup"),
        "groups": [
            *tree.groups,
            *(security.get("supplementalGroups") or ()),
            *([g] if (g := security.get("fsGroup")) else ()),
        ],
        "devices": tree.devices,
        "privileged": bool(security.get("privileged")),
        "add_capabilities": list(capabilities.get("add") or ()),
        "drop_capabilities": list(capabilities.get("drop") or ()),
        "no_new_privs": security.get("allowPrivilegeEscalation") is False,
        "read_only_root": bool(security.get("readOnlyRootFilesystem")),
        "hide_processes": context.settings.shared,
    }
    if context.containers.spawner.capabilities.own_ports:
        box["ports"] = {
            "address": "" if host_network else (pod.get("status") or {}).get("podIP", ""),
            "networks": [context.settings.pod_network, context.settings.service_network],
            "reserved": str(Path(context.data_dir) / RESERVED_PORTS),
            "first_free": context.sockets.first_free,
        }
    return box


def log_limits(settings: NodeSettings, disk: machine.Disk) -> list[int]:
    """Bytes of one file of a log, and of all files of one run: on a small disk less than the settings allow."""
    most = min(settings.log_file_bytes * settings.log_files, logs_in_all(settings, disk) // 5)
    return [min(settings.log_file_bytes, max(most // 5, LEAST_LOG_FILE)), most]


def logs_in_all(settings: NodeSettings, disk: machine.Disk) -> int:
    return min(settings.logs_in_all, disk.total // 10) if disk.total else settings.logs_in_all


def command_line(container: Object, image: Image, env: Mapping[str, str]) -> list[str]:
    command = environment.expand(container.get("command") or (), env)
    args = environment.expand(container.get("args") or (), env)
    if command:
        return command + args
    if not image.known:
        raise CreateError(say("DL-NO-COMMAND", image=image.name, describe=image.remedy))
    argv = [*image.entrypoint, *(args or image.cmd)]
    if not argv:
        raise CreateError("no command specified")
    return argv


def _refuse_root(pod: Object, container: Object, security: Object, accounts: Accounts | None = None) -> None:
    if not security.get("runAsNonRoot"):
        return
    user = security.get("runAsUser")
    where = f'(pod: "{pod_key(pod)}", container: {container["name"]})'
    if user == 0:
        raise CreateError(f"container's runAsUser breaks non-root policy {where}", "CreateContainerConfigError")
    if user is not None:
        return
    if accounts is not None and accounts.is_named:
        known = f"has non-numeric user ({accounts.user}), cannot verify user is non-root"
    elif accounts is None or accounts.account(None).uid == 0:
        known = "will run as root"
    else:
        return
    raise CreateError(f"container has runAsNonRoot and image {known} {where}", "CreateContainerConfigError")


def _variables(pod: Object, container: Object, image: Image, home: str, own: Mapping[str, str]) -> dict[str, str]:
    found = environment.runtime_defaults(pod, home) | dict(image.env)
    found["DANLU_POD_IP"] = (pod.get("status") or {}).get("podIP", "")
    if container.get("tty"):
        found["TERM"] = "xterm"
    limit = (container.get("resources") or {}).get("limits", {}).get("cpu")
    if limit is not None:
        # A virtual node may promise more cores than there are; threads beyond them only get in each other's way.
        threads = str(max(1, min(parse(limit).value(), os.cpu_count() or 1)))
        found |= dict.fromkeys(image.core_variables, threads)
    return found | dict(own)


def cpu_limit(container: Object) -> int:
    """In thousandths of a core; 0 for none."""
    limit = ((container.get("resources") or {}).get("limits") or {}).get("cpu")
    return parse(limit).milli() if limit is not None else 0


def memory_limit(container: Object) -> int:
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    return int(parse(limit).value()) if limit is not None else 0


async def _mounts(
    pod: Object,
    container: Object,
    image: Image,
    folder: Path,
    context: NodeContext,
    of_volumes: Iterable[VolumeMount],
) -> list[BindMount]:
    found: dict[str, BindMount] = {}

    def add(source: str, target: str, *, read_only: bool, is_file: bool) -> None:
        found[target] = {"source": source, "target": target, "read_only": read_only, "is_file": is_file}

    for target, source in image.folders.items():
        add(source, target, read_only=True, is_file=False)
    for source, target in (await _own_files(pod, context)).items():
        # The hosts file is shared by the namespace: one pod must not write into the others'.
        add(source, target, read_only=target == "/etc/hosts", is_file=True)
    message_file = folder / "termination-log"
    message_file.parent.mkdir(parents=True, exist_ok=True)
    message_file.touch()
    message_file.chmod(0o666)
    add(str(message_file), container.get("terminationMessagePath") or TERMINATION_LOG, read_only=False, is_file=True)
    for mount in of_volumes:
        target = normal(mount.target)
        add(mount.source, target, read_only=mount.read_only, is_file=mount.is_file)
        if mount.within:
            found[target]["within"] = mount.within
    return list(found.values())


async def _own_files(pod: Object, context: NodeContext) -> dict[str, str]:
    """/etc/hosts, /etc/hostname and /etc/resolv.conf of this pod: source -> target."""
    folder = context.pod_folder(pod["metadata"]["uid"]) / "etc"
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    hosts = await context.hosts_file(pod, (pod.get("status") or {}).get("podIP", ""))
    if hosts:
        found[hosts] = "/etc/hosts"
    if not pod["spec"].get("hostNetwork"):
        _write_open(folder / "hostname", environment.hostname(pod) + "\n")
        found[str(folder / "hostname")] = "/etc/hostname"
    _write_open(folder / "resolv.conf", resolver_file(pod, context.cluster_dns()))
    found[str(folder / "resolv.conf")] = "/etc/resolv.conf"
    return found


def _write_open(path: Path, text: str) -> None:
    """For whoever the pod runs as. A file that is right stays: containers that run have it bound."""
    if not path.exists() or path.read_text() != text:
        private_files.write(path, text.encode(), 0o644, durable=False)


def _hints(mounts: list[BindMount], folder: Path, env: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Without namespaces a program cannot find its volumes by path: DANLU_MOUNT_<PATH> tells where they are."""
    found = {}
    for mount in mounts:
        word = "".join(c if c.isalnum() else "_" for c in mount["target"].strip("/")).upper()
        found[f"DANLU_MOUNT_{word}"] = mount["source"]
    for name, path in (("HOME", "root"), ("TMPDIR", "tmp")):
        if name not in own:
            _make_open(folder / "root" / path)
            found[name] = str(folder / "root" / path)
    return found


def _bound(source: str, target: str) -> BindMount:
    return {"source": source, "target": target, "read_only": True, "is_file": not os.path.isdir(source)}


def _copy_in(stated: str, target: Path) -> None:
    source = Path(stated).expanduser()
    try:
        if source.is_dir():
            _make_open(target.parent)
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
        else:
            _make_open(target.parent)
            shutil.copy2(source, target)
    except OSError as error:
        raise CreateError(f"the image's file {source} cannot be copied: {error.strerror}") from error


def _make_open(folder: Path) -> None:
    """A folder of the container's own tree, with its parents: open to whoever it runs as, whatever our umask."""
    if not folder.exists():
        _make_open(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def user_note(pod: Object, container: Object, mode: str) -> str:
    """What an event has to say about runAsUser where it cannot be had; "" where it can."""
    wanted = security_context(pod, container).get("runAsUser")
    if not wanted or mode == "root":
        return ""
    if mode == "user":
        return stated("DL-RUN-AS-INSIDE", user=wanted)
    return stated("DL-RUN-AS-IGNORED", user=wanted)
