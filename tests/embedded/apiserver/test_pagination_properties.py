"""Lists in pages: all pages together are the whole list of one moment, and a token is good for one list alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from danlu.client.client import Client
from danlu.embedded.apiserver.pagination import ContinueTokens, PageRequest
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest
from danlu.meta.wellknown import CONFIG_MAP, NAMESPACE

PROPERTIES = settings(
    derandomize=True, deadline=None, database=None, max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
texts = st.text(alphabet='ab/\0"\\', max_size=4)
askers = st.builds(PageRequest, texts, texts, texts, texts, texts, texts)
KEY = b"k" * 32


def place(namespace: str, name: str) -> Stored:
    return Stored("secrets", namespace, name, 1, b"{}")


names = st.sampled_from(["a", "b", "x.y", "a-b"])


# -- tokens


@PROPERTIES
@given(askers, st.integers(1, 2**62), names, names)
def test_a_token_says_what_was_written_into_it(asked: PageRequest, revision: int, namespace: str, name: str) -> None:
    tokens = ContinueTokens(KEY)
    assert tokens.read(asked, tokens.write(asked, revision, place(namespace, name))) == (revision, (namespace, name))


@PROPERTIES
@given(askers, askers, st.integers(1, 2**62), names)
def test_a_token_is_good_for_whoever_asked_for_what_they_asked(
    asked: PageRequest, other: PageRequest, revision: int, name: str
) -> None:
    token = ContinueTokens(KEY).write(asked, revision, place("a", name))
    if asked != other:
        with pytest.raises(BadRequest, match="continue key is not valid"):
            ContinueTokens(KEY).read(other, token)
    with pytest.raises(BadRequest, match="continue key is not valid"):
        ContinueTokens(b"another key" * 3).read(asked, token)


@PROPERTIES
@given(askers, st.integers(1, 2**40), names, st.data())
def test_every_change_of_a_token_is_refused_or_changes_nothing(
    asked: PageRequest, revision: int, name: str, data: st.DataObject
) -> None:
    """Base64 has spare bits at its end: another spelling of the same token says the same."""
    tokens = ContinueTokens(KEY)
    token = tokens.write(asked, revision, place("a", name))
    way = data.draw(st.sampled_from(["letter", "cut", "add", "twice"]))
    at = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_=."))
    changed = {
        "letter": token[:at] + letter + token[at + 1 :], "cut": token[:at], "add": token[:at] + letter + token[at:],
        "twice": token + token,
    }[way]  # fmt: skip
    with contextlib.suppress(BadRequest):
        assert tokens.read(asked, changed) == (revision, ("a", name))


# -- lists


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.AbstractEventLoop, Cluster]]:
    """One server for all examples, in a loop of its own: hypothesis calls plain functions."""
    folder: Path = tmp_path_factory.mktemp("paging")
    loop = asyncio.new_event_loop()
    cluster = Cluster(ClusterSettings(data_dir=folder / "danlu", port=0, run_controllers=False, run_node=False))
    loop.run_until_complete(cluster.start())
    loop.run_until_complete(fill(cluster.client))
    yield loop, cluster
    loop.run_until_complete(cluster.stop())
    loop.close()


async def fill(client: Client) -> None:
    for namespace in ("p", "q", "p-q"):
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for number in range(7):
            meta = {"name": f"m{number}", "namespace": namespace, "labels": {"n": str(number % 3)}}
            await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


async def page(client: Client, path: str, **query: Any) -> tuple[list[str], str, str]:
    """(objects as namespace/name@version, the token, the list's version)"""
    pairs = [(name, str(value)) for name, value in query.items() if value]
    answer = await client.transport.request("GET", path, pairs, {}, b"")
    assert answer.status == 200, answer.body
    assert isinstance(answer.body, bytes)
    found = orjson.loads(answer.body)
    shown = [
        f"{one['metadata']['namespace']}/{one['metadata']['name']}@{one['metadata']['resourceVersion']}"
        for one in found["items"]
    ]
    return shown, found["metadata"].get("continue", ""), found["metadata"]["resourceVersion"]


@PROPERTIES
@given(
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    namespace=st.sampled_from(["", "p", "q", "p-q"]),
    selector=st.sampled_from(["", "n=1", "n!=2", "n in (0,1)"]),
    meanwhile=st.lists(st.sampled_from(["change", "add", "remove"]), max_size=3),
)
def test_all_pages_together_are_the_list_of_the_first_moment(
    api: tuple[asyncio.AbstractEventLoop, Cluster],
    limits: list[int],
    namespace: str,
    selector: str,
    meanwhile: list[str],
) -> None:
    loop, cluster = api
    client = cluster.client
    path = f"/api/v1/namespaces/{namespace}/configmaps" if namespace else "/api/v1/configmaps"

    async def write(what: str) -> None:
        """Somebody else goes on working while the pages are read."""
        meta = {"name": "busy", "namespace": "p", "labels": {"n": "1"}}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        if what == "remove":
            await client.delete(CONFIG_MAP, "m6", "q")
            await client.create(CONFIG_MAP, {**obj, "metadata": {**meta, "name": "m6", "namespace": "q"}})
        else:
            await client.patch(CONFIG_MAP, "busy", "p", {**obj, "data": {"x": what}}, type="apply", manager="x")

    async def walk() -> None:
        whole, _, moment = await page(client, path, labelSelector=selector)
        read: list[str] = []
        token = ""
        turn = 0
        while turn == 0 or token:
            shown, token, version = await page(
                client, path, labelSelector=selector, limit=limits[turn % len(limits)], **{"continue": token}
            )
            assert version == moment
            read += shown
            if turn < len(meanwhile):
                await write(meanwhile[turn])
            turn += 1
            assert turn < 100
        assert read == whole

    loop.run_until_complete(walk())
