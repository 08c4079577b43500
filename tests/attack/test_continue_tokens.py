"""A `continue` token goes on with the list that it was given for, and with no other."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from tests.attack.conftest import NewPerson, Person

from danlu.client.client import Client
from danlu.embedded.apiserver import pagination
from danlu.embedded.cluster import Cluster
from danlu.embedded.storage import Stored
from danlu.meta.wellknown import CONFIG_MAP, NAMESPACE, SECRET

A, B = "/api/v1/namespaces/a", "/api/v1/namespaces/b"
INVALID = "invalid continue token: continue key is not valid"


async def fill(client: Client, namespace: str, count: int = 4) -> None:
    if all(found["metadata"]["name"] != namespace for found in (await client.list(NAMESPACE)).items):
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for number in range(count):
        meta = {"name": f"{namespace}-{number}", "namespace": namespace, "labels": {"half": str(number % 2)}}
        await client.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"k": "v"}})
        await client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def unpacked(token: str) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return body


def packed(body: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(body)).rstrip(b"=").decode()


def names(answer: Any) -> list[str]:
    return [found["metadata"]["name"] for found in answer["items"]]


async def first_page(person: Person, path: str, query: str = "") -> str:
    status, answer = await person.request("GET", f"{path}?limit=1{query}")
    assert status == 200, answer
    token: str = answer["metadata"]["continue"]
    return token


async def test_the_honest_way_works(client: Client, new_person: NewPerson) -> None:
    person = await new_person()
    await fill(client, "a")
    token, seen = "", []
    for _ in range(10):
        _, page = await person.request("GET", f"{A}/secrets?limit=1&continue={token}&labelSelector=half%3D0")
        seen += names(page)
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert seen == ["a-0", "a-2"]


async def test_a_forged_token_reads_nothing_of_others(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    """The finding: the admin reads all secrets in pages; a token with the same revision gave them to anybody."""
    mallory = await new_person()
    await fill(client, "a")
    await fill(client, "b")
    everything = (await client.request("GET", "/api/v1/secrets", [("limit", "1")])).body
    assert isinstance(everything, bytes)
    theirs = orjson.loads(everything)["metadata"]["continue"]
    body = unpacked(theirs)
    await fill(client, "c", 1)  # so that the two lists are of different revisions
    own = unpacked(await first_page(mallory, f"{A}/secrets"))
    forged = [
        theirs,
        packed({**own, "rv": body["rv"], "start": body["start"]}),
        packed({**own, "rv": body["rv"]}),
        packed({**own, "start": "b/b-0\0"}),
        packed({**own, "start": "a/\0"}),
        packed({**own, "rv": -1}),
        packed({**own, "mac": ""}),
        packed({**own, "mac": None}),
        packed({**own, "mac": 0}),
        packed({**own, "mac": own.get("mac", "")[:-4] + "AAA="}),
        packed({key: value for key, value in own.items() if key != "mac"}),
        packed({**body, "mac": own.get("mac", "")}),
    ]
    for token in forged:
        status, answer = await mallory.request("GET", f"{A}/secrets?limit=500&continue={token}")
        assert status == 400, answer
        assert answer["message"].startswith(f"{INVALID}: ")


async def test_a_token_is_bound_to_list_and_caller(client: Client, new_person: NewPerson) -> None:
    mallory, eve = await new_person(), await new_person("eve")
    await fill(client, "a")
    token = await first_page(mallory, f"{A}/secrets")
    selected = await first_page(mallory, f"{A}/secrets", "&labelSelector=half%3D0")
    by_field = await first_page(mallory, f"{A}/secrets", "&fieldSelector=type%3DOpaque")
    for person, path in (
        (eve, f"{A}/secrets?continue={token}"),
        (mallory, f"{A}/configmaps?continue={token}"),
        (mallory, f"{A}/secrets?continue={token}&labelSelector=half%3D0"),
        (mallory, f"{A}/secrets?continue={token}&fieldSelector=type%3DOpaque"),
        (mallory, f"{A}/secrets?continue={selected}"),
        (mallory, f"{A}/secrets?continue={selected}&labelSelector=half%3D1"),
        (mallory, f"{A}/secrets?continue={by_field}"),
        (mallory, f"{A}/secrets?continue={by_field}&labelSelector=half%3D0"),
    ):
        status, answer = await person.request("GET", path)
        assert status == 400, (path, answer)
        assert answer["message"].startswith(f"{INVALID}: ")
    assert (await mallory.request("GET", f"{B}/secrets?continue={token}"))[0] == 403
    assert names((await mallory.request("GET", f"{A}/secrets?continue={token}"))[1]) == ["a-1", "a-2", "a-3"]


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("!!", "illegal base64 data at input byte 0"),
        ("abc!", "illegal base64 data at input byte 3"),
        (packed({"v": "meta.k8s.io/v1", "rv": 0, "start": "x"}), "incorrect encoded start resourceVersion (version"),
        (packed({"v": "meta.k8s.io/v1", "rv": "9", "start": "x"}), "incorrect encoded start resourceVersion (version"),
        (packed({"v": "what", "rv": 1, "start": "x"}), "server does not recognize this encoded version what"),
        (packed({"v": "meta.k8s.io/v1", "rv": 1, "start": ""}), "encoded start key empty (version meta.k8s.io/v1)"),
        (packed({"v": "meta.k8s.io/v1", "rv": 1, "start": "../x"}), '"../x"'),
        (packed([]), ""),
        (packed("x"), ""),
        ("abc", ""),
        ("a", ""),
    ],
)
async def test_bad_tokens_in_kubernetes_words(client: Client, new_person: NewPerson, token: str, words: str) -> None:
    mallory = await new_person()
    status, answer = await mallory.request("GET", f"{A}/secrets?continue={token}")
    assert status == 400
    assert answer["message"].startswith(f"{INVALID}: {words}" if words else INVALID)


async def test_a_late_token_goes_on_in_its_own_list_only(
    client: Client, new_person: NewPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    mallory, eve = await new_person(), await new_person("eve")
    await fill(client, "a")
    await fill(client, "b")
    token = await first_page(mallory, f"{A}/secrets", "&labelSelector=half%3D0")
    monkeypatch.setattr(pagination, "SNAPSHOT_SECONDS", -1.0)
    path = f"{A}/secrets?labelSelector=half%3D0"
    status, answer = await mallory.request("GET", f"{path}&continue={token}")
    assert (status, answer["reason"]) == (410, "Expired")
    another = answer["metadata"]["continue"]
    assert names((await mallory.request("GET", f"{path}&continue={another}"))[1]) == ["a-2"]
    for person, asked in ((eve, path), (mallory, f"{A}/secrets?labelSelector="), (mallory, f"{A}/configmaps?limit=1")):
        status, answer = await person.request("GET", f"{asked}&continue={another}")
        assert status == 400, answer
    status, answer = await mallory.request("GET", f"{path}&continue={another}&resourceVersion=1")
    assert (status, answer["message"]) == (400, "specifying resource version is not allowed when using continue")


async def test_a_token_outlives_a_restart(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    """Another process has no such snapshot, but knows its own word: 410 and how to go on, not 400."""
    mallory = await new_person()
    await fill(client, "a")
    token = await first_page(mallory, f"{A}/secrets")
    key = pagination.read_key(cluster.certificates.directory / "continue.secret")
    assert (cluster.certificates.directory / "continue.secret").stat().st_mode & 0o777 == 0o600
    cluster.server.page_tokens, cluster.server.snapshots = pagination.ContinueTokens(key), pagination.Snapshots()
    assert (await mallory.request("GET", f"{A}/secrets?continue={token}"))[0] == 410


# -- what is kept is bounded


def some(count: int, size: int = 1000) -> list[Stored]:
    return [Stored("secrets", "a", f"s-{number:06}", 1, b"x" * size) for number in range(count)]


def asked(user: str, namespace: str = "a") -> pagination.PageRequest:
    return pagination.PageRequest(user, "", "secrets", namespace, "", "")


def test_nobody_pushes_out_the_lists_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MOST_BYTES", 100_000)
    monkeypatch.setattr(pagination, "MOST_BYTES_OF_ONE", 60_000)
    snapshots = pagination.Snapshots()
    snapshots.keep(asked("alice"), 1, some(20))
    for revision in range(2, 200):
        snapshots.keep(asked("mallory"), revision, some(10))
    assert snapshots.find(asked("alice"), 1) is not None
    assert snapshots.find(asked("mallory"), 199) is not None
    assert snapshots.find(asked("mallory"), 2) is None
    assert snapshots.find(asked("mallory"), 1) is None
    kept = [revision for revision in range(200) if snapshots.find(asked("mallory"), revision) is not None]
    assert sum(len(stored.raw) for revision in kept for stored in some(10)) < 60_000


def test_many_callers_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MOST_BYTES", 100_000)
    snapshots = pagination.Snapshots()
    for number in range(50):
        snapshots.keep(asked(f"user-{number}"), 1, some(5))
    kept = [number for number in range(50) if snapshots.find(asked(f"user-{number}"), 1) is not None]
    assert 1 < len(kept) <= 20
    snapshots.keep(asked("large"), 1, some(30))
    assert snapshots.find(asked("large"), 1) is None  # it is the largest: it goes first


def test_one_caller_has_so_many_lists() -> None:
    snapshots = pagination.Snapshots()
    for revision in range(1, 200):
        snapshots.keep(asked("mallory"), revision, some(1, 10))
    kept = [revision for revision in range(200) if snapshots.find(asked("mallory"), revision) is not None]
    assert kept == list(range(200 - pagination.MOST_OF_ONE, 200))


def test_a_list_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagination, "MOST_BYTES_OF_ONE", 50_000)
    snapshots = pagination.Snapshots()
    snapshots.keep(asked("mallory"), 1, some(100))
    assert snapshots.find(asked("mallory"), 1) is None
