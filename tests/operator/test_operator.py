"""`danlu operator` against an API server that has no controllers and no nodes of its own."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from danlu import errors
from danlu.client import config, informer
from danlu.client.client import Client
from danlu.client.transport import Query, Transport, TransportResponse
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.kinds import registry
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT, LEASE, NAMESPACE, POD
from danlu.operator import supervision
from danlu.operator.run import LEASE as LEASE_NAME
from danlu.operator.run import Operator, OperatorSettings

WAIT_S = 30.0
KINDS = tuple(kind for kind in registry.REGISTRY if kind.kind.kind in ("PyTorchJob", "TFJob"))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "LOOK_AGAIN_S", 0.1)


def settings(cluster: Cluster, **more: Any) -> OperatorSettings:
    found = config.load(cluster.directory.kubeconfig)
    return OperatorSettings(**{"config": found, "kinds": KINDS, "lease_duration_s": 2.0, **more})


@asynccontextmanager
async def running(wanted: OperatorSettings) -> AsyncIterator[Operator]:
    operator, stop = Operator(wanted), asyncio.Event()
    task = asyncio.create_task(operator.run(stop))
    try:
        yield operator
    finally:
        stop.set()
        await asyncio.wait_for(task, WAIT_S)


async def until(what: str, check: Callable[[], Any]) -> None:
    async def look() -> None:
        while True:
            found = check()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.02)

    try:
        await asyncio.wait_for(look(), WAIT_S)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}") from None


def job(name: str, namespace: str = "default") -> Object:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
    roles = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    meta = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": meta,
        "spec": {"pytorchReplicaSpecs": roles},
    }


async def pods(client: Client, namespace: str = "default") -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in (await client.list(POD, namespace)).items}


async def has_pods(client: Client, *names: str, namespace: str = "default") -> bool:
    return set(names) <= set(await pods(client, namespace))


async def leader(client: Client) -> str:
    found = (await client.list(LEASE, "default")).items
    return next((one["spec"].get("holderIdentity") or "" for one in found if one["metadata"]["name"] == LEASE_NAME), "")


async def test_a_missing_definition_is_named_and_its_kind_taken_in_when_it_comes(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await registry.install(cluster.client, [kind for kind in KINDS if kind.kind.kind == "TFJob"])
    async with running(settings(cluster)) as operator:
        await until("TFJob", lambda: operator.supervision and operator.supervision.controllers["TFJob"])
        assert "pytorchjobs.kubeflow.org is not served here" in caplog.text
        assert "`danlu install --crds-only` adds it" in caplog.text
        assert operator._readiness().status == 200
        await registry.install(cluster.client, KINDS)
        await cluster.client.create(PYTORCHJOB, job("late"))
        await until("its pods", lambda: has_pods(cluster.client, "late-master-0", "late-worker-0", "late-worker-1"))


class WithoutPods:
    """A server that lets nobody read pods until `allowed`."""

    def __init__(self, inner: Transport) -> None:
        self.inner, self.allowed = inner, False
        self.close = inner.close

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        if path != "/api/v1/pods" or self.allowed:
            return await self.inner.request(method, path, query, headers, body)
        said = errors.Forbidden('pods is forbidden: User "operator" cannot list resource "pods" in API group ""')
        return TransportResponse(403, {}, json.dumps(said.status()).encode())


async def test_a_job_says_which_right_its_operator_lacks_until_it_has_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "WATCH_S", (1, 1))  # a right is looked at when a watch begins
    client = cluster.client
    await registry.install(client, KINDS)
    await client.create(PYTORCHJOB, job("early"))

    async def told() -> Object:
        status = (await client.get(PYTORCHJOB, "early", "default")).get("status") or {}
        return conditions.get(status.get("conditions"), "Blocked") or {}

    async with running(settings(cluster, elect=False)) as operator:
        server = WithoutPods(operator.access._transport)
        operator.access._transport = server
        await until("the job to say it", told)
        found = await told()
        assert found["reason"] == "MissingRight"
        assert 'cannot list resource "pods"' in found["message"]
        assert "`danlu install`" in found["message"]

        async def warned() -> bool:
            warnings = [one for one in (await client.list(EVENT, "default")).items if one["reason"] == "MissingRight"]
            return [one["message"] for one in warnings] == [found["message"]]

        await until("an event that says it, too", warned)
        server.allowed = True
        await until("its pods", lambda: has_pods(client, "early-master-0", "early-worker-1"))

        async def free() -> bool:
            return not await told()

        await until("the condition to go", free)
        server.allowed = False
        await until("a job that runs to say it", told)
        assert (await told())["message"] == found["message"]
        server.allowed = True
        await until("the condition to go without a new start", free)


async def test_a_gang_engine_that_is_not_there_is_named(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    await registry.install(cluster.client, KINDS)
    async with running(settings(cluster, platform=PlatformSettings(gang="volcano"))) as operator:
        await until("a look", lambda: operator.supervision and operator.supervision.looked)
        assert "podgroups.scheduling.volcano.sh is not served here" in caplog.text
        assert "--gang (now: volcano)" in caplog.text


async def test_one_leads_and_another_takes_over_with_nothing_doubled(cluster: Cluster) -> None:
    client = cluster.client
    await registry.install(client, KINDS)
    async with running(settings(cluster)) as second_or_first:
        await until("a leader", lambda: second_or_first.supervision)
        async with running(settings(cluster)) as standby:
            await client.create(PYTORCHJOB, job("a"))
            await until("pods", lambda: has_pods(client, "a-master-0", "a-worker-0", "a-worker-1"))
            before = await pods(client)
            assert standby.supervision is None
            assert standby._readiness().text == "ok: another replica leads\n"
            # Dies without a word: nothing is given back, nothing renewed.
            assert second_or_first.election is not None
            second_or_first.election._try = _never  # type: ignore[method-assign]
            second_or_first.election._release = _nothing  # type: ignore[method-assign]
            await until("the other to lead", lambda: standby.supervision)
            assert await leader(client) == standby.identity
            await client.create(PYTORCHJOB, job("b"))
            await until("pods of b", lambda: has_pods(client, "b-master-0", "b-worker-0", "b-worker-1"))
            after = await pods(client)
            assert {name: after[name] for name in before} == before
            assert len(after) == 6
    assert await leader(client) == "", "a lease is given back at the end"


async def _never() -> None:
    return None


async def _nothing() -> None:
    return None


async def test_only_the_named_namespaces_are_looked_after(cluster: Cluster) -> None:
    client = cluster.client
    await registry.install(client, KINDS)
    for name in ("team", "others"):
        await client.create(NAMESPACE, {"metadata": {"name": name}})
        await client.create(PYTORCHJOB, job("a", name))
    async with running(settings(cluster, namespaces=("default", "team"))) as operator:
        await until("pods", lambda: has_pods(client, "a-master-0", "a-worker-1", namespace="team"))
        assert operator.supervision is not None
        assert len(operator.supervision.controllers["PyTorchJob"]) == 2
    assert await pods(client, "others") == {}


async def test_metrics_tell_counts_latency_and_depth_by_kind(cluster: Cluster) -> None:
    await registry.install(cluster.client, KINDS)
    await cluster.client.create(PYTORCHJOB, job("a"))
    async with running(settings(cluster)) as operator:
        await until("pods", lambda: has_pods(cluster.client, "a-worker-1"))
        await until(
            "it to be counted",
            lambda: 'danlu_reconcile_total{kind="PyTorchJob",result="done"} 0' not in operator._metrics().text,
        )
        text = operator._metrics().text
    for line in (
        "danlu_leader 1",
        'danlu_reconcile_errors_total{kind="PyTorchJob"} 0',
        'danlu_queue_depth{kind="TFJob"} 0',
        'danlu_reconcile_seconds_bucket{kind="PyTorchJob",le="+Inf"} ',
        'danlu_api_requests_total{code="201",verb="create"} ',
        "process_resident_memory_bytes ",
    ):
        assert line in text
    assert "danlu_leader 0" in operator._metrics().text


async def test_a_server_that_is_not_there_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    nowhere = OperatorSettings(config=config.Config(server="http://127.0.0.1:1"), kinds=KINDS, lease_duration_s=2.0)
    async with running(nowhere) as operator:
        await until("several attempts", lambda: operator.access.requests["get", "none"] >= 2)
        assert operator._readiness().status == 503
    told = [record for record in caplog.records if "cannot be reached" in record.getMessage()]
    assert len(told) == 1
    assert "trying again" in told[0].getMessage()
