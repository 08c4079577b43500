"""The invariants that the package docstring of embedded/storage names, one by one."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from danlu.embedded.storage import Change, DataDirectoryError, SqliteJournal, Store, sqlite, watchcache
from danlu.embedded.storage.database import MOST_ROWS
from danlu.errors import Expired, ServiceUnavailable
from danlu.meta.kind import Object


def thing(name: str, namespace: str = "default", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "data": data}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def size_of(path: Path) -> int:
    return path.stat().st_size + path.with_name("store.db-wal").stat().st_size


async def opened(path: Path) -> Store:
    store = Store(SqliteJournal(path))
    store.start()
    return store


async def test_a_write_is_seen_by_writers_at_once_and_by_readers_when_durable(path: Path) -> None:
    store = await opened(path)
    pending = store.put("things", thing("a"))
    assert store.get("things", "default", "a") is None
    latest = store.latest("things", "default", "a")
    assert latest is not None
    stored = await pending
    assert store.get("things", "default", "a") is stored is latest
    assert stored.obj["metadata"]["resourceVersion"] == str(stored.revision) == str(store.revision)
    await store.close()


async def test_what_was_acknowledged_is_there_after_a_restart(path: Path) -> None:
    store = await opened(path)
    await asyncio.gather(*(store.put("things", thing(f"n{i}")) for i in range(50)))
    await store.put("things", thing("n7", value="new"))
    await store.delete("things", thing("n8"))
    revision = store.revision
    await store.close()
    again = await opened(path)
    assert [stored.name for stored in again.scan("things")] == sorted(f"n{i}" for i in range(50) if i != 8)
    changed = again.get("things", "default", "n7")
    assert changed is not None
    assert changed.obj["data"] == {"value": "new"}
    assert again.revision == revision
    stored = await again.put("things", thing("later"))
    assert stored.revision > revision
    await again.close()


async def test_scan_keeps_order_and_namespaces_apart(path: Path) -> None:
    store = await opened(path)
    for namespace, name in [("b", "x"), ("a", "z"), ("ab", "q"), ("a", "b"), ("a-b", "c")]:
        await store.put("things", thing(name, namespace))
    assert [(s.namespace, s.name) for s in store.scan("things")] == [
        ("a", "b"), ("a", "z"), ("a-b", "c"), ("ab", "q"), ("b", "x"),
    ]  # fmt: skip
    assert [s.name for s in store.scan("things", "a")] == ["b", "z"]
    assert store.scan("things", "nowhere") == []
    await store.close()


async def test_a_watch_gets_every_change_once_in_order(path: Path) -> None:
    store = await opened(path)
    await store.put("things", thing("before"))
    since = store.revision
    await store.put("things", thing("a"))
    subscription = store.subscribe("things", since)
    await store.put("others", thing("elsewhere"))
    await store.put("things", thing("a", value="2"))
    await store.delete("things", thing("a"))
    changes = await subscription.take(1)
    assert [(c.type, c.stored.name) for c in changes] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [c.revision for c in changes] == sorted(c.revision for c in changes)
    assert changes[1].previous is changes[0].stored
    assert await subscription.take(0.01) == []
    await store.close()


async def test_a_watch_resumes_across_a_restart(path: Path) -> None:
    store = await opened(path)
    first = await store.put("things", thing("a"))
    await store.put("things", thing("b"))
    await store.delete("things", thing("a"))
    await store.close()
    again = await opened(path)
    changes = await again.subscribe("things", first.revision).take(1)
    assert [(c.type, c.stored.name) for c in changes] == [("ADDED", "b"), ("DELETED", "a")]
    await again.close()


async def test_a_watch_older_than_the_window_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchcache, "WINDOW_CHANGES", 10)
    store = await opened(path)
    first = await store.put("things", thing("a"))
    for index in range(20):
        await store.put("things", thing("a", value=str(index)))
    with pytest.raises(Expired, match="too old resource version"):
        store.subscribe("things", first.revision)
    store.subscribe("things", store.revision - 5)
    await store.close()


async def test_history_on_disk_is_dropped_and_objects_are_not(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "HISTORY", 50)
    monkeypatch.setattr(sqlite, "PRUNE_BATCH", 20)
    store = await opened(path)
    first = await store.put("things", thing("steady"))
    for index in range(300):
        await store.put("things", thing("busy", value=str(index)))
    await store.close()
    rows = sqlite3.connect(path).execute("SELECT count(*) FROM log").fetchone()[0]
    assert rows < 150
    again = await opened(path)
    assert {stored.name for stored in again.scan("things")} == {"steady", "busy"}
    with pytest.raises(Expired):
        again.subscribe("things", first.revision)
    await again.close()


async def test_history_is_bounded_by_bytes_too_on_disk_and_in_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "HISTORY_BYTES", 1 << 20)
    monkeypatch.setattr(sqlite, "VACUUM_FREE_BYTES", 1 << 18)
    monkeypatch.setattr(sqlite, "IDLE_S", 0.05)
    monkeypatch.setattr(watchcache, "ALL_WINDOWS_BYTES", 1 << 19)
    store = await opened(path)
    await store.put("things", thing("steady"))
    filling = "x" * 20_000
    for index in range(300):  # 6 MB of versions
        await store.put(f"kind{index % 10}", thing("busy", value=filling + str(index)))
    assert sum(window.bytes for window in store.watch_cache._windows.values()) <= 1 << 19
    with pytest.raises(Expired):
        store.subscribe("kind0", 3)
    for _ in range(200):
        if size_of(path) < 2 << 20:
            break
        await asyncio.sleep(0.05)
    assert size_of(path) < 2 << 20, "the file shrinks when there is nothing else to do"
    await store.close()
    again = await opened(path)
    assert len(again.resources()) == 11
    assert all(again.get(f"kind{index}", "default", "busy") for index in range(10))
    await again.close()


async def test_when_the_disk_refuses_writes_in_flight_fail_and_memory_shows_what_the_disk_has(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = SqliteJournal(path)
    store = Store(journal)
    store.start()
    await store.put("things", thing("kept"))
    seen: list[Change] = []
    store.observe(seen.append)

    def refuse(batch: list[Change]) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(journal, "_commit", refuse)
    failing = [store.put("things", thing("lost")), store.put("things", thing("kept", value="lost"))]
    results = await asyncio.gather(*failing, return_exceptions=True)
    assert all(isinstance(result, ServiceUnavailable) and "disk is full" in str(result) for result in results)
    assert store.latest("things", "default", "lost") is None
    kept = store.latest("things", "default", "kept")
    assert kept is not None
    assert kept.obj["data"] == {}
    # Observers are told the opposite, newest first, so that counters come out even.
    assert [(c.type, c.stored.name) for c in seen[2:]] == [("MODIFIED", "kept"), ("DELETED", "lost")]
    monkeypatch.undo()
    await store.put("things", thing("fine"))
    await store.close()


async def test_a_slow_watcher_is_cut_off_instead_of_growing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchcache, "MAX_LAG", 5)
    store = await opened(path)
    subscription = store.subscribe("things", store.revision)
    for index in range(10):
        await store.put("things", thing("a", value=str(index)))
    assert len(await subscription.take(0.01)) == 5
    assert subscription.overflowed
    await store.close()


def test_a_newer_data_directory_is_left_alone(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)")
    database.execute("INSERT INTO facts VALUES ('format', 999)")
    database.commit()
    database.close()
    with pytest.raises(DataDirectoryError, match=r"newer Danlu.*--data-dir"):
        SqliteJournal(path)


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("not a database, and longer than a header of one hundred bytes " * 4)
    before = path.read_bytes()
    with pytest.raises(DataDirectoryError, match="cannot use"):
        SqliteJournal(path)
    assert path.read_bytes() == before


async def test_a_name_of_any_length_is_stored(path: Path) -> None:
    """Some kinds take any name that fits into a path."""
    store = await opened(path)
    for length in (65_000, 66_000, 500_000):
        await asyncio.wait_for(store.put("things", thing("x" * length)), 30)
    await asyncio.wait_for(store.put("things", thing("after")), 30)
    await store.close()
    again = await opened(path)
    assert again.count("things") == 4
    await again.close()


async def test_a_change_that_cannot_be_stored_fails_and_the_next_ones_do_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opened(path)
    await store.put("things", thing("before"))
    written = vars(sqlite)["sealed_all"]

    def refuse(*_: object) -> None:
        raise ValueError("nobody thought of this")

    monkeypatch.setattr(sqlite, "sealed_all", refuse)
    with pytest.raises(ServiceUnavailable, match="nobody thought of this"):
        await asyncio.wait_for(store.put("things", thing("bad")), 30)
    monkeypatch.setattr(sqlite, "sealed_all", written)
    await asyncio.wait_for(store.put("things", thing("after")), 30)
    assert [stored.name for stored in store.scan("things")] == ["after", "before"]
    await store.close()


async def test_more_changes_than_one_statement_takes_are_one_commit(path: Path) -> None:
    store = await opened(path)
    journal, commits, count = store._journal, [], 3 * MOST_ROWS + 1
    assert isinstance(journal, SqliteJournal)
    commit = journal._commit

    def counting(batch: list[Change]) -> None:
        commits.append(len(batch))
        commit(batch)

    journal._commit = counting  # type: ignore[method-assign]
    with journal._wake:  # the thread that writes does not come in between
        pending = [store.put("things", thing(f"t{number:04}")) for number in range(count)]
    written = await asyncio.gather(*pending)
    assert commits == [count]
    assert [stored.revision for stored in written] == list(range(written[0].revision, written[0].revision + count))
    await store.close()
    again = await opened(path)
    assert again.count("things") == count
    await again.close()


async def test_a_watcher_that_cannot_take_all_of_a_commit_takes_what_fits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchcache, "MAX_LAG", 5)
    store = await opened(path)
    subscription = store.subscribe("things", store.revision)
    await asyncio.gather(*(store.put("things", thing(f"t{number}")) for number in range(9)))
    assert [change.stored.name for change in await subscription.take(1)] == [f"t{number}" for number in range(5)]
    assert subscription.overflowed
    assert await subscription.take(1) == []
    await store.close()


async def test_a_wait_ends_in_its_time_whatever_was_waited_for_before(path: Path) -> None:
    store = await opened(path)
    subscription = store.subscribe("things", store.revision)
    long_wait = asyncio.create_task(subscription.take(3600))
    await asyncio.sleep(0)
    await store.put("things", thing("one"))
    assert len(await long_wait) == 1
    assert await asyncio.wait_for(subscription.take(0.01), 30) == []
    assert await asyncio.wait_for(subscription.take(0.01), 30) == []
    await store.close()
