"""What containers print, on disk: the form of the files, and the writer that runs in each container's shim.

The form is chosen so that serving a log is reading a file. For one run of one container:

  0.log, 0.log.1, 0.log.2 …   the bytes as they were printed, stdout and stderr in order of arrival; a higher
                              number is newer; nothing is ever renamed, so a reader cannot lose its place
  0.log.idx, 0.log.1.idx …    16-byte records (time in ns; offset shifted left by 3, and flags): "from this
                              offset on, until the next record, bytes came on this stream at this time"

A record is written before the bytes that it speaks of, so bytes on disk always have an owner. `CLOSED` ends a log.
A segment is closed for good when the next one exists.

Lines stay whole: the end of a line that has not come yet is held back (at most HOLD_SECONDS or HOLD_BYTES, so that a
progress bar still moves) while the other stream writes. Where a held line had to be let go and the other stream then
writes, a line feed that the program never wrote is put between them and marked ADDED.

Only modules that cost nothing to import are used here: the shim that imports this is started for each container.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress

STDERR = 1  # flag: these bytes came on stderr
ADDED = 2  # flag: a line feed of ours, to keep two streams from sharing a line
CLOSED = 4  # flag: nothing follows, in this segment or another

RECORD = struct.Struct("<QQ")
FLAG_BITS = 3

SEGMENT_BYTES = 10 * 1024 * 1024
KEEP_BYTES = 1024 * 1024 * 1024  # for one run of one container; beyond it the oldest segments go
HOLD_BYTES = 16 * 1024
HOLD_SECONDS = 0.5
RECORD_EVERY_NS = 1_000_000  # bytes of one stream that come within a millisecond share a record


def directory(data_dir: str, pod_uid: str, container: str) -> str:
    return f"{data_dir}/pods/{pod_uid}/logs/{container}"


def path_for(data_dir: str, pod_uid: str, container: str, restart: int) -> str:
    """Where run number `restart` (from 0) of a container is logged."""
    return f"{directory(data_dir, pod_uid, container)}/{restart}.log"


def segment_path(path: str, number: int) -> str:
    return path if number == 0 else f"{path}.{number}"


def segments(path: str) -> list[int]:
    """The numbers of the segments on disk, oldest first."""
    folder, base = os.path.split(path)
    found = []
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    for name in names:
        if name == base:
            found.append(0)
        elif name.startswith(base + ".") and (number := name[len(base) + 1 :]).isdigit():
            found.append(int(number))
    return sorted(found)


class LogWriter:
    """Appends to one log. `write` never blocks on anything but the disk and keeps no more than HOLD_BYTES a stream.

    The owner calls `flush_due` when `deadline` (of time.monotonic) has passed, so that an unfinished line is seen.
    """

    def __init__(self, path: str, segment_bytes: int = SEGMENT_BYTES, keep_bytes: int = KEEP_BYTES) -> None:
        self.path = path
        self._segment_bytes = segment_bytes
        self._keep_segments = max(2, keep_bytes // segment_bytes)
        self._held = [b"", b""]
        self._held_since = [0.0, 0.0]
        self._open_line: int | None = None  # the stream whose unfinished line is the last thing on disk
        self._last_flags = -1
        self._last_time = 0
        self._lost = 0  # bytes that found no room on the disk
        self._data = self._index = -1
        self._closed = False
        self._size = 0
        self._number = 0
        with suppress(OSError):  # a full disk: the container starts all the same, and `_write` tries again
            self._begin()

    def _begin(self) -> None:
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        existing = segments(self.path)
        self._number = existing[-1] if existing else 0
        self._open()

    def write(self, stream: str, data: bytes) -> None:
        which = STDERR if stream == "stderr" else 0
        if self.deadline() is not None:
            self.flush_due()
        held = self._held[which]
        cut = data.rfind(b"\n") + 1
        if cut:
            self._append(which, held + data[:cut])
            self._held[which], rest = b"", data[cut:]
            if rest:
                self._hold(which, rest)
        elif data:
            if not held:
                self._held_since[which] = time.monotonic()
            self._held[which] = held + data
        if len(self._held[which]) >= HOLD_BYTES:
            self._release(which)

    def deadline(self) -> float | None:
        waiting = [self._held_since[which] for which in (0, 1) if self._held[which]]
        return min(waiting) + HOLD_SECONDS if waiting else None

    def flush_due(self) -> None:
        now = time.monotonic()
        for which in (0, 1):
            if self._held[which] and self._held_since[which] + HOLD_SECONDS <= now:
                self._release(which)

    def close(self) -> None:
        if self._closed:
            return
        for which in (0, 1):
            if self._held[which]:
                self._release(which)
        self._closed = True
        if self._data < 0:
            return
        with suppress(OSError):
            self._record(CLOSED)
        os.close(self._data)
        os.close(self._index)
        self._data = self._index = -1

    def _hold(self, which: int, data: bytes) -> None:
        self._held[which] = data
        self._held_since[which] = time.monotonic()

    def _release(self, which: int) -> None:
        data, self._held[which] = self._held[which], b""
        self._append(which, data)

    def _append(self, which: int, data: bytes) -> None:
        if self._open_line is not None and self._open_line != which:
            self._put(self._open_line | ADDED, b"\n")
        self._put(which, data)
        self._open_line = None if data.endswith(b"\n") else which

    def _put(self, flags: int, data: bytes) -> None:
        if self._lost:
            note = b"[danlu: %d bytes printed here were lost: the disk was full]\n" % self._lost
            if self._write(STDERR | ADDED, note):
                self._lost += len(data)
                return  # still full
            self._lost = 0
        self._lost += self._write(flags, data)

    def _write(self, flags: int, data: bytes) -> int:
        """How many bytes could not be written. A full disk must not end the container whose words these are."""
        if self._size and self._size + len(data) > self._segment_bytes:
            self._rotate()
        view = memoryview(data)
        try:
            if self._data < 0:
                self._begin()
            self._record(flags)
            while view:
                done = os.write(self._data, view)
                self._size += done
                view = view[done:]
        except OSError:
            self._last_flags = -1
        return len(view)

    def _record(self, flags: int) -> None:
        now = time.time_ns()
        if flags == self._last_flags and now - self._last_time < RECORD_EVERY_NS:
            return
        done = os.write(self._index, RECORD.pack(now, self._size << FLAG_BITS | flags))
        if done < RECORD.size:  # the disk has just become full: no half record stays
            os.ftruncate(self._index, os.fstat(self._index).st_size - done)
            raise OSError("no room for a record")
        self._last_flags, self._last_time = flags, now

    def _open(self) -> None:
        path = segment_path(self.path, self._number)
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        index = os.open(path + ".idx", how, 0o640)
        try:
            self._data = os.open(path, how, 0o640)
        except OSError:
            os.close(index)
            raise
        self._index = index
        self._size = os.fstat(self._data).st_size
        self._cut_index(path + ".idx")
        self._last_flags = -1

    def _cut_index(self, path: str) -> None:
        """An earlier writer may have been killed within a record; or it closed the log, and now it goes on."""
        size = os.fstat(self._index).st_size
        whole = size - size % RECORD.size
        if whole:
            with open(path, "rb") as index:
                index.seek(whole - RECORD.size)
                if RECORD.unpack(index.read(RECORD.size))[1] & CLOSED:
                    whole -= RECORD.size
        if whole < size:
            os.ftruncate(self._index, whole)

    def _rotate(self) -> None:
        before = (self._data, self._index)
        self._number += 1
        try:
            self._open()
        except OSError:  # no room for a new file: the old one goes on
            self._number -= 1
            return
        for fd in before:
            os.close(fd)
        for number in segments(self.path):
            if number > self._number - self._keep_segments:
                break
            path = segment_path(self.path, number)
            for name in (path, path + ".idx"):
                with suppress(FileNotFoundError):
                    os.unlink(name)
