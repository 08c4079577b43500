"""Backups: consistent under load, verified, and put back without giving a revision out twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.running import Api, Danlu

from danlu.embedded.storage import SqliteJournal, Store, backup, database
from danlu.embedded.storage.backup import BackupError

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
EVERYTHING = "configmaps,secrets,serviceaccounts,services,namespaces,roles,clusterroles,deployments,nodes"


class Load(threading.Thread):
    """Pairs of ConfigMaps that are always written in the same order: a backup has no second one without its first."""

    def __init__(self, danlu: Danlu) -> None:
        super().__init__(daemon=True)
        self.danlu = danlu
        self.stop = threading.Event()
        self.count = 0

    def run(self) -> None:
        api = Api(self.danlu.kubeconfig)
        while not self.stop.is_set() and self.count < 2000:
            with contextlib.suppress(OSError, http.client.HTTPException):
                for part in ("a", "b"):
                    api.request("POST", CONFIG_MAPS, {"metadata": {"name": f"{part}{self.count}"}})
                self.count += 1


def objects(danlu: Danlu) -> dict[str, Any]:
    """All objects as kubectl shows them, by kind and name; nodes and leases move on by themselves."""
    listed = json.loads(danlu.kubectl("get", EVERYTHING, "-A", "-o", "json"))["items"]
    return {
        f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}": item
        for item in listed
        if item["kind"] != "Node"
    }


def test_a_backup_under_load_is_put_back_object_by_object(make_danlu: Callable[..., Danlu], tmp_path: Path) -> None:
    danlu = make_danlu("--no-console")
    danlu.kubectl("create", "secret", "generic", "s", "--from-literal=word=hidden")
    danlu.kubectl("create", "deployment", "d", "--image=busybox", "--replicas=0")
    load = Load(danlu)
    load.start()
    target = tmp_path / "backups" / "one"
    danlu.wait("some load", lambda: load.count > 20)
    during = danlu.command("backup", str(target), "--with-keys").stdout
    assert "verified" in during
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    load.stop.set()
    load.join(30)
    there = {row.name for row in backup.read(target).current().values() if row.resource == "configmaps"}
    assert {f"a{name[1:]}" for name in there if name.startswith("b")} <= there, "not of one revision"
    assert len(there) > 40
    # Once more when all is quiet, to compare with what kubectl shows.
    danlu.command("backup", str(target), "--with-keys")
    before = objects(danlu)
    status, answer = Api(danlu.kubeconfig).request("POST", CONFIG_MAPS, {"metadata": {"name": "after-the-backup"}})
    assert status == 201
    handed_out = int(answer["metadata"]["resourceVersion"])
    danlu.down()
    shutil.rmtree(danlu.data)
    restored = danlu.command("restore", str(target)).stdout
    assert "revisions go on at" in restored
    danlu.up()
    assert objects(danlu) == before
    assert "damage" not in danlu.command("status").stdout
    status, answer = Api(danlu.kubeconfig).request("POST", CONFIG_MAPS, {"metadata": {"name": "new"}})
    assert status == 201
    assert int(answer["metadata"]["resourceVersion"]) > handed_out + 1000
    query = f"?watch=1&resourceVersion={handed_out}&timeoutSeconds=1"
    status, answer = Api(danlu.kubeconfig).request("GET", CONFIG_MAPS + query)
    assert (answer["object"] if status == 200 else answer)["code"] == 410, "a watch from before lists again"
    danlu.down()


def test_a_directory_in_use_is_replaced_only_by_force_and_kept(
    make_danlu: Callable[..., Danlu], tmp_path: Path
) -> None:
    danlu = make_danlu("--no-console")
    danlu.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    danlu.command("backup", str(tmp_path / "b"))
    danlu.kubectl("create", "configmap", "later", "--from-literal=a=b")
    assert "needs it stopped" in danlu.command("restore", str(tmp_path / "b"), "--force", check=False).stderr
    danlu.down()
    refused = danlu.command("restore", str(tmp_path / "b"), check=False)
    assert "--force replaces it" in refused.stderr
    danlu.command("restore", str(tmp_path / "b"), "--force")
    (aside,) = (danlu.data / "quarantine").glob("before-restore-*")
    assert (aside / "store.db").exists()
    danlu.up()
    names = danlu.kubectl("get", "configmaps", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert names == ["kept", "kube-root-ca.crt"]
    danlu.down()


async def filled(path: Path, count: int = 30) -> None:
    store = Store(SqliteJournal(path))
    store.start()
    for index in range(count):
        meta = {"name": f"n{index}", "namespace": "default"}
        await store.put("secrets" if index % 3 == 0 else "things", {"metadata": meta, "data": {"x": "y" * 100}})
    await store.close()


async def test_any_flipped_bit_or_cut_in_a_backup_is_found_before_anything_is_touched(tmp_path: Path) -> None:
    source = tmp_path / "data" / "store.db"
    source.parent.mkdir()
    await filled(source)
    whole = tmp_path / "backup"
    backup.make(source, whole, "test", running=False)
    data = whole.read_bytes()
    content = backup.read(whole).rows
    chance = random.Random(12)
    found = 0
    for number in range(60):
        broken = bytearray(data)
        if number % 4 == 0:
            del broken[chance.randrange(len(broken)) :]
        else:
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        (tmp_path / "broken").write_bytes(broken)
        try:
            # Padding between members, and dates of them, carry nothing.
            assert backup.read(tmp_path / "broken").rows == content
        except BackupError:
            found += 1
    assert found > 45


@pytest.mark.parametrize("name", ["../planted", "pki/../../planted", "/planted"])
async def test_a_backup_with_files_for_other_places_is_refused(tmp_path: Path, name: str) -> None:
    """Whole in every other way: somebody made it to be restored by somebody else."""
    source = tmp_path / "data" / "store.db"
    source.parent.mkdir()
    await filled(source)
    made = backup.make(source, tmp_path / "backup", "test", running=False)
    members = {backup.STORE: database.build(tmp_path / "built.db", made.rows).read_bytes(), name: b"theirs"}
    backup._write(tmp_path / "hostile", members, made, "test")
    with pytest.raises(BackupError, match=f"'{name}' has no place in one"):
        backup.read(tmp_path / "hostile")


async def test_rows_that_were_damaged_before_they_came_into_a_backup_are_found(tmp_path: Path) -> None:
    """All digests are right: the row itself is not what its seal says."""
    source = tmp_path / "data" / "store.db"
    source.parent.mkdir()
    await filled(source)
    made = backup.make(source, tmp_path / "backup", "test", running=False)
    made.rows[7] = made.rows[7]._replace(object=b'{"metadata":{"name":"other"}}')
    members = {backup.STORE: database.build(tmp_path / "built.db", made.rows).read_bytes()}
    backup._write(tmp_path / "broken", members, made, "test")
    with pytest.raises(BackupError, match="its rows do not fit their seals"):
        backup.read(tmp_path / "broken")


async def test_a_manifest_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Well-formed, with nothing in it that does not fit: by the date alone a restore would give revisions out twice."""
    source = tmp_path / "data" / "store.db"
    source.parent.mkdir()
    await filled(source)
    made = backup.make(source, tmp_path / "backup", "test", running=False)
    whole = (tmp_path / "backup").read_bytes()
    assert whole.count(f'"created": {made.created}'.encode()) == 1
    later = f'"created": {str(made.created)[::-1].replace(".", "9")[: len(str(made.created))]}'
    (tmp_path / "changed").write_bytes(whole.replace(f'"created": {made.created}'.encode(), later.encode()))
    with pytest.raises(BackupError, match="its manifest does not fit its checksum"):
        backup.read(tmp_path / "changed")


async def test_secrets_of_a_backup_without_keys_need_the_key_file(tmp_path: Path) -> None:
    source = tmp_path / "data" / "store.db"
    source.parent.mkdir()
    await filled(source)
    backup.make(source, tmp_path / "backup", "test", running=False)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(BackupError, match="cannot be decrypted"):
        backup.restore(backup.read(tmp_path / "backup"), other / "store.db", other / "aside")
    assert not (other / "store.db").exists()
    shutil.copy(source.with_name("encryption.key"), other / "encryption.key")
    revision = backup.restore(backup.read(tmp_path / "backup"), other / "store.db", other / "aside")
    journal = SqliteJournal(other / "store.db")
    store = Store(journal)
    store.start()
    assert journal.findings == []
    assert len(store.scan("secrets")) == 10
    assert store.revision == revision
    await store.close()
