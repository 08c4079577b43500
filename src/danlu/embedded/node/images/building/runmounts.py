"""RUN --mount: caches, secrets, files of the context or of other stages, memory; none of it gets into the image."""

from __future__ import annotations

import contextlib
import fcntl
import os
import posixpath
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from danlu.embedded.node.images.building import trees
from danlu.embedded.node.images.building.buildcache import BuildCache
from danlu.embedded.node.images.building.builderrors import wrong_line
from danlu.embedded.node.images.building.copystep import Copy, Taken, taken
from danlu.embedded.node.images.building.trees import SourceTree
from danlu.embedded.node.sandbox.box import BindMount

NAMES = {"dst": "target", "destination": "target", "src": "source", "readonly": "ro", "readwrite": "rw"}
KNOWN = {
    "cache": {"target", "id", "sharing", "ro", "uid", "gid", "mode"},
    "secret": {"target", "id", "required", "mode", "env", "uid", "gid"},
    "bind": {"target", "source", "from", "rw", "ro"},
    "tmpfs": {"target", "size"},
}
SECRETS = "/run/secrets"
YES = ("", "true", "1")


@dataclass(frozen=True)
class MountRequest:
    line: int
    kind: str
    options: Mapping[str, str]

    @property
    def target(self) -> str:
        return self.options.get("target", "")

    def is_on(self, name: str) -> bool:
        return name in self.options and self.options[name] in YES


@dataclass(frozen=True)
class MountSources:
    """Where mounts take from."""

    cache: BuildCache
    secrets: Mapping[str, Path]
    tree: Callable[[str, int], SourceTree]  # of `from`, "" the context
    cwd: str


def parse(text: str, line: int) -> MountRequest:
    """Raises BuildError."""
    options: dict[str, str] = {}
    for word in text.split(","):
        name, _, value = word.partition("=")
        name = name.strip().lower()
        options[NAMES.get(name, name)] = value.strip()
    kind = options.pop("type", "bind")
    if kind not in KNOWN:
        raise wrong_line(line, f"--mount=type={kind[:20]} is not known here; there are {', '.join(KNOWN)}")
    if unknown := options.keys() - KNOWN[kind]:
        raise wrong_line(line, f"--mount=type={kind} has no {', '.join(sorted(unknown))} here")
    if "target" not in options and kind != "secret":
        raise wrong_line(line, f"--mount=type={kind} needs a target")
    return MountRequest(line, kind, options)


def fingerprint(request: MountRequest, sources: MountSources) -> object:
    """What of it a step depends on: of a bind its files, of a cache or a secret only that there is one."""
    found = ""
    if request.kind == "bind":
        found = Copy(request.line, tuple(_bound(request, sources)), "/", into=True, unpacks=False).digest()
    return [request.kind, dict(request.options), found]


def _bound(request: MountRequest, sources: MountSources) -> list[Taken]:
    stage = request.options.get("from", "")
    tree = sources.tree(stage, request.line)
    return taken(tree, request.options.get("source") or "/", request.line, stage or "the context")


class Mounts:
    """Of one RUN: made in its folder, and let go afterwards."""

    def __init__(self, requests: list[MountRequest], sources: MountSources, folder: Path) -> None:
        self.binds: list[BindMount] = []
        self.env: dict[str, str] = {}
        self._sources = sources
        self._folder = folder / "mounts"
        self._requests = requests
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def made(self) -> Iterator[Mounts]:
        """Raises BuildError, OSError."""
        self._folder.mkdir(mode=0o755)
        with self._stack:
            for number, request in enumerate(self._requests):
                {"cache": self._cache, "secret": self._secret, "bind": self._bind, "tmpfs": self._tmpfs}[request.kind](
                    request, self._folder / str(number)
                )
            yield self

    def _add(self, source: Path, target: str, *, read_only: bool, is_file: bool = False) -> None:
        target = posixpath.normpath(posixpath.join("/", self._sources.cwd, target))
        self.binds.append({"source": str(source), "target": target, "read_only": read_only, "is_file": is_file})

    def _cache(self, request: MountRequest, _: Path) -> None:
        folder = self._sources.cache.mount(request.options.get("id") or request.target)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._stack.callback(os.close, handle)
        if request.options.get("sharing", "shared") != "shared":
            fcntl.flock(handle, fcntl.LOCK_EX)
        os.chmod(folder, _mode(request, 0o755))
        self._own(folder, request)
        self._add(folder, request.target, read_only=request.is_on("ro"))

    def _secret(self, request: MountRequest, copy: Path) -> None:
        name = request.options.get("id") or posixpath.basename(request.target)
        source = self._sources.secrets.get(name)
        if source is None:
            if request.is_on("required"):
                raise wrong_line(
                    request.line, f"the secret {name} is required: hand it in with --secret id={name},src=…"
                )
            return
        data = source.read_bytes()
        if variable := request.options.get("env"):
            self.env[variable] = data.decode(errors="surrogateescape").rstrip("\n")
            if not request.target:
                return
        copy.touch(mode=0o600)
        copy.write_bytes(data)
        copy.chmod(_mode(request, 0o400))
        self._own(copy, request)
        self._add(copy, request.target or f"{SECRETS}/{name}", read_only=True, is_file=True)

    def _own(self, path: Path, request: MountRequest) -> None:
        if os.geteuid() == 0:
            os.chown(path, _number(request, "uid"), _number(request, "gid"))

    def _bind(self, request: MountRequest, copy: Path) -> None:
        """A copy: what the context leaves out is not in it, and what the step writes goes with it."""
        [source] = _bound(request, self._sources)[:1]
        host = source.tree.host(source.path)
        is_file = trees.kind(host) == stat.S_IFREG
        if is_file and host is not None:
            shutil.copyfile(host, copy, follow_symlinks=False)
            shutil.copymode(host, copy)
        else:
            _copy_folder(source.tree, source.path, copy)
        self._add(copy, request.target, read_only=not request.is_on("rw"), is_file=is_file)

    def _tmpfs(self, request: MountRequest, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o1777)
        self._add(folder, request.target, read_only=False)


def _number(request: MountRequest, name: str) -> int:
    stated = request.options.get(name) or "0"
    if not stated.isdigit():
        raise wrong_line(request.line, f"{name}={stated[:20]} is not a number")
    return int(stated)


def _mode(request: MountRequest, usual: int) -> int:
    try:
        return int(request.options.get("mode") or f"{usual:o}", 8)
    except ValueError:
        raise wrong_line(request.line, f"mode={request.options['mode'][:20]} is not an octal number") from None


def _copy_folder(tree: SourceTree, path: str, target: Path) -> None:
    target.mkdir(mode=0o755)
    for inner in trees.walk(tree, path):
        host, to = tree.host(inner), target / inner[len(path) :].lstrip("/")
        kind = trees.kind(host)
        if host is None:
            continue
        if kind == stat.S_IFDIR:
            to.mkdir(mode=0o755)
        elif kind == stat.S_IFLNK:
            to.symlink_to(os.readlink(host))
        elif kind == stat.S_IFREG:
            shutil.copyfile(host, to, follow_symlinks=False)
            shutil.copymode(host, to)
