"""Serving what `logs.LogWriter` wrote: whole, from the end, from a time on, and as it grows.

Without timestamps or a stream asked for, blocks of the file go out as they are. Otherwise the index says whose each
run of bytes is, and the work is one `bytes.replace` for each run, never a loop over lines.
"""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from danlu.embedded.node.logs.logfiles import ADDED, CLOSED, FLAG_BITS, RECORD, STDERR, segment_path, segments
from danlu.embedded.streamoptions import LogOptions

BLOCK = 1024 * 1024
POLL_SECONDS = 0.05


EVERYTHING = LogOptions()


class _Segment:
    """One open segment. Its file stays readable when the writer drops it, because it is open."""

    def __init__(self, path: str, number: int) -> None:
        name = segment_path(path, number)
        self.number = number
        self.data = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.index = os.open(name + ".idx", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            os.close(self.data)
            raise
        self._indexed = 0
        self.times: list[int] = []
        self.offsets: list[int] = []
        self.flags: list[int] = []

    def size(self) -> int:
        return os.fstat(self.data).st_size

    def record_count(self) -> int:
        return os.fstat(self.index).st_size // RECORD.size

    def record(self, number: int) -> tuple[int, int, int]:
        """(time, offset, flags), straight from the disk."""
        when, packed = RECORD.unpack(os.pread(self.index, RECORD.size, number * RECORD.size))
        return when, packed >> FLAG_BITS, packed & ((1 << FLAG_BITS) - 1)

    def is_closed(self) -> bool:
        count = self.record_count()
        return count > 0 and bool(self.record(count - 1)[2] & CLOSED)

    def load_index(self) -> None:
        """Reads on from where it stopped. An index can be long: not for the event loop when much is new."""
        while raw := os.pread(self.index, BLOCK, self._indexed):
            raw = raw[: len(raw) - len(raw) % RECORD.size]
            if not raw:
                return
            self._indexed += len(raw)
            for when, packed in RECORD.iter_unpack(raw):
                self.times.append(when)
                self.offsets.append(packed >> FLAG_BITS)
                self.flags.append(packed & ((1 << FLAG_BITS) - 1))

    def close(self) -> None:
        os.close(self.data)
        os.close(self.index)


async def read(
    path: str, options: LogOptions = EVERYTHING, ended: Callable[[], bool] = lambda: False
) -> AsyncIterator[bytes]:
    """The log at `path`. A follower stops when the log was closed, or `ended()` says that its writer is gone."""
    left = options.limit_bytes
    async for block in _formatted(path, options, ended):
        if left is not None:
            block = block[:left]
            left -= len(block)
        if block:
            yield block
        if left == 0:
            return


async def _formatted(path: str, options: LogOptions, ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    while not (numbers := segments(path)):
        if not options.follow or ended():
            return
        await asyncio.sleep(POLL_SECONDS)
    number, offset = await asyncio.to_thread(_start, path, numbers, options)
    if number == numbers[0] and offset == 0 and number > 0 and options.tail is None and options.since_ns is None:
        yield f"[danlu: the oldest {number} segments of this log were dropped: it grew past its limit]\n".encode()
    formatter = _Formatter(options) if options.timestamps or options.stream else None
    while True:
        try:
            segment = _Segment(path, number)
        except FileNotFoundError:  # dropped between two looks; go on with the oldest that is left
            later = [found for found in segments(path) if found > number]
            if not later:
                return
            yield f"[danlu: segments {number} to {later[0] - 1} of this log were dropped]\n".encode()
            number, offset = later[0], 0
            continue
        try:
            async for block in _segment_blocks(path, segment, offset, options.follow, ended):
                data = await asyncio.to_thread(formatter.format, segment, *block) if formatter else block[1]
                if data:
                    yield data
        finally:
            segment.close()
        if not any(found > number for found in segments(path)):
            return
        number, offset = number + 1, 0


async def _segment_blocks(
    path: str, segment: _Segment, offset: int, follow: bool, ended: Callable[[], bool]
) -> AsyncIterator[tuple[int, bytes]]:
    """(offset, bytes) up to the end of the segment; when following, until the end is known to be final."""
    while True:
        # Asked before reading: what is found final here is final for the bytes read below.
        final = not follow or segment.is_closed() or _exists(path, segment.number + 1) or ended()
        size = segment.size()
        while offset < size:
            data = await asyncio.to_thread(os.pread, segment.data, min(BLOCK, size - offset), offset)
            if not data:
                break
            yield offset, data
            offset += len(data)
        if final and offset >= segment.size():
            return
        if not final:
            await asyncio.sleep(POLL_SECONDS)


def _exists(path: str, number: int) -> bool:
    return os.path.exists(segment_path(path, number))


def _start(path: str, numbers: list[int], options: LogOptions) -> tuple[int, int]:
    """The segment and offset where the answer begins: the later of what tail and since ask for."""
    start = (numbers[0], 0)
    if options.since_ns is not None:
        start = max(start, _since(path, numbers, options.since_ns))
    if options.tail is not None:
        start = max(start, _tail(path, numbers, options.tail))
    return start


def _since(path: str, numbers: list[int], since_ns: int) -> tuple[int, int]:
    """Halves its way through segments, then through records: a long log has millions of them."""
    low, high = 0, len(numbers) - 1  # the last segment that began before `since_ns`, or the first
    while low < high:
        middle = (low + high + 1) // 2
        if _begin(path, numbers[middle]) < since_ns:
            low = middle
        else:
            high = middle - 1
    segment = _Segment(path, numbers[low])
    try:
        first, count = 0, segment.record_count()
        while first < count:
            middle = (first + count) // 2
            if segment.record(middle)[0] < since_ns:
                first = middle + 1
            else:
                count = middle
        if first < segment.record_count():
            return numbers[low], _next_line(segment, segment.record(first)[1])
        return (numbers[low + 1], 0) if low + 1 < len(numbers) else (numbers[low], segment.size())
    finally:
        segment.close()


def _begin(path: str, number: int) -> int:
    segment = _Segment(path, number)
    try:
        return segment.record(0)[0] if segment.record_count() else 0
    finally:
        segment.close()


def _next_line(segment: _Segment, offset: int) -> int:
    """The first line that begins at or after `offset`: a line belongs to the time at which it began."""
    if offset == 0 or os.pread(segment.data, 1, offset - 1) == b"\n":
        return offset
    while data := os.pread(segment.data, BLOCK, offset):
        found = data.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(data)
    return offset


def _tail(path: str, numbers: list[int], lines: int) -> tuple[int, int]:
    """Where the last `lines` lines begin, found from the end in growing steps."""
    wanted = lines
    at_end = True
    step = 8 * 1024
    place = (numbers[-1], 0)
    for number in reversed(numbers):
        segment = _Segment(path, number)
        try:
            end = segment.size()
            if number == numbers[-1]:
                place = (number, end)
            if lines == 0:
                return place
            while end > 0:
                begin = max(0, end - step)
                data = os.pread(segment.data, end - begin, begin)
                if at_end and data:
                    # The line feed that ends the last line is not the start of another one.
                    wanted += data.endswith(b"\n")
                    at_end = False
                found = data.count(b"\n")
                if found >= wanted:
                    cut = len(data)
                    for _ in range(wanted):
                        cut = data.rfind(b"\n", 0, cut)
                    return number, begin + cut + 1
                wanted -= found
                end = begin
                step = min(step * 4, BLOCK)
            place = (number, 0)
        finally:
            segment.close()
    return place


class _Formatter:
    """Puts times before lines and leaves out the other stream. Keeps where the last line ended between blocks."""

    def __init__(self, options: LogOptions) -> None:
        self._timestamps = options.timestamps
        self._unwanted = {"stdout": STDERR, "stderr": 0}.get(options.stream)
        self._line_start = True

    def format(self, segment: _Segment, offset: int, data: bytes) -> bytes:
        segment.load_index()
        offsets, out = segment.offsets, []
        position = max(0, bisect_left(offsets, offset + 1) - 1)
        end = offset + len(data)
        while position < len(offsets) and offsets[position] < end:
            begin = max(offsets[position], offset)
            stop = min(offsets[position + 1], end) if position + 1 < len(offsets) else end
            flags = segment.flags[position]
            if stop > begin and not self._leaves_out(flags):
                run = data[begin - offset : stop - offset]
                out.append(self._stamped(segment.times[position], run) if self._timestamps else run)
            position += 1
        return b"".join(out)

    def _leaves_out(self, flags: int) -> bool:
        if self._unwanted is None:
            return False
        return flags & STDERR == self._unwanted or bool(flags & ADDED)

    def _stamped(self, when: int, run: bytes) -> bytes:
        prefix = timestamp(when).encode() + b" "
        ends = run.endswith(b"\n")
        body = (run[:-1] if ends else run).replace(b"\n", b"\n" + prefix)
        stamped = (prefix if self._line_start else b"") + body + (b"\n" if ends else b"")
        self._line_start = ends
        return stamped


def timestamp(ns: int) -> str:
    """RFC 3339 with nine digits, as `kubectl logs --timestamps` shows it."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
