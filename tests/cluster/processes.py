"""The cluster's own programs: started once, written down in state.json, so that anybody can end or restart them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.cluster.place import Place

GRACE_S = 10.0


class Processes:
    def __init__(self, place: Place, path: str) -> None:
        self.place = place
        self.file = place.folder / "state.json"
        self.environment = {**os.environ, "PATH": path}

    def recorded(self) -> dict[str, dict[str, Any]]:
        """name → {words, pid, begun}, in the order of their start."""
        try:
            found: dict[str, dict[str, Any]] = json.loads(self.file.read_text())
        except (OSError, ValueError):
            return {}
        return found

    def start(self, name: str, *words: object, **variables: str) -> None:
        command = [str(word) for word in words]
        with (self.place.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.place.prefix, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**self.environment, **variables}, cwd=self.place.folder,
            )  # fmt: skip
        entry = {"words": command, "variables": variables, "pid": process.pid, "begun": begun(process.pid)}
        self._record({**self.recorded(), name: entry})

    def again(self, name: str, changed: dict[str, str] | None = None) -> None:
        """Starts a program anew, as it was or with other values of some flags."""
        self.stop(name)
        entry = self.recorded()[name]
        words = list(entry["words"])
        for flag, value in (changed or {}).items():
            words[words.index(flag) + 1] = value
        self.start(name, *words, **entry["variables"])

    def running(self, name: str) -> bool:
        return alive(self.recorded().get(name, {}))

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        entry = self.recorded().get(name, {})
        ends = time.monotonic() + GRACE_S
        while alive(entry):
            with contextlib.suppress(ProcessLookupError):
                os.kill(entry["pid"], signal.SIGKILL if time.monotonic() > ends else how)
            time.sleep(0.05)

    def log(self, name: str, lines: int = 15) -> str:
        return "\n".join((self.place.folder / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def _record(self, entries: dict[str, dict[str, Any]]) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(entries, indent=1))
        fresh.replace(self.file)


def begun(pid: int) -> str:
    """When a process started, in the kernel's ticks: with it, a number that another process got later is told apart."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def alive(entry: dict[str, Any]) -> bool:
    if not entry:
        return False
    with contextlib.suppress(ChildProcessError):
        os.waitpid(entry["pid"], os.WNOHANG)  # ours, if we started it: a zombie would look alive
    return bool(entry["begun"]) and begun(entry["pid"]) == entry["begun"]
