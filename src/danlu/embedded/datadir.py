"""The data directory: what lies where, and that only one danlu uses it at a time."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from danlu.diagnose import Cause
from danlu.embedded import permissions, private_files
from danlu.embedded.node.sandbox.procfs import start_time
from danlu.embedded.storage import DataDirectoryError
from danlu.runtime.setaside import SetAsideEntry

log = logging.getLogger(__name__)

DYING_SECONDS = 10.0
LOCK_BYTES = 1024


class InUse(DataDirectoryError):
    """Another process holds it."""


@dataclass(frozen=True, slots=True)
class Running:
    """A danlu that holds the directory, as it described itself."""

    pid: int
    url: str
    started: str
    version: str
    shared: bool = False  # for several people

    @classmethod
    def read(cls, lock: int) -> Running | None:
        """As the lock file says."""
        try:
            said: dict[str, Any] = json.loads(os.pread(lock, LOCK_BYTES, 0))
            url, started, version = (str(said[name]) for name in ("url", "started", "version"))
            return cls(int(said["pid"]), url, started, version, said.get("shared") is True)
        except (OSError, ValueError, KeyError, TypeError):
            return None


class DataDirectory:
    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.database = self.root / "store.db"
        self.certificates = self.root / "pki"
        self.kubeconfig = self.root / "kubeconfig"
        self.log = self.root / "danlu.log"
        self.volumes = self.root / "volumes"
        self.quarantine = self.root / "quarantine"
        self._lock_path = self.root / "danlu.lock"
        self._port_path = self.root / "port"
        self.set_aside_path = self.root / "set-aside.json"
        self._held_path = self.root / "held-addresses"
        self._ingress_path = self.root / "ingress-addresses"
        self._operators_path = self.root / "other-operators.json"
        self._lock: int | None = None

    def prepare(self) -> None:
        """Makes it. The directory holds the keys of the cluster, so nobody else may look inside or take its place."""
        self.check()
        try:
            permissions.check_way(self.root)
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            permissions.close(self.root)
            self._try_to_write()
        except permissions.OpenToOthers as error:
            raise DataDirectoryError(str(error)) from error
        except OSError as error:
            raise DataDirectoryError(
                f"cannot write to {self.root}: {error.strerror}; choose another with --data-dir or DANLU_HOME"
            ) from error

    def _try_to_write(self) -> None:
        probe = self.root / f".writable-{os.getpid()}"
        try:
            probe.write_bytes(b"")
        except OSError as error:
            if not private_files.is_full(error):  # on a full disk it starts: how else could room be made?
                raise
        probe.unlink(missing_ok=True)

    def check(self) -> None:
        """For commands that only look: what is there can be a data directory of this account, or nothing is there."""
        choose = "choose another with --data-dir or DANLU_HOME"
        try:
            is_folder = self.root.is_dir()
            if not is_folder and os.path.lexists(self.root):
                raise DataDirectoryError(f"{self.root} is a file, not a directory; {choose}")
            mine = not is_folder or os.access(self.root, os.R_OK | os.X_OK)
        except PermissionError:
            mine = False
        if not mine:
            raise DataDirectoryError(f"{self.root} belongs to another account; {choose}")

    def acquire(self) -> None:
        """Takes the directory for this process until it ends, however it ends."""
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        ends = time.monotonic() + DYING_SECONDS
        while not _locked(lock):
            holder = Running.read(lock)
            # After kill -9 the files stay open until the process's last thread is back from the disk.
            if holder and not start_time(holder.pid) and time.monotonic() < ends:
                time.sleep(0.02)
                continue
            os.close(lock)
            who = f"pid {holder.pid}, {holder.url}, since {holder.started}" if holder else "it is just starting"
            raise InUse(
                f"already running on {self.root} ({who}); `danlu down` stops it, --data-dir chooses another place"
            )
        self._lock = lock
        self._say({})

    def describe(self, running: Running) -> None:
        """Leaves word for `danlu status`, `danlu down` and a second `danlu up`."""
        self._say(asdict(running))

    def _say(self, said: dict[str, Any]) -> None:
        """In the lock file itself, always as long: a full disk has that block already."""
        assert self._lock is not None
        try:
            os.pwrite(self._lock, json.dumps(said).encode().ljust(LOCK_BYTES), 0)
        except OSError as error:
            if not private_files.is_full(error):  # the first time it needs the block
                raise
            log.warning("%s could not be written: %s", self._lock_path, error.strerror)

    @property
    def last_port(self) -> int:
        """The port of the start before; 0 when there was none. Pods that went on running know the API by it."""
        try:
            port = int(self._port_path.read_text())
        except (OSError, ValueError):
            return 0
        return port if 0 < port < 65536 else 0

    def remember_port(self, port: int) -> None:
        if port != self.last_port:
            self._write_if_room(self._port_path, f"{port}\n")

    def _write_if_room(self, path: Path, text: str) -> None:
        """What a start can do without: a full disk must not prevent it."""
        try:
            private_files.write(path, text.encode())
        except OSError as error:
            if not private_files.is_full(error):
                raise
            log.warning("%s could not be written: %s", path, error.strerror)

    def read_set_aside(self) -> list[SetAsideEntry]:
        """What the controllers of the last start have set aside, or of the one that runs. A file that cannot be read
        says nothing: it is no part of the cluster's state."""
        try:
            return [SetAsideEntry(**one) for one in json.loads(self.set_aside_path.read_text())]
        except (OSError, ValueError, TypeError):
            return []

    def write_set_aside(self, entries: Sequence[SetAsideEntry]) -> None:
        if not entries:
            self.set_aside_path.unlink(missing_ok=True)
            return
        self._write_if_room(self.set_aside_path, json.dumps([asdict(entry) for entry in entries], indent=2))

    def read_held(self) -> list[str]:
        """Addresses of services that somebody else holds, and who."""
        return _lines(self._held_path)

    def write_held(self, lines: list[str]) -> None:
        _write_lines(self._held_path, lines)

    def read_ingress(self) -> list[str]:
        """Where Ingresses are served; none while there are none."""
        return _lines(self._ingress_path)

    def write_ingress(self, lines: list[str]) -> None:
        _write_lines(self._ingress_path, lines)

    def read_operators(self) -> list[Cause]:
        """What was found of other operators of the platform's kinds."""
        try:
            return [Cause(one["code"], one["params"]) for one in json.loads(self._operators_path.read_text())]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def write_operators(self, causes: Sequence[Cause]) -> None:
        if not causes:
            self._operators_path.unlink(missing_ok=True)
            return
        self._write_if_room(self._operators_path, json.dumps([cause.as_json() for cause in causes], indent=2))

    def release(self) -> None:
        if self._lock is not None:
            self._say({})
            os.close(self._lock)
            self._lock = None

    def holder(self) -> Running | None:
        """Who runs on this directory now; None when nobody does (also when a process died without a word)."""
        try:
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        except OSError:
            return Running.read(lock) or Running(0, "", "", "")
        finally:
            os.close(lock)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _write_lines(path: Path, lines: list[str]) -> None:
    if not lines:
        path.unlink(missing_ok=True)
        return
    partial = path.with_suffix(".new")
    partial.write_text("".join(f"{line}\n" for line in lines))
    partial.replace(path)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
