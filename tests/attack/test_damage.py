"""A broken disk: what is damaged is found at the next start, named and set aside; nothing is lost without a word.

Every start here is a whole `Cluster` or a whole `danlu up` on a directory that was damaged while nobody ran on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.running import Api, Danlu
from tests.torture.damages import campaign

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.damage import summary
from danlu.embedded.settings import ClusterSettings
from danlu.embedded.storage import DataDirectoryError, Finding, Quarantine, SqliteJournal, Store
from danlu.errors import AlreadyExists, InternalError
from danlu.meta.wellknown import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, EVENT, NAMESPACE, SERVICE, SERVICE_ACCOUNT

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


async def filled(settings: ClusterSettings) -> None:
    """A data directory with a few objects in it; nobody runs on it."""
    cluster = Cluster(settings)
    await cluster.start()
    for name in ("a", "b", "c"):
        await cluster.client.create(CONFIG_MAP, config_map(name, said=name))
    await cluster.client.patch(CONFIG_MAP, "b", "default", {"data": {"said": "b2"}})
    await cluster.stop()


def change(settings: ClusterSettings, statement: str, *values: object) -> None:
    database = sqlite3.connect(settings.data_dir / "store.db")
    database.execute(statement, values)
    database.commit()
    database.close()


def findings(settings: ClusterSettings) -> list[Finding]:
    return Quarantine(settings.data_dir / "quarantine").findings()


async def names(client: Client) -> list[str]:
    return [item["metadata"]["name"] for item in (await client.list(CONFIG_MAP, "default")).items]


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"not JSON", b"[1]", b"null", b"{}", b'{"metadata": 1}', b'{"metadata": {"name": "elsewhere"}}'],
)
async def test_a_damaged_object_is_set_aside_and_told(settings: ClusterSettings, content: bytes) -> None:
    await filled(settings)
    newest = "(SELECT max(revision) FROM log WHERE resource = 'configmaps' AND name = 'b')"
    change(settings, f"UPDATE log SET object = ? WHERE revision = {newest}", content)
    cluster = Cluster(settings)
    await cluster.start()
    try:
        assert await names(cluster.client) == ["a", "c"]
        (finding,) = findings(settings)
        assert finding.what == "configmaps default/b"
        assert finding.previous is not None
        assert json.loads(finding.previous.content)["data"] == {"said": "b"}
        assert summary([finding]) == "1 damaged object in quarantine; `danlu repair` tells more"
        events = (await cluster.client.list(EVENT, "kube-system")).items
        assert [(event["reason"], "configmaps default/b" in event["message"]) for event in events] == [
            ("StoredObjectDamaged", True)
        ]
        # It is not gone: a controller that is told so would delete what belongs to it.
        with pytest.raises(InternalError, match="damaged in the store"):
            await cluster.client.get(CONFIG_MAP, "b", "default")
        await cluster.client.create(CONFIG_MAP, config_map("b", said="b3"))
        assert (await cluster.client.get(CONFIG_MAP, "b", "default"))["data"] == {"said": "b3"}
    finally:
        await cluster.stop()


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("namespaces", "default"),
        ("namespaces", "kube-system"),
        ("clusterroles.rbac.authorization.k8s.io", "cluster-admin"),
        ("services", "kubernetes"),
        ("storageclasses.storage.k8s.io", "local"),
        ("priorityclasses.scheduling.k8s.io", "system-node-critical"),
    ],
)
async def test_what_a_cluster_cannot_do_without_is_made_again(
    settings: ClusterSettings, resource: str, name: str
) -> None:
    await filled(settings)
    change(settings, "UPDATE log SET object = x'7b' WHERE resource = ? AND name = ?", resource, name)
    cluster = Cluster(settings)
    await cluster.start()
    try:
        assert cluster.store.get(resource, "default" if resource == "services" else "", name) is not None
        assert await names(cluster.client) == ["a", "b", "c"]
        assert findings(settings)[0].name == name
    finally:
        await cluster.stop()


async def test_objects_that_make_a_part_of_the_server_stumble_are_set_aside(settings: ClusterSettings) -> None:
    """Whole rows with right checksums: stored by another version, or by other hands."""
    await filled(settings)
    store = Store(SqliteJournal(settings.data_dir / "store.db"))
    store.start()
    put = store.put
    meta: dict[str, Any] = {"name": "bad", "uid": "1"}
    await put("services", {"metadata": {**meta, "namespace": "default"}, "spec": "text"})
    await put("roles.rbac.authorization.k8s.io", {"metadata": {**meta, "namespace": "default"}, "rules": 3})
    await put("limitranges", {"metadata": {**meta, "namespace": "default"}, "spec": {"limits": 7}})
    await put("resourcequotas", {"metadata": {**meta, "namespace": "default"}, "spec": {"hard": [1]}})
    await put(CUSTOM_RESOURCE_DEFINITION.resource, {"metadata": meta, "spec": 5, "status": {"conditions": "x"}})
    await put("validatingwebhookconfigurations.admissionregistration.k8s.io", {"metadata": meta, "webhooks": 4})
    await put("validatingadmissionpolicies.admissionregistration.k8s.io", {"metadata": meta, "spec": 4})
    await store.close()
    again = Cluster(settings)
    await again.start()
    try:
        await again.client.create(SERVICE, service("fine"))
        await again.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        aside = {one.resource for one in findings(settings)}
        assert {"services", "limitranges"} <= aside
    finally:
        await again.stop()
    third = Cluster(settings)
    await third.start()
    await third.stop()


def service(name: str) -> dict[str, Any]:
    spec = {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    }  # fmt: skip


# -- files of the data directory


async def test_a_failed_start_leaves_no_port_and_no_lock(
    settings: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.run_controllers = True
    cluster = Cluster(settings)

    async def stumble(self: object) -> None:
        raise RuntimeError("a controller cannot start")

    monkeypatch.setattr("danlu.runtime.manager.Manager.start", stumble)
    with pytest.raises(RuntimeError, match="cannot start"):
        await cluster.start()
    host, port = cluster.url.removeprefix("https://").split(":")
    with socket.socket() as probe:
        probe.settimeout(5)
        assert probe.connect_ex((host, int(port))) != 0, "the port is still held"
    assert cluster.directory.holder() is None
    monkeypatch.undo()
    settings.run_controllers = False
    again = Cluster(settings)
    await again.start()
    await again.stop()


PKI = ["ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "admin.key", "pki.json", "digests.json"]


@pytest.mark.parametrize("how", ["flip", "cut", "missing"])
@pytest.mark.parametrize("name", [*PKI, "service-accounts.key"])
async def test_damaged_keys_and_certificates_are_replaced(settings: ClusterSettings, name: str, how: str) -> None:
    first = Cluster(settings)
    await first.start()
    await issue_token(first)
    await first.stop()
    path = settings.data_dir / "pki" / name
    assert path.exists()
    spoil(path, how)
    again = Cluster(settings)
    await again.start()
    try:
        # Over the socket, with the kubeconfig that was written.
        status, listed = await asyncio.to_thread(ask, again)
        assert (status, len(listed["items"])) == (200, 4)
        await issue_token(again)
    finally:
        await again.stop()


async def test_a_secret_of_zeros_is_not_used(settings: ClusterSettings) -> None:
    """Nothing in the file says what it should be: its digest does."""
    for _ in range(2):  # the second start knows what the first one made
        await filled(settings) if not settings.data_dir.exists() else await restarted(settings)
    path = settings.data_dir / "pki" / "continue.secret"
    path.write_bytes(bytes(32))
    await restarted(settings)
    assert path.read_bytes() != bytes(32)
    assert [one.kind for one in findings(settings)] == ["file"]


async def restarted(settings: ClusterSettings) -> None:
    cluster = Cluster(settings)
    await cluster.start()
    await cluster.stop()


def ask(cluster: Cluster) -> tuple[int, Any]:
    return Api(cluster.directory.kubeconfig).request("GET", "/api/v1/namespaces")


async def issue_token(cluster: Cluster) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}}
    with contextlib.suppress(AlreadyExists):
        await cluster.client.create(SERVICE_ACCOUNT, account)
    asked = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
    path = "/api/v1/namespaces/default/serviceaccounts/sa/token"
    answer = await cluster.client.transport.request("POST", path, [], {"content-type": "application/json"}, asked)
    assert answer.status == 201


def spoil(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 4
    elif how == "cut":
        del data[len(data) // 2 :]
    elif how == "empty":
        data.clear()
    elif how == "noise":
        data[:] = os.urandom(len(data))
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("how", ["flip", "empty", "noise"])
@pytest.mark.parametrize("name", ["kubeconfig", "port", "danlu.lock", "running.json", "store.db-shm"])
async def test_other_damaged_files_do_not_matter(settings: ClusterSettings, name: str, how: str) -> None:
    await filled(settings)
    path = settings.data_dir / name
    if not path.exists() or not path.read_bytes():
        path.write_bytes(b'{"pid": 1, "url": "x"}')
    spoil(path, how)
    if name == "port" and how == "noise":
        path.write_text("99999999\n")
    again = Cluster(settings)
    await again.start()
    try:
        assert await names(again.client) == ["a", "b", "c"]
    finally:
        await again.stop()


async def test_a_token_file_that_is_no_text_is_named(settings: ClusterSettings) -> None:
    await filled(settings)
    (settings.data_dir / "pki" / "tokens.csv").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DataDirectoryError, match=r"tokens\.csv is not text.*move it away"):
        await Cluster(settings).start()
    assert Cluster(settings).directory.holder() is None


# -- as people meet it: `danlu up`, kill -9, a damaged write-ahead log


def test_a_damaged_log_is_told_and_the_server_runs(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console")
    log = danlu.data / "store.db-wal"
    # What the start wrote has gone into the database; what follows is in the log alone.
    danlu.wait("a checkpoint", lambda: log.stat().st_size == 0)
    acknowledged: list[int] = []
    sizes: list[int] = []  # of the log: what was written after the tenth is to go
    while not sizes or log.stat().st_size < sizes[-1]:  # put into the database before the kill
        if sizes:
            danlu.up()
        sizes.clear()
        api = Api(danlu.kubeconfig)
        while len(sizes) < 30:
            status, answer = api.request("POST", CONFIG_MAPS, {"metadata": {"name": f"w{len(acknowledged):02}"}})
            assert status == 201
            acknowledged.append(int(answer["metadata"]["resourceVersion"]))
            sizes.append(log.stat().st_size)
            if sizes != sorted(sizes):  # put into the database meanwhile, and begun anew
                sizes.clear()
        danlu.kill()
    os.truncate(log, sizes[10])
    danlu.up()
    api = Api(danlu.kubeconfig)
    _, listed = api.request("GET", CONFIG_MAPS)
    there = {item["metadata"]["name"] for item in listed["items"]}
    gone = [f"w{number:02}" for number in range(len(acknowledged)) if f"w{number:02}" not in there]
    said = danlu.command("status").stdout
    assert gone, "the cut was behind the last write"
    assert "acknowledged writes lost" in said
    (loss,) = Quarantine(danlu.data / "quarantine").findings()
    assert set(gone) <= {one["name"] for one in loss.lost}
    assert loss.reason in danlu.command("repair", "show", loss.id).stdout
    assert "AcknowledgedWritesLost" in danlu.kubectl("get", "events", "-n", "kube-system")
    status, answer = api.request("POST", CONFIG_MAPS, {"metadata": {"name": "after"}})
    assert status == 201
    assert int(answer["metadata"]["resourceVersion"]) > max(acknowledged)
    query = f"?watch=1&resourceVersion={acknowledged[-1]}&timeoutSeconds=1"
    status, answer = api.request("GET", CONFIG_MAPS + query)
    assert (answer["object"] if status == 200 else answer)["code"] == 410, "a watch from before lists again"
    danlu.down()


def test_repair_puts_the_last_good_version_back(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console")
    danlu.kubectl("create", "configmap", "c", "--from-literal=said=first")
    danlu.kubectl("patch", "configmap", "c", "-p", '{"data":{"said":"second"}}')
    uid = danlu.kubectl("get", "configmap", "c", "-o", "jsonpath={.metadata.uid}")
    danlu.down()
    database = sqlite3.connect(danlu.data / "store.db")
    database.execute("UPDATE log SET object = x'00' WHERE revision = (SELECT max(revision) FROM log WHERE name = 'c')")
    database.commit()
    database.close()
    danlu.up()
    assert "1 damaged object in quarantine" in danlu.command("status").stdout
    assert "damaged in the store" in danlu.fails("get", "configmap", "c")
    (line,) = [line for line in danlu.command("repair").stdout.splitlines() if "configmaps default/c" in line]
    finding = line.split()[0]
    assert "said: first" in danlu.command("repair", "show", finding).stdout
    assert "would put" in danlu.command("repair", "restore", finding).stdout
    refused = danlu.command("repair", "restore", finding, "--yes", check=False)
    assert refused.returncode == 1
    assert "danlu down --keep-pods" in refused.stderr
    danlu.down()
    danlu.command("repair", "restore", finding, "--yes")
    danlu.up()
    assert danlu.kubectl("get", "configmap", "c", "-o", "jsonpath={.data.said} {.metadata.uid}") == f"first {uid}"
    assert "damage" not in danlu.command("status").stdout
    danlu.down()


def test_all_that_the_system_made_is_damaged_at_once_and_made_again(make_danlu: Callable[..., Danlu]) -> None:
    """Namespaces, roles, definitions, the node, its lease: nothing of it keeps a start from being one."""
    danlu = make_danlu("--no-console")
    danlu.kubectl("create", "configmap", "mine", "--from-literal=a=b")
    danlu.down()
    database = sqlite3.connect(danlu.data / "store.db")
    done = database.execute("UPDATE log SET object = x'00' WHERE resource != 'configmaps'")
    assert done.rowcount > 80
    database.commit()
    database.close()
    danlu.up()
    assert danlu.kubectl("get", "configmap", "mine", "-o", "jsonpath={.data.a}") == "b"
    danlu.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s")
    assert "pytorchjobs.kubeflow.org" in danlu.kubectl("get", "crds")
    danlu.kubectl("get", "leases", "-n", "kube-node-lease")
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox", "command": ["true"]}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    danlu.wait("the service account", lambda: danlu.kubectl("get", "serviceaccount", "default", check=False))
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/p", "--timeout=50s")
    danlu.down()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_random_damage_to_every_file_is_no_silent_loss(tmp_path: Path) -> None:
    """A few of the two hundred that `scripts/torture damage` tries."""
    outcomes = campaign(tmp_path, 12, 4711, print)
    assert sum(outcomes.values()) == 12
