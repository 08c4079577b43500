"""A damaged log: what was acknowledged is there after the next start, or it is said what is not."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path
from zlib import crc32

import pytest

from danlu.embedded.storage import DataDirectoryError, Finding, SqliteJournal, Store
from danlu.embedded.storage.acknowledged import Acknowledged
from danlu.embedded.storage.quarantine import HISTORY, LOSS, OBJECT
from danlu.embedded.storage.recovery import MARGIN
from danlu.embedded.storage.salvage import PAGE
from danlu.errors import Expired
from danlu.meta.kind import Object


def thing(name: str, value: str = "", size: int = 200) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "data": {"v": value + "x" * size}}


class Opened:
    """A store, and what its start found."""

    def __init__(self, path: Path) -> None:
        self.journal = SqliteJournal(path)
        self.store = Store(self.journal)
        self.store.start()

    @property
    def findings(self) -> list[Finding]:
        return self.journal.findings

    def names(self) -> list[str]:
        return [stored.name for stored in self.store.scan("things")]


async def killed(path: Path, count: int = 40, folder: str = "killed", checkpointed: int = 0) -> tuple[Path, int]:
    """The files as `kill -9` leaves them: the last acknowledged revision, and what is in the write-ahead log."""
    opened = Opened(path)
    store = opened.store
    for index in range(count):
        await store.put("things", thing(f"n{index:03}"))
        if index + 1 == checkpointed:
            opened.journal._tidy()
    target = path.parent / folder
    target.mkdir()
    for file in path.parent.glob("store.*"):
        shutil.copy(file, target / file.name)
    revision = store.revision
    await store.close()
    return target / path.name, revision


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def wal(path: Path) -> Path:
    return path.with_name("store.db-wal")


async def test_all_is_well_after_a_kill(path: Path) -> None:
    copy, revision = await killed(path)
    again = Opened(copy)
    assert again.findings == []
    assert len(again.names()) == 40
    assert again.store.revision == revision
    await again.store.close()


async def test_a_flipped_bit_in_the_write_ahead_log_loses_nothing_that_later_pages_have(path: Path) -> None:
    copy, revision = await killed(path, checkpointed=10)
    flip(wal(copy), 32 + 24 + 2000)  # in the first frame: SQLite drops all frames from here on
    rows = sqlite3.connect(shutil.copy(copy, copy.with_name("other.db"))).execute("SELECT count(*) FROM log")
    assert rows.fetchone()[0] == 10, "what SQLite alone would have left"
    again = Opened(copy)
    assert len(again.names()) == 40
    assert [one for one in again.findings if one.kind != HISTORY] == []
    assert again.store.revision >= revision
    await again.store.close()
    third = Opened(copy)
    assert len(third.names()) == 40
    assert third.findings == []
    await third.store.close()


async def test_a_cut_write_ahead_log_is_told_with_names_and_no_revision_is_given_twice(path: Path) -> None:
    copy, revision = await killed(path, checkpointed=25)
    data = wal(copy).read_bytes()
    wal(copy).write_bytes(data[: len(data) // 2])
    again = Opened(copy)
    (loss,) = again.findings
    there = set(again.names())
    gone = {f"n{index:03}" for index in range(40)} - there
    assert len(there) >= 25
    assert gone, "the test cut off nothing"
    assert loss.kind == LOSS
    assert loss.count == len(gone)
    assert {one["name"] for one in loss.lost} == gone
    assert f"to {revision}" in loss.reason
    assert all(again.store.why_held("things", "default", name) for name in gone), "not there, and not deleted"
    with pytest.raises(Expired):
        again.store.subscribe("things", revision - 5)
    stored = await again.store.put("things", thing("after"))
    assert stored.revision > revision + MARGIN
    await again.store.close()
    third = Opened(copy)
    assert third.findings == [], "a loss is told once"
    assert set(third.names()) == there | {"after"}
    assert third.store.revision == stored.revision
    await third.store.close()


async def test_a_missing_write_ahead_log_is_a_loss(path: Path) -> None:
    copy, revision = await killed(path, checkpointed=25)
    wal(copy).unlink()
    again = Opened(copy)
    (loss,) = again.findings
    assert (loss.kind, loss.count) == (LOSS, 15)
    assert len(again.names()) == 25
    assert again.store.revision > revision
    await again.store.close()


async def test_ruins_are_refused_until_their_owner_wants_them(path: Path) -> None:
    """With most objects gone, controllers would clean up what belonged to them."""
    copy, revision = await killed(path, checkpointed=10)
    wal(copy).unlink()
    for _ in range(2):
        with pytest.raises(DataDirectoryError, match=r"10 of the 40 rows are left.*move .*store\.ack away"):
            SqliteJournal(copy)
    copy.with_suffix(".ack").unlink()
    again = Opened(copy)
    assert len(again.names()) == 10
    assert again.store.revision > revision
    assert [one.kind for one in again.findings] == [LOSS]
    await again.store.close()


@pytest.mark.parametrize("how", ["missing", "empty"])
async def test_a_log_without_its_database_is_read_and_not_thrown_away(path: Path, how: str) -> None:
    """SQLite takes an empty file for a new one, and deletes the log beside it."""
    copy, revision = await killed(path)  # never checkpointed: the log has everything
    replace(copy, how)
    again = Opened(copy)
    assert len(again.names()) == 40
    assert again.findings == []
    assert again.store.revision == revision
    await again.store.close()


async def test_a_start_that_is_refused_leaves_the_log_as_it_was(path: Path) -> None:
    opened = Opened(path)
    await opened.store.put("secrets", thing("s"))
    opened.journal._tidy()
    await opened.store.close()
    copy, _ = await killed(path)
    shutil.copy(path.with_name("encryption.key"), copy.with_name("encryption.key"))
    data = wal(copy).read_bytes()
    flip(wal(copy), 32 + 24 + 2000)
    copy.with_name("encryption.key").rename(copy.with_name("kept"))
    with pytest.raises(DataDirectoryError, match="put the key file back"):
        SqliteJournal(copy)
    assert len(wal(copy).read_bytes()) == len(data)
    copy.with_name("kept").rename(copy.with_name("encryption.key"))
    again = Opened(copy)
    assert len(again.names()) == 40
    await again.store.close()


async def test_no_alarm_when_the_record_of_acknowledgements_is_behind(path: Path) -> None:
    """Power loss: it was written and not synced; the log was."""
    opened = Opened(path)
    await opened.store.put("things", thing("early"))
    behind = path.with_suffix(".ack").read_bytes()
    await opened.store.put("things", thing("late"))
    await opened.store.close()
    path.with_suffix(".ack").write_bytes(behind)
    again = Opened(path)
    assert again.findings == []
    assert again.names() == ["early", "late"]
    await again.store.close()


@pytest.mark.parametrize("how", ["missing", "empty", "noise"])
async def test_a_damaged_record_of_acknowledgements_is_told_and_made_anew(path: Path, how: str) -> None:
    copy, revision = await killed(path)
    replace(copy.with_suffix(".ack"), how)
    again = Opened(copy)
    (doubt,) = again.findings
    assert (doubt.kind, doubt.count) == (LOSS, 0)
    assert "store.ack" in doubt.reason
    assert len(again.names()) == 40
    assert again.store.revision > revision
    await again.store.close()
    third = Opened(copy)
    assert third.findings == []
    await third.store.close()


async def test_one_slot_of_the_record_is_enough(path: Path) -> None:
    for slot in (0, 1):
        copy, _ = await killed(path, folder=f"slot{slot}")
        flip(copy.with_suffix(".ack"), slot * 4096 + 20)
        again = Opened(copy)
        assert again.findings == []
        assert len(again.names()) == 40
        await again.store.close()


def change(path: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(path)
    database.execute(statement, values)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    "content",
    [
        b"not JSON",
        b"[]",
        b"{}",
        b'{"metadata": {"name": "other", "namespace": "default"}}',
        b"",
        b'"text"',
        b"\xff\xfe",
    ],
)
async def test_a_damaged_object_is_set_aside_and_the_rest_is_served(path: Path, content: bytes) -> None:
    opened = Opened(path)
    await opened.store.put("things", thing("whole"))
    first = await opened.store.put("things", thing("broken", "first"))
    last = await opened.store.put("things", thing("broken", "second"))
    await opened.store.close()
    change(path, "UPDATE log SET object = ? WHERE revision = ?", content, last.revision)
    again = Opened(path)
    assert again.names() == ["whole"]
    (finding,) = again.findings
    assert (finding.kind, finding.key) == (OBJECT, ("things", "default", "broken"))
    assert finding.damaged is not None
    assert finding.damaged.content == content
    assert finding.previous is not None
    assert finding.previous.content == first.raw
    assert again.store.why_held("things", "default", "broken")
    await again.store.put("things", thing("broken", "third"))
    assert not again.store.why_held("things", "default", "broken")
    await again.store.close()
    third = Opened(path)
    assert third.findings == []
    assert third.names() == ["broken", "whole"]
    assert third.store.held == {}
    await third.store.close()


async def test_what_is_held_is_held_after_a_restart_too_until_it_is_dropped(path: Path) -> None:
    opened = Opened(path)
    last = await opened.store.put("things", thing("broken"))
    await opened.store.put("things", thing("whole"))
    await opened.store.close()
    change(path, "UPDATE log SET object = x'00' WHERE revision = ?", last.revision)
    await Opened(path).store.close()
    again = Opened(path)
    assert again.store.why_held("things", "default", "broken")
    again.journal.quarantine.drop(f"r{last.revision}")
    assert not again.store.why_held("things", "default", "broken")
    await again.store.close()


async def test_a_damaged_old_version_hurts_nothing_that_is_current(path: Path) -> None:
    opened = Opened(path)
    first = await opened.store.put("things", thing("a", "first"))
    await opened.store.put("things", thing("a", "second"))
    await opened.store.close()
    change(path, "UPDATE log SET object = x'00' WHERE revision = ?", first.revision)
    again = Opened(path)
    assert [one.kind for one in again.findings] == [HISTORY]
    assert again.names() == ["a"]
    with pytest.raises(Expired):
        again.store.subscribe("things", first.revision - 1)
    await again.store.close()


async def test_a_damaged_deletion_brings_nothing_back(path: Path) -> None:
    opened = Opened(path)
    await opened.store.put("things", thing("a"))
    await opened.store.put("things", thing("b"))
    gone = await opened.store.delete("things", thing("a"))
    await opened.store.close()
    change(path, "UPDATE log SET object = x'00' WHERE revision = ?", gone.revision)
    again = Opened(path)
    assert again.names() == ["b"]
    await again.store.close()


@pytest.mark.parametrize("column", ["change", "resource", "namespace", "name"])
async def test_a_damaged_name_is_known_from_the_object(path: Path, column: str) -> None:
    opened = Opened(path)
    await opened.store.put("things", thing("a"))
    last = await opened.store.put("things", thing("b"))
    await opened.store.close()
    change(path, f"UPDATE log SET {column} = 'MODIFIEE' WHERE revision = ?", last.revision)
    again = Opened(path)
    assert again.names() == ["a", "b"]
    assert again.findings == []
    await again.store.close()


async def test_a_row_that_was_taken_out_is_missed(path: Path) -> None:
    opened = Opened(path)
    for name in "abc":
        await opened.store.put("things", thing(name))
    await opened.store.close()
    change(path, "DELETE FROM log WHERE name = 'b'")
    change(path, "VACUUM")
    again = Opened(path)
    (loss,) = again.findings
    assert (loss.kind, loss.count, [one["name"] for one in loss.lost]) == (LOSS, 1, ["b"])
    assert again.names() == ["a", "c"]
    await again.store.close()


async def large(path: Path) -> int:
    opened = Opened(path)
    await asyncio.gather(*(opened.store.put("things", thing(f"n{i:04}", size=600)) for i in range(400)))
    await opened.store.put("things", thing("huge", size=30_000))
    revision = opened.store.revision
    await opened.store.close()
    return revision


def damage(path: Path, where: str) -> None:
    data = bytearray(path.read_bytes())
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    root = next(number for number, page in enumerate(pages) if page[0] == 0x05)
    leaf = next(number for number, page in enumerate(pages) if page[0] == 0x0D and number > 3)
    overflow = next(number for number, page in enumerate(pages) if b"x" * 4000 in page)
    if where == "header":
        data[0:16] = b"\0" * 16
    elif where == "schema":
        data[100:PAGE] = b"\xff" * (PAGE - 100)
    elif where == "cut":
        data = data[: len(data) // 2]
    else:
        at = {"root": root, "leaf": leaf, "overflow": overflow}[where] * PAGE
        data[at : at + PAGE] = b"\xff" * PAGE
    path.write_bytes(data)


@pytest.mark.parametrize("where", ["header", "schema", "root", "leaf", "overflow", "cut"])
async def test_a_database_that_sqlite_refuses_is_read_page_by_page(path: Path, where: str) -> None:
    revision = await large(path)
    damage(path, where)
    again = Opened(path)
    there = len(again.names())
    losses = [one for one in again.findings if one.kind == LOSS]
    damaged = [one for one in again.findings if one.kind == OBJECT]
    if where in ("header", "schema", "root"):
        assert (there, again.findings) == (401, [])
    else:
        assert there < 401
        assert sum(one.count for one in losses) + len(damaged) == 401 - there, "each missing object is accounted for"
        assert again.store.revision > revision
    stored = await again.store.put("things", thing("after"))
    assert stored.revision > revision
    await again.store.close()
    third = Opened(path)
    assert third.findings == []
    assert len(third.names()) == there + 1
    await third.store.close()


def replace(path: Path, how: str) -> None:
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "empty" else b"\xaa" * 100_000)


@pytest.mark.parametrize("how", ["empty", "missing", "noise"])
async def test_a_store_that_is_gone_is_refused_and_not_begun_anew(path: Path, how: str) -> None:
    revision = await large(path)
    replace(path, how)
    with pytest.raises(DataDirectoryError, match=rf"store\.db.*revision {revision}\. .*danlu restore"):
        SqliteJournal(path)
    with pytest.raises(DataDirectoryError):
        SqliteJournal(path)


async def test_facts_that_are_damaged_do_not_matter(path: Path) -> None:
    await large(path)
    for statement in (
        "UPDATE facts SET value = value + 64",
        "UPDATE facts SET name = name || 'x'",
        "DELETE FROM facts",
        "DROP TABLE facts",
    ):
        change(path, statement)
        again = Opened(path)
        assert len(again.names()) == 401
        assert again.findings == []
        await again.store.close()


def test_the_ring_keeps_the_last_keys(tmp_path: Path) -> None:
    from danlu.embedded.storage.records import Ledger, key_text

    record = Acknowledged(tmp_path / "store.ack")
    for revision in range(1, 40_001):
        key = key_text(revision, "ADDED", "things", "default", f"name-{revision}")
        record.write(Ledger(revision), [(crc32(key), key)])
    record.close()
    again = Acknowledged(tmp_path / "store.ack")
    found = again.written_after(0)
    assert len(found) > 10_000
    assert [one.revision for one in found] == list(range(40_001 - len(found), 40_001))
    assert found[-1].name == "name-40000"
    again.close()
