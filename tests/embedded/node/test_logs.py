from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from pathlib import Path

import pytest

from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.logs.logfiles import LogWriter
from danlu.embedded.node.logs.logreader import read
from danlu.embedded.streamoptions import LogOptions


async def everything(path: Path, **options: object) -> bytes:
    return b"".join([block async for block in read(str(path), LogOptions(**options))])  # type: ignore[arg-type]


async def test_lines_come_back_as_written(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "c/0.log"))
    writer.write("stdout", b"one\ntwo\n")
    writer.write("stderr", b"three\n")
    writer.write("stdout", b"no line feed")
    writer.close()
    assert await everything(tmp_path / "c/0.log") == b"one\ntwo\nthree\nno line feed"


async def test_an_unfinished_line_does_not_mix_with_the_other_stream(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stdout", b"a")
    writer.write("stderr", b"b\n")
    writer.write("stdout", b"c\n")
    writer.close()
    assert await everything(tmp_path / "0.log") == b"b\nac\n"


async def test_an_unfinished_line_is_shown_when_it_waits_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfiles, "HOLD_SECONDS", 0.0)
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stderr", b" 50%")
    writer.flush_due()
    assert await everything(tmp_path / "0.log") == b" 50%"
    writer.write("stdout", b"epoch 1\n")
    writer.write("stderr", b"\r100%\n")
    writer.close()
    assert await everything(tmp_path / "0.log") == b" 50%\nepoch 1\n\r100%\n"
    assert await everything(tmp_path / "0.log", stream="stderr") == b" 50%\r100%\n"
    assert await everything(tmp_path / "0.log", stream="stdout") == b"epoch 1\n"


@pytest.mark.parametrize("lines", [0, 1, 2, 7, 2999, 3000, 5000])
async def test_tail_over_rotated_segments(tmp_path: Path, lines: int) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), segment_bytes=4000)
    written = [b"line %d of many\n" % n for n in range(3000)]
    for line in written:
        writer.write("stdout", line)
    writer.close()
    assert len(logfiles.segments(str(tmp_path / "0.log"))) > 5
    assert await everything(tmp_path / "0.log") == b"".join(written)
    expected = written[max(0, len(written) - lines) :]
    assert await everything(tmp_path / "0.log", tail=lines) == b"".join(expected)


async def test_timestamps_and_since(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stdout", b"old\n")
    await asyncio.sleep(0.005)
    now = time.time_ns()
    writer.write("stdout", b"new\nnewer\n")
    writer.write("stderr", b"last")
    writer.close()
    shown = await everything(tmp_path / "0.log", timestamps=True)
    stamp = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z "
    assert re.fullmatch(stamp + b"old\n" + stamp + b"new\n" + stamp + b"newer\n" + stamp + b"last", shown)
    assert await everything(tmp_path / "0.log", since_ns=now) == b"new\nnewer\nlast"
    assert await everything(tmp_path / "0.log", since_ns=time.time_ns()) == b""


async def test_since_in_the_middle_of_many_segments(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), segment_bytes=50)
    moments = []
    for n in range(30):
        moments.append(time.time_ns())
        writer.write("stdout" if n % 2 else "stderr", b"line %02d\n" % n)
        await asyncio.sleep(0.0011)
    writer.close()
    for n in (0, 1, 6, 7, 13, 29):
        expected = b"".join(b"line %02d\n" % later for later in range(n, 30))
        assert await everything(tmp_path / "0.log", since_ns=moments[n]) == expected


async def test_limit_bytes(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stdout", b"0123456789\n")
    assert await everything(tmp_path / "0.log", limit_bytes=4) == b"0123"


async def test_follow_across_rotation_until_closed(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    follower = asyncio.create_task(everything(path, follow=True))
    await asyncio.sleep(0.01)
    writer = LogWriter(str(path), segment_bytes=1000)
    expected = b""
    for n in range(200):
        line = b"line %d\n" % n
        expected += line * 3
        writer.write("stdout", line * 3)
        if n % 50 == 0:
            await asyncio.sleep(0.06)
    writer.close()
    assert await asyncio.wait_for(follower, 5) == expected


async def test_follow_stops_when_the_writer_is_gone(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stdout", b"x\n")
    blocks = [block async for block in read(str(tmp_path / "0.log"), LogOptions(follow=True), lambda: True)]
    assert blocks == [b"x\n"]


async def test_oldest_segments_go_and_the_reader_says_so(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path / "0.log"), segment_bytes=100, keep_bytes=300)
    for n in range(100):
        writer.write("stdout", b"line %02d\n" % n)
    writer.close()
    assert len(logfiles.segments(str(tmp_path / "0.log"))) == 3
    shown = await everything(tmp_path / "0.log")
    assert shown.startswith(b"[danlu: the oldest ")
    assert shown.endswith(b"line 99\n")


async def test_a_full_disk_costs_words_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(str(tmp_path / "0.log"))
    writer.write("stdout", b"before\n")
    with monkeypatch.context() as full:

        def no_room(_fd: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(os, "write", no_room)
        writer.write("stdout", b"gone\n")
        writer.write("stderr", b"gone too\n")
    writer.write("stdout", b"after\n")
    writer.close()
    note = b"[danlu: 14 bytes printed here were lost: the disk was full]\n"
    assert await everything(tmp_path / "0.log") == b"before\n" + note + b"after\n"


async def test_a_writer_goes_on_where_another_stopped(tmp_path: Path) -> None:
    first = LogWriter(str(tmp_path / "0.log"))
    first.write("stdout", b"a\n")
    second = LogWriter(str(tmp_path / "0.log"))
    second.write("stdout", b"b\n")
    second.close()
    assert await everything(tmp_path / "0.log", follow=True) == b"a\nb\n"
