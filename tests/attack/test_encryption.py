"""Somebody with a copy of the disk: secrets are not in it in the clear, and no row can stand for another."""

from __future__ import annotations

import asyncio
import base64
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.running import Danlu

from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.embedded.storage import DataDirectoryError, SqliteJournal, Store, recovery
from danlu.embedded.storage.encryption import Keyring
from danlu.embedded.storage.quarantine import OBJECT
from danlu.meta.kind import Object
from danlu.meta.wellknown import SECRET

WORD = "Xyzzy-Plugh-4711"
ENCODED = base64.b64encode(WORD.encode()).decode()


def secret(name: str, text: str = ENCODED, namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"word": text}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def opened(path: Path) -> Store:
    store = Store(SqliteJournal(path))
    store.start()
    return store


def content(path: Path) -> bytes:
    return path.read_bytes()


def in_the_clear(folder: Path, *words: str) -> list[str]:
    """Files below a folder that have one of these words in them."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            found += [f"{file}: {word}" for word in words if word.encode() in data]
    return found


async def test_no_version_of_a_secret_is_on_the_disk_in_the_clear(settings: ClusterSettings) -> None:
    cluster = Cluster(settings)
    await cluster.start()
    await cluster.client.create(SECRET, secret("s"))
    await cluster.client.patch(SECRET, "s", "default", {"stringData": {"more": f"{WORD}-again"}})
    assert in_the_clear(settings.data_dir, WORD, ENCODED) == []
    await cluster.client.delete(SECRET, "s", "default")
    await cluster.client.create(SECRET, secret("t"))
    assert in_the_clear(settings.data_dir, WORD, ENCODED) == [], "nor of one that was deleted"
    key_file = settings.data_dir / "encryption.key"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    await cluster.stop()
    again = Cluster(settings)
    await again.start()
    assert (await again.client.get(SECRET, "t", "default"))["data"] == {"word": ENCODED}
    await again.stop()


@pytest.mark.parametrize("column", ["name", "namespace", "resource", "revision"])
async def test_a_row_cannot_stand_for_another(path: Path, column: str) -> None:
    """Mallory may write to the disk, and knows how checksums are made; the key she has not."""
    from danlu.embedded.storage.records import Ledger, Row, sealed

    store = await opened(path)
    mine = await store.put("secrets", secret("mine", namespace="mallory"))
    await store.put("secrets", secret("theirs", text="b3RoZXI="))
    await store.close()
    database = sqlite3.connect(path)
    rows = [Row(*row) for row in database.execute("SELECT * FROM log ORDER BY revision")]
    moved: Any = {"name": "theirs", "namespace": "default", "resource": "configmaps", "revision": mine.revision + 5}
    rows[0] = rows[0]._replace(**{column: moved[column]})
    ledger = Ledger()
    forged = []
    for row in sorted(rows):
        new, ledger = sealed(ledger, row[:6])
        forged.append(new)
    database.execute("DELETE FROM log")
    database.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)", forged)
    database.commit()
    database.close()
    path.with_suffix(".ack").unlink()
    journal = SqliteJournal(path)
    again = Store(journal)
    again.start()
    served = [stored.raw for resource in again.resources() for stored in again.scan(resource)]
    assert not any(ENCODED.encode() in raw for raw in served)
    assert any(one.kind == OBJECT and "encrypted" in one.reason for one in journal.findings)
    await again.close()


@pytest.mark.parametrize("how", ["missing", "another", "noise"])
async def test_without_the_key_nothing_starts_and_nothing_is_overwritten(path: Path, how: str) -> None:
    store = await opened(path)
    await store.put("secrets", secret("s"))
    await store.close()
    key_file = path.with_name("encryption.key")
    kept = key_file.rename(path.with_name("kept"))
    if how == "another":
        assert Keyring(key_file).current
    elif how == "noise":
        key_file.write_bytes(b"danlu-key v1 00 now AAAA\n" * 2)
    before = content(path)
    with pytest.raises(DataDirectoryError, match=r"1 objects in .*encrypted with the key.*encryption\.key"):
        SqliteJournal(path)
    assert content(path) == before
    kept.replace(key_file)
    again = await opened(path)
    assert again.get("secrets", "default", "s") is not None
    await again.close()


async def test_a_flipped_bit_in_the_key_file_costs_no_secret(path: Path) -> None:
    store = await opened(path)
    await store.put("secrets", secret("s"))
    await store.close()
    key_file = path.with_name("encryption.key")
    whole = key_file.read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 1
        key_file.write_bytes(data)
        again = await opened(path)
        assert again.get("secrets", "default", "s") is not None
        await again.close()
        assert Keyring(key_file).keys[0].id == Keyring(key_file).keys[-1].id


# -- rotation


async def test_after_a_rotation_the_old_key_opens_nothing(path: Path) -> None:
    store = await opened(path)
    for index in range(20):
        await store.put("secrets", secret(f"s{index % 5}", text=f"{ENCODED}{index}"))
    await store.close()
    key_file = path.with_name("encryption.key")
    old = shutil.copy(key_file, path.with_name("old.key"))
    new = Keyring(key_file).add()
    again = await opened(path)
    assert len(again.scan("secrets")) == 5
    assert [key.id for key in Keyring(key_file).keys] == [new.id]
    await again.put("secrets", secret("later"))
    await again.close()
    assert Keyring(Path(old)).keys[0].id.hex() not in content(path).hex()
    shutil.copy(old, key_file)
    with pytest.raises(DataDirectoryError, match=new.id.hex()):
        SqliteJournal(path)


@pytest.mark.parametrize("step", ["scrub", "drop_older", "COMMIT"])
async def test_a_rotation_that_is_interrupted_is_finished_by_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = await opened(path)
    await asyncio.gather(*(store.put("secrets", secret(f"s{index}")) for index in range(5)))
    revision = store.revision
    await store.close()
    key_file = path.with_name("encryption.key")
    Keyring(key_file).add()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    place, name = {"COMMIT": (Keyring, "stored"), "scrub": (recovery, "scrub")}.get(step, (Keyring, "drop_older"))
    monkeypatch.setattr(place, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        SqliteJournal(path)
    monkeypatch.undo()
    journal = SqliteJournal(path)
    again = Store(journal)
    again.start()
    assert journal.findings == []
    assert [stored.obj["data"] for stored in again.scan("secrets")] == [{"word": ENCODED}] * 5
    assert again.revision >= revision
    assert len(Keyring(key_file).keys) == 1
    await again.close()


def test_rotation_as_people_do_it(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console")
    danlu.kubectl("create", "secret", "generic", "s", f"--from-literal=word={WORD}")
    before = danlu.command("encryption").stdout
    refused = danlu.command("encryption", "rotate", check=False)
    assert refused.returncode == 1
    assert "danlu down --keep-pods" in refused.stderr
    danlu.down()
    danlu.command("encryption", "rotate")
    after = danlu.command("encryption").stdout
    assert before != after
    assert after.count("\nkey  ") == 1
    danlu.up()
    assert danlu.kubectl("get", "secret", "s", "-o", "jsonpath={.data.word}") == ENCODED
    danlu.down()


# -- data directories from before


def format_1(path: Path, rows: list[tuple[str, str, Object | bytes]], forgotten: int = 0) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.executescript(
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
        "CREATE TABLE log (revision INTEGER PRIMARY KEY, change TEXT NOT NULL, resource TEXT NOT NULL,"
        " namespace TEXT NOT NULL, name TEXT NOT NULL, object BLOB NOT NULL);"
    )
    database.execute("INSERT INTO facts VALUES ('format', 1), ('forgotten', ?)", (forgotten,))
    for revision, (change, resource, obj) in enumerate(rows, 2):
        name = obj["metadata"]["name"] if isinstance(obj, dict) else "broken"
        raw = orjson.dumps(obj) if isinstance(obj, dict) else obj
        database.execute(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", (revision, change, resource, "default", name, raw)
        )
    database.commit()
    database.close()


OLDER: list[tuple[str, str, Object | bytes]] = [
    ("ADDED", "secrets", secret("s")),
    ("ADDED", "secrets", secret("gone")),
    ("MODIFIED", "secrets", secret("s", text=ENCODED + "2")),
    ("DELETED", "secrets", secret("gone")),
    ("ADDED", "configmaps", secret("c", text="plain")),
]


async def test_an_older_directory_is_brought_up_to_date_and_encrypted(path: Path) -> None:
    format_1(path, OLDER)
    assert in_the_clear(path.parent, ENCODED) != []
    store = await opened(path)
    found = store.get("secrets", "default", "s")
    assert found is not None
    assert found.obj["data"] == {"word": ENCODED + "2"}
    assert store.get("secrets", "default", "gone") is None
    assert store.revision == 6
    assert in_the_clear(path.parent, ENCODED) == [], "no trace of it stays in free pages or in the log"
    changes = await store.subscribe("secrets", 3).take(1)
    assert [(change.type, change.revision) for change in changes] == [("MODIFIED", 4), ("DELETED", 5)]
    await store.close()
    journal = SqliteJournal(path)
    assert journal.findings == []
    journal.close()


async def test_a_migration_that_is_interrupted_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format_1(path, OLDER)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("danlu.embedded.storage.database.set_format", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SqliteJournal(path)
    monkeypatch.undo()
    store = await opened(path)
    assert store.revision == 6
    assert len(store.scan("secrets")) == 1
    await store.close()


@pytest.mark.parametrize("broken", [b"not JSON", b"[]", b'{"metadata": {"name": "x"}}', b"\xff"])
async def test_a_damaged_object_of_an_older_directory_is_set_aside(path: Path, broken: bytes) -> None:
    format_1(path, [*OLDER, ("ADDED", "configmaps", broken)])
    journal = SqliteJournal(path)
    store = Store(journal)
    store.start()
    assert [(one.kind, one.name) for one in journal.findings] == [(OBJECT, "broken")]
    assert len(store.scan("configmaps")) == 1
    await store.close()
