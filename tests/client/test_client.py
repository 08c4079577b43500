"""What goes over the wire for each verb, and what comes back as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from danlu import errors
from danlu.client import Client, TransportResponse
from danlu.client.transport import Query, asks_for_a_stream
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, DEPLOYMENT, NODE


class Recorder:
    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.content_types: list[str] = []

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        self.asked.append((method, path, dict(query), orjson.loads(body) if body else None))
        self.content_types.append(headers["content-type"])
        status, answer = self.answers.pop(0) if self.answers else (200, {})
        return TransportResponse(status, {}, answer if isinstance(answer, bytes) else orjson.dumps(answer))

    async def close(self) -> None: ...


async def test_paths_of_namespaced_and_cluster_objects() -> None:
    wire = Recorder()
    client = Client(wire)
    await client.get(DEPLOYMENT, "web", "prod")
    await client.get(NODE, "n1", "ignored")
    await client.update_status(DEPLOYMENT, {"metadata": {"name": "web", "namespace": "prod"}})
    assert [asked[:2] for asked in wire.asked] == [
        ("GET", "/apis/apps/v1/namespaces/prod/deployments/web"),
        ("GET", "/api/v1/nodes/n1"),
        ("PUT", "/apis/apps/v1/namespaces/prod/deployments/web/status"),
    ]


async def test_a_status_goes_without_what_the_server_would_not_look_at() -> None:
    wire = Recorder()
    meta = {"name": "web", "namespace": "prod", "labels": {"a": "b"}, "managedFields": [{}]}
    obj = {"metadata": meta, "spec": {"replicas": 2}, "status": {"replicas": 1}}
    await Client(wire).update_status(DEPLOYMENT, obj)
    body = wire.asked[0][3]
    assert body["metadata"] == {"name": "web", "namespace": "prod", "labels": {"a": "b"}}
    assert body["status"] == {"replicas": 1}
    assert "spec" not in body
    assert obj["spec"] == {"replicas": 2}


async def test_a_list_follows_its_pages_and_fills_in_kinds() -> None:
    first = {"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
    second = {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "b"}}]}
    wire = Recorder((200, first), (200, second))
    found = await Client(wire).list(CONFIG_MAP, "default", labels="a=b", limit=1)
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert {item["kind"] for item in found.items} == {"ConfigMap"}
    assert wire.asked[1][2] == {"labelSelector": "a=b", "limit": "1", "continue": "more"}


async def test_patches_say_their_type_and_manager() -> None:
    wire = Recorder()
    client = Client(wire, manager="me")
    await client.patch(CONFIG_MAP, "a", "default", {"data": {}}, type="apply", force=True)
    await client.patch(CONFIG_MAP, "a", "default", [], type="json", subresource="status")
    assert wire.content_types == ["application/apply-patch+yaml", "application/json-patch+json"]
    assert wire.asked[0][2] == {"fieldValidation": "Ignore", "fieldManager": "me", "force": "true"}
    assert wire.asked[1][1].endswith("/configmaps/a/status")


async def test_a_delete_carries_its_conditions() -> None:
    wire = Recorder()
    await Client(wire).delete(CONFIG_MAP, "a", "default", grace=0, propagation="Foreground", uid="u")
    options = wire.asked[0][3]
    assert options["gracePeriodSeconds"] == 0
    assert options["propagationPolicy"] == "Foreground"
    assert options["preconditions"] == {"uid": "u"}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, {"kind": "Status", "reason": "NotFound", "message": "gone"}, errors.NotFound),
        (409, {"kind": "Status", "reason": "Conflict", "message": "again"}, errors.Conflict),
        (409, {"kind": "Status", "reason": "AlreadyExists", "message": "there"}, errors.AlreadyExists),
        (503, b"<html>a proxy's page</html>", errors.ServiceUnavailable),
        (401, b"", errors.Unauthorized),
    ],
)
async def test_refusals_are_exceptions(status: int, body: Any, expected: type[errors.ApiError]) -> None:
    with pytest.raises(expected):
        await Client(Recorder((status, body))).get(CONFIG_MAP, "a", "default")


async def test_an_observer_is_told_of_writes_only() -> None:
    made: Object = {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", "uid": "u"}}
    wire = Recorder((201, made), (200, made), (200, {"kind": "Status", "details": {"uid": "u"}}))
    told: list[tuple[Kind, str, bool]] = []
    client = Client(wire).observed_by(lambda kind, obj, deleted: told.append((kind, obj["metadata"]["uid"], deleted)))
    await client.create(CONFIG_MAP, made)
    await client.get(CONFIG_MAP, "a", "default")
    await client.delete(CONFIG_MAP, "a", "default")
    assert told == [(CONFIG_MAP, "u", False), (CONFIG_MAP, "u", True)]


def test_which_queries_ask_for_a_stream() -> None:
    assert asks_for_a_stream([("watch", "true")])
    assert asks_for_a_stream([("follow", "1")])
    assert not asks_for_a_stream([("limit", "1"), ("watch", "false")])
