"""`danlu up --detach`: the same command as a process of its own, which reports through a pipe how its start went."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from danlu.embedded import private_files

READY_SECONDS = 60
LOG_BYTES = 10 << 20  # of danlu.log; a longer one is put aside at the next start


def start(command: Sequence[str], log: Path, variables: Mapping[str, str]) -> dict[str, Any] | None:
    """Runs `command` with `--ready-fd N` added. What it reports, or None when it died or said nothing in time."""
    read_end, write_end = os.pipe()
    with _open_log(log) as output:
        subprocess.Popen(
            [*command, "--ready-fd", str(write_end)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(write_end,),
            start_new_session=True, env={**os.environ, **variables},
        )  # fmt: skip
    os.close(write_end)
    return _report(read_end)


def report(ready_fd: int, outcome: dict[str, Any]) -> None:
    """To whoever called `start`."""
    with os.fdopen(ready_fd, "w") as pipe:
        json.dump(outcome, pipe)


def _open_log(path: Path) -> BinaryIO:
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    try:
        return path.open("ab")
    except OSError as error:
        if not private_files.is_full(error):
            raise
        return open(os.devnull, "ab")  # it starts, so that room can be made


def _report(read_end: int) -> dict[str, Any] | None:
    os.set_blocking(read_end, False)
    data = b""
    ends = time.monotonic() + READY_SECONDS
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        while time.monotonic() < ends:
            chunk = pipe.read(65536)
            if chunk:
                data += chunk
            elif chunk == b"":
                break
            else:
                time.sleep(0.005)
    with contextlib.suppress(ValueError):
        result: dict[str, Any] = json.loads(data)
        return result
    return None
