"""RUN: a command in the sandbox that containers get, on an overlay of the layers so far, with the machine's network.

What it writes becomes a layer. Times are fixed (`SOURCE_DATE_EPOCH` is told to the command, too, so that Python's
compiled files are good in spite of it); mounts leave nothing behind; a failed step leaves nothing at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from danlu.diagnose import say
from danlu.embedded.node.images.accounts import ImageAccounts
from danlu.embedded.node.images.building import layertar, trees
from danlu.embedded.node.images.building.builderrors import BuildError
from danlu.embedded.node.images.building.layertar import BuiltLayer, FileOwner, LayerTar
from danlu.embedded.node.images.building.steprunner import StepEnd, StepSpec
from danlu.embedded.node.images.building.trees import LayersTree
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.imagesource import Account
from danlu.embedded.node.pressure.cleanup import remove_tree
from danlu.embedded.node.sandbox import detection
from danlu.embedded.node.sandbox.box import BindMount, Capabilities, Sandbox
from danlu.embedded.node.sandbox.interpreter import helper_command

HOSTNAME = "build"
NEED_OTHER_USERS = ("apt-get", "apt", "dpkg", "yum", "dnf", "apk", "rpm", "chown", "chgrp", "su", "useradd", "adduser")
Show = Callable[[bytes], None]  # what a step prints, as it comes


@dataclass(frozen=True)
class MachineBelow:
    """What stands below the layers where the base is an environment of this machine."""

    folders: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True)
class RunCommand:
    """One RUN, ready to go."""

    line: int
    text: str  # for people
    argv: list[str]
    env: dict[str, str]
    cwd: str
    account: Account
    mounts: Sequence[BindMount] = ()


class Runner:
    def __init__(self, store: ImageStore, epoch: int, show: Show) -> None:
        self._store = store
        self._epoch = epoch
        self._show = show
        self._can: Capabilities | None = None

    @property
    def can(self) -> Capabilities:
        """Which sandbox this machine allows; found out when it is needed first. Raises BuildError."""
        if self._can is None:
            found = detection.capabilities()
            if found.mode == "none":
                raise BuildError(say("DL-BUILD-NO-SANDBOX", reason=found.reason))
            self._can = found
        return self._can

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """For what one step needs; it goes away whatever happens."""
        made = Path(tempfile.mkdtemp(dir=self._store.work()))
        try:
            yield made
        finally:
            remove_tree(made)

    def run(self, command: RunCommand, layers: list[Path], machine: MachineBelow | None, folder: Path) -> BuiltLayer:
        """Raises BuildError, OSError."""
        root = folder / "root"
        root.mkdir(mode=0o755)
        mounts = [*self._own_files(folder), *_machine_folders(machine), *command.mounts]
        box: Sandbox = {
            "mode": self.can.mode,
            "root": str(root),
            "hostname": HOSTNAME,
            "mounts": mounts,
            "cwd": command.cwd,
            "uid": command.account.uid,
            "gid": command.account.gid,
            "groups": [*command.account.groups],
            "layers": [str(layer) for layer in reversed(layers)],
            "needs_overlay": True,
            "own_pids": bool(self.can.own_pids),
            "own_ipc": bool(self.can.own_pids),
            "default_seccomp": bool(self.can.seccomp),
        }
        if machine is not None:
            box["on_machine"] = True
        ended = self._ask({"argv": command.argv, "env": command.env, "sandbox": box, "ended": str(folder / "ended")})
        if ended["exit_code"]:
            raise BuildError(self._problem(command, ended))
        ours = _points(mounts, layers)
        owner = None if self.can.mode == "root" else FileOwner(command.account.uid, command.account.gid)
        with LayerTar(self._store, self._epoch) as tar:
            layertar.of_upper(tar, root, ours, owner)
            return tar.finish()

    def _ask(self, step: StepSpec) -> StepEnd:
        command = helper_command("steprunner", "main", __package__)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
            assert run.stdin is not None
            assert run.stdout is not None
            with run.stdin as asked:
                asked.write(json.dumps(step).encode())
            try:
                while data := os.read(run.stdout.fileno(), 65536):
                    self._show(data)
            except BaseException:
                run.terminate()
                raise
        try:
            ended: StepEnd = json.loads(Path(step["ended"]).read_text())
        except (OSError, ValueError):
            return {"exit_code": 128, "problem": f"the process that runs it ended with {run.returncode}"}
        return ended

    def _problem(self, command: RunCommand, ended: StepEnd) -> str:
        words = set(command.text.replace(";", " ").replace("&", " ").split())
        line, text = str(command.line), command.text
        if ended["problem"]:
            return say("DL-BUILD-NOT-STARTED", line=line, command=text[:200], problem=ended["problem"])
        status = str(ended["exit_code"])
        if self.can.mode == "user" and words.intersection(NEED_OTHER_USERS):
            return say("DL-BUILD-ONE-USER", line=line, command=text[:200], status=status)
        return say("DL-BUILD-RUN", line=line, command=text[:200], status=status)

    def _own_files(self, folder: Path) -> list[BindMount]:
        found: list[BindMount] = []
        for name in ("resolv.conf", "hosts"):
            copy = folder / name
            try:
                shutil.copyfile(f"/etc/{name}", copy)
            except OSError:
                copy.write_bytes(b"")
            if name == "hosts":
                copy.write_bytes(copy.read_bytes() + f"\n127.0.0.1 {HOSTNAME}\n".encode())
            copy.chmod(0o644)
            found.append({"source": str(copy), "target": f"/etc/{name}", "read_only": False, "is_file": True})
        return found


def _machine_folders(machine: MachineBelow | None) -> list[BindMount]:
    if machine is None:
        return []
    return [
        {"source": source, "target": target, "read_only": True, "is_file": is_file}
        for found, is_file in ((machine.folders, False), (machine.files, True))
        for target, source in found.items()
    ]


def _points(mounts: Sequence[BindMount], layers: list[Path]) -> dict[str, Path | None]:
    """Where mounts lie and the folders above, each with what the layers have there. A file is but a place to lie on."""
    tree = LayersTree(layers)
    found: dict[str, Path | None] = {}
    for mount in mounts:
        path = tree.resolve(mount["target"].strip("/"))
        below = tree.host(path)
        found[path] = below if trees.kind(below) == stat.S_IFDIR else None
        while path := path.rpartition("/")[0]:
            found[path] = tree.host(path)
    return found


def account(layers: list[Path], user: str) -> Account:
    """Raises UnknownUser."""
    return accounts_of(layers, user).account(None)


def accounts_of(layers: list[Path], user: str) -> ImageAccounts:
    tree = LayersTree(layers)
    texts = []
    for name in ("etc/passwd", "etc/group"):
        path = tree.host(tree.resolve(name))
        is_file = path is not None and trees.kind(path) == stat.S_IFREG
        texts.append(path.read_bytes()[: 1 << 20].decode(errors="replace") if is_file and path is not None else "")
    return ImageAccounts(user, *texts)
