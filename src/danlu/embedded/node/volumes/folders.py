"""The volumes of a pod as folders on this machine, and where each container sees them.

Invariants:
- `prepare` may be called again for the same pod (a retry, an adopted pod): it finds what is there and goes on.
- What the pod itself brought (emptyDir, files from the API) is removed by `tear_down`; data of a claim never is.

Pods are not shut off from the host's files by this: the kernel's namespaces give them their own view, and the user's
rights are the border, as for any program the user starts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from danlu.client.client import Client
from danlu.embedded.hostpaths import WHY, is_protected, is_provisioned
from danlu.embedded.node.volumes import atomicfiles, memory_volumes, subpaths, volumefiles
from danlu.embedded.node.volumes.subpaths import VolumeError as VolumeError
from danlu.errors import ApiError, NotFound
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.quantity import parse
from danlu.meta.wellknown import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD

log = logging.getLogger(__name__)

SMALL = 64 * 1024  # bytes of files that are written in less time than a thread takes to be woken
REFRESH_SECONDS = 10.0

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
# hostPath type -> (test on st_mode, what kubelet says it is not)
HOST_PATH_TYPES = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class VolumeContext(Protocol):
    @property
    def client(self) -> Client: ...
    @property
    def node_name(self) -> str: ...
    @property
    def api_address(self) -> Callable[[], tuple[str, int] | None]: ...
    @property
    def addressed_services(self) -> Callable[[str], Sequence[Object]] | None: ...
    @property
    def data_dir(self) -> str: ...


@dataclass(frozen=True, slots=True)
class VolumeMount:
    source: str
    target: str
    read_only: bool
    is_file: bool
    within: str = ""  # of a subPath: its volume


@dataclass(frozen=True, slots=True)
class EmptyDir:
    """For eviction: a folder whose size counts, and the most it may grow to."""

    name: str
    path: str
    size_limit: str | None
    in_memory: bool


@dataclass(slots=True)
class _Volume:
    path: str
    read_only: bool = False


class PreparedVolumes:
    def __init__(self, pod: Object, context: VolumeContext) -> None:
        self._pod = pod
        self._context = context
        self._tokens = volumefiles.PodTokens(pod, context)
        self._volumes: dict[str, _Volume] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self.empty_dirs: list[EmptyDir] = []

    def mounts(self, container: Object, env: Mapping[str, str] | None = None) -> list[VolumeMount]:
        """Where the container sees what. `env` (of `environment.build`) is for subPathExpr."""
        mounts = []
        for wanted in container.get("volumeMounts") or []:
            volume = self._volumes.get(wanted["name"])
            if volume is None:
                raise VolumeError("CreateContainerConfigError", f'cannot find volume "{wanted["name"]}" to mount')
            source, within = volume.path, ""
            sub_path = subpaths.wanted(wanted, env or {})
            if sub_path:
                source = subpaths.inside(volume.path, sub_path, wanted["name"], container["name"])
                within = os.path.realpath(volume.path)
            read_only = volume.read_only or bool(wanted.get("readOnly"))
            mounts.append(VolumeMount(source, wanted["mountPath"], read_only, not os.path.isdir(source), within))
        return mounts

    @property
    def paths(self) -> dict[str, str]:
        return {name: volume.path for name, volume in self._volumes.items()}

    async def _set_up(self) -> None:
        for volume in self._pod["spec"].get("volumes") or []:
            self._volumes[volume["name"]] = await self._one(volume)
        if self._refreshing is None and any(map(_from_api, self._pod["spec"].get("volumes") or [])):
            name = f"volumes of {self._pod['metadata']['namespace']}/{self._pod['metadata']['name']}"
            self._refreshing = asyncio.create_task(self._keep_fresh(), name=name)

    async def _one(self, volume: Object) -> _Volume:
        name = volume["name"]
        if _from_api(volume):
            return await self._files(volume)
        if "emptyDir" in volume:
            return self._empty_dir(name, volume["emptyDir"] or {})
        if "hostPath" in volume:
            return _Volume(host_path(name, volume["hostPath"], self._context.data_dir))
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]
            return await self._claim(name, claim["claimName"], bool(claim.get("readOnly")))
        if "ephemeral" in volume:
            return await self._claim(name, f"{self._pod['metadata']['name']}-{name}", False)
        kind = next((key for key in volume if key != "name"), None)
        if kind is None:  # an empty source means emptyDir
            return self._empty_dir(name, {})
        raise _failed(name, f"volumes of kind {kind} are not supported by this node")

    # -- the kinds of volumes

    async def _files(self, volume: Object) -> _Volume:
        name = volume["name"]
        path = f"{pod_volumes(self._context.data_dir, self._pod['metadata']['uid'])}/{name}"
        gid = _fs_group(self._pod)
        try:
            files = await volumefiles.payload(volume, self._pod, self._context, self._tokens)
            if gid is not None:
                files = {key: atomicfiles.File(f.data, f.mode | (f.mode & 0o400) >> 3) for key, f in files.items()}
            if sum(len(file.data) for file in files.values()) <= SMALL:
                atomicfiles.write(path, files, gid)
            else:
                await asyncio.to_thread(atomicfiles.write, path, files, gid)
        except (volumefiles.SourceError, ApiError, OSError, ValueError) as error:
            raise _failed(name, str(error)) from error
        return _Volume(path, read_only=True)

    def _empty_dir(self, name: str, source: Mapping[str, Any]) -> _Volume:
        uid = self._pod["metadata"]["uid"]
        data_dir = self._context.data_dir
        in_memory = source.get("medium") == "Memory" and memory_volumes.available()
        try:
            folder = memory_volumes.of_pod(data_dir, uid) if in_memory else pod_volumes(data_dir, uid)
            path = f"{folder}/{name}"
            if in_memory:
                limit = source.get("sizeLimit")
                memory_volumes.make(path, int(parse(limit).value()) if limit is not None else 0)
            else:
                os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o777)  # the pod runs as any user; the folders around it are closed
            _give_to_group(path, _fs_group(self._pod))
        except OSError as error:
            raise _failed(name, str(error)) from error
        self.empty_dirs.append(EmptyDir(name, path, source.get("sizeLimit"), in_memory))
        return _Volume(path)

    async def _claim(self, volume: str, claim_name: str, read_only: bool) -> _Volume:
        namespace = self._pod["metadata"]["namespace"]
        try:
            claim, persistent = await self._bound(namespace, claim_name)
        except _ClaimProblem as problem:
            text = f"error processing PVC {namespace}/{claim_name}: {problem}"
            raise VolumeError(
                "FailedMount",
                f"Unable to attach or mount volumes: unmounted volumes=[{volume}], unattached volumes=[], "
                f"failed to process volumes=[{volume}]: {text}",
            ) from problem
        spec = persistent["spec"]
        if claim["spec"].get("volumeMode") == "Block":
            raise _failed(volume, f"volume {volume} has volumeMode Block, but is specified in volumeMounts")
        source = spec.get("hostPath") or spec.get("local")
        if source is None:
            kind = next((key for key in spec if isinstance(spec[key], dict) and key != "claimRef"), "unknown")
            raise _failed(volume, f"persistent volumes of kind {kind} are not supported by this node")
        path = self._persistent_path(volume, persistent, source["path"])
        try:
            _make_open(path)
            policy = (self._pod["spec"].get("securityContext") or {}).get("fsGroupChangePolicy")
            _give_to_group(path, _fs_group(self._pod), only_on_mismatch=policy == "OnRootMismatch")
        except OSError as error:
            raise _failed(volume, str(error)) from error
        only_readers = claim["spec"].get("accessModes") == ["ReadOnlyMany"]
        return _Volume(path, read_only or only_readers)

    def _persistent_path(self, volume: str, persistent: Object, path: str) -> str:
        """Volumes of our provisioner lie in the data directory, in folders of their own; no others do."""
        own, real = os.path.realpath(self._context.data_dir), os.path.realpath(path)
        provisioned = PROVISIONED_BY in objects.annotations_of(persistent)
        if provisioned and is_provisioned(real, own):
            return real
        return _outside(volume, path, self._context.data_dir)

    async def _bound(self, namespace: str, claim_name: str) -> tuple[Object, Object]:
        client = self._context.client
        try:
            claim = await client.get(PERSISTENT_VOLUME_CLAIM, claim_name, namespace)
        except ApiError as error:
            raise _ClaimProblem(f"failed to fetch PVC from API server: {error.message}") from error
        if claim["metadata"].get("deletionTimestamp") and not self._pod["metadata"].get("deletionTimestamp"):
            raise _ClaimProblem("PVC is being deleted")
        if claim.get("status", {}).get("phase") != "Bound":
            raise _ClaimProblem("PVC is not bound")
        name = claim["spec"].get("volumeName")
        if not name:
            raise _ClaimProblem("PVC has empty pvc.Spec.VolumeName")
        try:
            persistent = await client.get(PERSISTENT_VOLUME, name)
        except ApiError as error:
            raise _ClaimProblem(f"failed to fetch PV {name} from API server: {error.message}") from error
        owner = persistent["spec"].get("claimRef") or {}
        if owner.get("uid") and owner["uid"] != claim["metadata"]["uid"]:
            raise _ClaimProblem(
                f"found PV object {name} but its pv.Spec.ClaimRef.UID {owner['uid']} "
                f"does not point to claim.UID {claim['metadata']['uid']}"
            )
        return claim, persistent

    # -- keeping files from the API current

    async def _keep_fresh(self) -> None:
        meta = self._pod["metadata"]
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                self._pod = await self._context.client.get(POD, meta["name"], meta["namespace"])
            except NotFound:
                return
            except ApiError:
                continue
            if self._pod["metadata"]["uid"] != meta["uid"]:
                return
            if self._pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                return
            await self.refresh()

    async def refresh(self) -> None:
        """Brings files from the API up to date. A source that is gone leaves the old content, as kubelet does."""
        for volume in self._pod["spec"].get("volumes") or []:
            if _from_api(volume):
                try:
                    await self._files(volume)
                except VolumeError as error:
                    log.info("pod %s: %s", self._pod["metadata"]["name"], error)

    def stop_refreshing(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            self._refreshing = None


class _ClaimProblem(Exception):
    pass


_prepared: dict[str, PreparedVolumes] = {}


async def prepare(pod: Object, context: VolumeContext) -> PreparedVolumes:
    """Makes every volume of the pod; raises VolumeError when one cannot be had (yet)."""
    uid = pod["metadata"]["uid"]
    forget(uid)
    prepared = PreparedVolumes(pod, context)
    await prepared._set_up()
    _prepared[uid] = prepared
    return prepared


def forget(pod_uid: str) -> None:
    """Stops keeping the files of a pod current (it ended, or this process does); nothing on disk changes."""
    known = _prepared.pop(pod_uid, None)
    if known is not None:
        known.stop_refreshing()


async def tear_down(pod_uid: str, data_dir: str) -> None:
    """Removes what the pod brought. Data of claims and of the host stay."""
    forget(pod_uid)
    await asyncio.to_thread(_remove, pod_volumes(data_dir, pod_uid))
    in_memory = memory_volumes.existing(data_dir, pod_uid)
    if in_memory is not None:
        memory_volumes.unmount(in_memory)
        await asyncio.to_thread(_remove, in_memory)
        memory_volumes.tidy(data_dir)


def pod_volumes(data_dir: str, pod_uid: str) -> str:
    return f"{data_dir}/pods/{pod_uid}/volumes"


def _remove(folder: str) -> None:
    if not os.path.lexists(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):  # a folder that its program made unwritable does not outlive the pod
        for at, _, _ in os.walk(folder):
            with suppress(OSError):
                os.chmod(at, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _from_api(volume: Object) -> bool:
    return any(kind in volume for kind in volumefiles.KINDS)


def _failed(volume: str, why: str) -> VolumeError:
    return VolumeError("FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {why}')


def host_path(volume: str, source: Mapping[str, Any], data_dir: str) -> str:
    """Checks, and where asked makes, what a hostPath names. The answer has no links: what was checked is mounted."""
    kind = source.get("type") or ""
    if ".." in source["path"].split("/"):
        raise _failed(volume, f"invalid HostPath `{source['path']}`: must not contain '..'")
    path = _outside(volume, source["path"], data_dir)
    try:
        if not os.path.lexists(path):
            if kind in ("", "DirectoryOrCreate"):
                _make_open(path)
            elif kind == "FileOrCreate":
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
                os.chmod(path, 0o644)
        if kind:
            test, what = HOST_PATH_TYPES[kind]
            if not os.path.exists(path) or not test(os.stat(path).st_mode):
                raise _failed(volume, f"hostPath type check failed: {path} is not {what}")
    except OSError as error:
        raise _failed(volume, str(error)) from error
    return path


def _make_open(path: str) -> None:
    """kubelet's own mode, whatever the umask."""
    if not os.path.isdir(path):
        os.makedirs(path)
        os.chmod(path, 0o755)


def _outside(volume: str, path: str, data_dir: str) -> str:
    """Where the path leads; refused where that is our own."""
    real: str = os.path.realpath(path)
    if is_protected(real, os.path.realpath(data_dir)):
        raise _failed(volume, f"invalid HostPath `{path}`: it leads to {real}, and may not be mounted: {WHY}")
    return real


# -- fsGroup


def _fs_group(pod: Object) -> int | None:
    """The group that volumes are given to; only root can give them."""
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return int(group) if group is not None and os.geteuid() == 0 else None


def _give_to_group(path: str, gid: int | None, only_on_mismatch: bool = False) -> None:
    if gid is None:
        return
    root = os.stat(path)
    if only_on_mismatch and root.st_gid == gid and root.st_mode & 0o2070 == 0o2070:
        return
    for at, folders, files in os.walk(path):
        for name in ("", *files, *(f for f in folders if os.path.islink(f"{at}/{f}"))):
            full = f"{at}/{name}" if name else at
            os.chown(full, -1, gid, follow_symlinks=False)
            if not os.path.islink(full):
                mode = stat.S_IMODE(os.stat(full).st_mode)
                os.chmod(full, mode | 0o660 | (0o2110 if not name else 0))
