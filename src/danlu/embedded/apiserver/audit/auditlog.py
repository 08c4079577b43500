"""The file of the audit log: written by a thread, rotated by size, bounded in number. `-` is the standard output."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from danlu.embedded.apiserver.audit.events import Stage, line

log = logging.getLogger("danlu.audit")

STDOUT = "-"
TOGETHER = 500  # lines that are written at once
# What waits for the disk; beyond it requests wait, too: an audit log that forgets under load invites load.
MOST_WAITING, MOST_WAITING_BYTES = 10_000, 64 * 1024 * 1024


class RotatingFile:
    """Named as lumberjack, which Kubernetes uses, names them: audit.log, audit-2026-01-02T03-04-05.678.log."""

    def __init__(self, path: Path, most_bytes: int, backups: int) -> None:
        """Raises OSError when the file cannot be written. `backups` 0 keeps none, as the size is bounded then."""
        self._path = path
        self._most_bytes = most_bytes
        self._backups = backups
        self._open()

    def _open(self) -> None:
        # For its owner alone: who asked for what is nobody else's business.
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(self._file, 0o600)
        self._size = os.fstat(self._file).st_size

    def write(self, lines: Sequence[bytes]) -> None:
        for text in lines:
            if self._size and self._size + len(text) > self._most_bytes:
                self._rotate()
            rest = memoryview(text)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            self._size += len(text)

    def _rotate(self) -> None:
        os.close(self._file)
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}"
        backup = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        number = 0
        while backup.exists():  # several in one millisecond
            number += 1
            backup = self._path.with_name(f"{self._path.stem}-{stamp}.{number}{self._path.suffix}")
        os.rename(self._path, backup)
        self._open()
        old = sorted(self._path.parent.glob(f"{self._path.stem}-????-??-??T*{self._path.suffix}"), key=_made)
        for path in old[: max(len(old) - self._backups, 0)]:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._file)


def _made(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


class _Stdout:
    def write(self, lines: Sequence[bytes]) -> None:
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """It is not ours."""


class Log:
    """Takes stages from the event loop and writes them in their order."""

    def __init__(self, path: Path, most_bytes: int, backups: int) -> None:
        """Raises OSError."""
        self._file = _Stdout() if str(path) == STDOUT else RotatingFile(path, most_bytes, backups)
        self._queue: queue.SimpleQueue[Stage | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._bytes = 0
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="audit log", daemon=True)
        self._thread.start()

    @property
    def full(self) -> bool:
        return self._bytes > MOST_WAITING_BYTES or self._queue.qsize() > MOST_WAITING

    def put(self, stage: Stage) -> None:
        with self._lock:
            self._bytes += stage.size
        self._queue.put(stage)

    def close(self) -> None:
        """Writes what is waiting."""
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        while True:
            stages: list[Stage] = []
            last = self._queue.get()
            while last is not None:
                stages.append(last)
                if len(stages) >= TOGETHER or self._queue.empty():
                    break
                last = self._queue.get()
            if stages:
                self._write(stages)
            if last is None:
                return

    def _write(self, stages: Sequence[Stage]) -> None:
        try:
            self._file.write([made for stage in stages if (made := _guarded(line, stage))])
            self._failed = False
        except OSError as error:
            if not self._failed:
                log.error("the audit log cannot be written, lines are lost until it can: %s", error)
            self._failed = True
        with self._lock:
            self._bytes -= sum(stage.size for stage in stages)


def _guarded(make: Callable[[Stage], bytes], stage: Stage) -> bytes:
    """One line that cannot be made must not end the log."""
    try:
        return make(stage)
    except Exception:
        log.exception("an audit event could not be written: %s %s", stage.record.id, stage.record.target.path)
        return b""
