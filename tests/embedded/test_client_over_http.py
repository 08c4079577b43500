"""The same client over TLS, with a kubeconfig as a user has it; and leader election on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from danlu import errors
from danlu.client import Client, Informer
from danlu.client import config as configs
from danlu.client.http import HttpTransport
from danlu.client.leases import LeaderElection, LeaseTimes
from danlu.embedded.cluster import Cluster
from danlu.meta.wellknown import CONFIG_MAP, LEASE


@pytest.fixture
async def remote(cluster: Cluster) -> AsyncIterator[Client]:
    client = Client(HttpTransport(configs.load(cluster.directory.kubeconfig)))
    yield client
    await client.close()


def config_map(name: str, **data: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def test_verbs_and_refusals(remote: Client) -> None:
    made = await remote.create(CONFIG_MAP, config_map("a", k="1"))
    with pytest.raises(errors.AlreadyExists):
        await remote.create(CONFIG_MAP, config_map("a"))
    await remote.patch(CONFIG_MAP, "a", "default", {"data": {"k": "2"}})
    with pytest.raises(errors.Conflict):
        await remote.update(CONFIG_MAP, made)
    assert [item["data"] for item in (await remote.list(CONFIG_MAP, "default", fields="metadata.name=a")).items] == [
        {"k": "2"}
    ]
    await remote.delete(CONFIG_MAP, "a", "default")
    with pytest.raises(errors.NotFound):
        await remote.get(CONFIG_MAP, "a", "default")


async def test_an_informer_over_http(remote: Client) -> None:
    informer = Informer(remote, CONFIG_MAP, "default")
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    informer.start()
    await asyncio.wait_for(informer.synced(), 10)
    informer.add_handler(lambda event, obj, _: told.put_nowait((event, obj["metadata"]["name"])))
    await remote.create(CONFIG_MAP, config_map("a"))
    await remote.delete(CONFIG_MAP, "a", "default")
    heard = []
    while ("DELETED", "a") not in heard:
        heard.append(await asyncio.wait_for(told.get(), 10))
    await informer.stop()
    assert [event for event in heard if event[1] == "a"] == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_server_that_is_not_there_is_said_so() -> None:
    client = Client(HttpTransport(configs.Config(server="https://127.0.0.1:1")))
    with pytest.raises(errors.ServiceUnavailable, match="cannot be reached"):
        await client.get(CONFIG_MAP, "a", "default")
    await client.close()


async def test_one_leads_and_the_next_takes_over(client: Client) -> None:
    events: asyncio.Queue[str] = asyncio.Queue()

    def candidate(name: str) -> asyncio.Task[None]:
        async def work() -> None:
            events.put_nowait(name)
            await asyncio.Event().wait()

        election = LeaderElection(client, "lead", "default", name, LeaseTimes(5, 4, 0.02))
        return asyncio.create_task(election.run(work))

    first = candidate("one")
    assert await asyncio.wait_for(events.get(), 10) == "one"
    second = candidate("two")
    await asyncio.sleep(0.2)
    assert events.empty()
    first.cancel()
    assert await asyncio.wait_for(events.get(), 10) == "two"
    lease = await client.get(LEASE, "lead", "default")
    assert lease["spec"]["holderIdentity"] == "two"
    assert lease["spec"]["leaseTransitions"] >= 1
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
