"""A kind that needs a ConfigMap, a Secret and a launcher fits: it is declared, and no shared code knows of it."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.kinds import registry
from danlu.kinds._training import lifecycle
from danlu.kinds._training.observation import Observed
from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, POD, SECRET
from danlu.runtime import Manager

FOLDER = Path(__file__).parent.parent / "browser/new_kind/launcherjob"


def part(name: str) -> Any:
    """A module of the folder as if it lay in danlu.kinds, where the registry would find it in all other tests, too."""
    package = f"danlu.kinds.{FOLDER.name}"
    if package not in sys.modules:
        place = [str(FOLDER)]
        spec = importlib.util.spec_from_file_location(package, FOLDER / "__init__.py", submodule_search_locations=place)
        assert spec is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{package}.{name}")


KIND = part("kind").KIND
JOB, companions = part("reconcile").JOB, part("reconcile").companions
LAUNCHERJOB = KIND.kind

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_job(**policy: Any) -> Object:
    template = {"spec": {"containers": [{"name": "main", "image": "mpi"}]}}
    roles = {"Launcher": {"template": template}, "Worker": {"replicas": 2, "template": template}}
    return {
        "apiVersion": LAUNCHERJOB.api_version,
        "kind": LAUNCHERJOB.kind,
        "metadata": {"name": "sum", "namespace": "default", "uid": "u"},
        "spec": {"launcherReplicaSpecs": roles, "runPolicy": policy},
    }


def pod(name: str, phase: str) -> Object:
    meta = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}, "status": {"phase": phase}}


def looked(obj: Object, *pods: Object, others: tuple[Object, ...] = ()) -> dict[str, list[str]]:
    """What is applied, made and deleted, by name."""
    observed = Observed(pods=pods, others=others, seed=lambda: b"random")
    outcome = lifecycle.reconcile(JOB, obj, observed, NOW)
    obj["status"] = outcome.status or obj.get("status")

    def names(found: list[Object]) -> list[str]:
        return [f"{one['kind']} {one['metadata']['name']}" for one in found]

    made = [creation.obj for creation in outcome.create]
    return {"apply": names(outcome.apply), "create": names(made), "delete": names(outcome.delete)}


def secret() -> Object:
    keys: Object
    [keys] = [one.obj for one in companions(JOB.job(a_job()), Observed()) if one.once]
    return keys


def config() -> Object:
    return {"kind": "ConfigMap", "metadata": {"name": "sum-hosts", "namespace": "default", "uid": "c"}}


def test_keys_and_hosts_come_before_the_workers_and_the_launcher_after_them() -> None:
    job = a_job()
    assert looked(job) == {
        "apply": ["ConfigMap sum-hosts"],
        "create": ["Secret sum-ssh", "Pod sum-worker-0", "Pod sum-worker-1"],
        "delete": [],
    }
    there = (config(), secret())
    one_waits = looked(job, pod("sum-worker-0", "Running"), pod("sum-worker-1", "Pending"), others=there)
    assert one_waits["create"] == [], "keys are made once"
    both = looked(job, pod("sum-worker-0", "Running"), pod("sum-worker-1", "Running"), others=there)
    assert both["create"] == ["Pod sum-launcher-0"]


def test_the_end_takes_away_what_is_not_to_outlive_the_job() -> None:
    job = a_job(cleanPodPolicy="Running")
    workers = pod("sum-worker-0", "Running"), pod("sum-worker-1", "Running")
    ended = looked(job, *workers, pod("sum-launcher-0", "Succeeded"), others=(config(), secret()))
    assert ended["delete"] == ["Pod sum-worker-0", "Pod sum-worker-1", "ConfigMap sum-hosts"]
    assert job["status"]["conditions"][-1]["type"] == "Succeeded"
    again = looked(job, pod("sum-launcher-0", "Succeeded"), others=(secret(),))
    assert again == {"apply": [], "create": [], "delete": []}


# -- on a server


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    cluster = Cluster(ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False))
    await cluster.start()
    await registry.install(cluster.client, [KIND])
    manager = Manager(cluster.client)
    registry.add_controllers(manager, PlatformSettings(), [KIND])
    await manager.start()
    yield cluster.client
    await manager.stop()
    await cluster.stop()


async def names(client: Client, kind: Kind) -> list[str]:
    return sorted(one["metadata"]["name"] for one in (await client.list(kind, "default")).items)


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(500):
        if await look():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"waited in vain: {look!r}")


async def runs(client: Client, name: str, phase: str = "Running") -> None:
    await client.patch(POD, name, "default", {"status": {"phase": phase}}, subresource="status")


async def test_its_life_on_a_server(client: Client) -> None:
    job = a_job()
    del job["metadata"]["uid"]
    await client.create(LAUNCHERJOB, job, "default")

    async def pods_are(*wanted: str) -> None:
        async def look() -> bool:
            return await names(client, POD) == sorted(wanted)

        await until(look)

    await pods_are("sum-worker-0", "sum-worker-1")
    made = await client.get(SECRET, "sum-ssh", "default")
    assert (await client.get(CONFIG_MAP, "sum-hosts", "default"))["data"]["hostfile"].count("slots=1") == 2
    await runs(client, "sum-worker-0")
    await runs(client, "sum-worker-1")
    await pods_are("sum-launcher-0", "sum-worker-0", "sum-worker-1")
    await runs(client, "sum-launcher-0", "Succeeded")

    async def is_over() -> bool:
        conditions = ((await client.get(LAUNCHERJOB, "sum", "default")).get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Succeeded" for one in conditions) and "sum-hosts" not in await names(
            client, CONFIG_MAP
        )

    await until(is_over)
    kept = await client.get(SECRET, "sum-ssh", "default")
    assert kept["data"] == made["data"]
