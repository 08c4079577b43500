"""The way to the API: who goes first, and what is told when it says no."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from danlu.client.client import Client
from danlu.client.informer import ADDED, DELETED, MODIFIED
from danlu.client.transport import Query, TransportResponse
from danlu.kinds import registry
from danlu.kinds.platform import PlatformSettings
from danlu.meta.kind import Object
from danlu.operator import access
from danlu.operator.access import Access, AccessGate, Limit, resource_of
from danlu.operator.health import HealthAnswer, _answer, _encode
from danlu.operator.logs import JsonFormatter, Sparingly
from danlu.operator.supervision import Supervision

OK = HealthAnswer(200, "ok\n")


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/a/pods/p/status", "pods/status"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/j/status", "pytorchjobs.kubeflow.org/status"),
        ("/apis/storage.k8s.io/v1/storageclasses", "storageclasses.storage.k8s.io"),
        ("/apis/apps/v1", "/apis/apps/v1"),
    ],
)
def test_what_a_path_is_about(path: str, resource: str) -> None:
    assert resource_of(path) == resource


async def test_background_requests_wait_for_a_calm_moment_and_not_longer_than_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access, "CALM_S", 30.0)
    gate = AccessGate(places=4)
    gate.pods_are_starting()
    went: list[str] = []

    async def one(name: str, max_wait_s: float) -> None:
        await gate.enter(max_wait_s)
        went.append(name)
        gate.leave(max_wait_s)

    background = asyncio.create_task(one("soon", 0.05))
    another = asyncio.create_task(one("late", 60.0))
    await one("now", 0.0)
    assert went == ["now"]
    await asyncio.wait_for(background, 10)
    assert went == ["now", "soon"]
    assert not another.done()
    gate._calm_at = 0.0
    await one("now again", 0.0)  # whoever leaves lets the next one look
    await asyncio.wait_for(another, 10)
    assert gate._free == 4


async def test_background_requests_go_as_soon_as_the_last_pod_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CALM_S", 30.0)
    gate = AccessGate()
    gate.pods_are_starting()
    background = asyncio.create_task(gate.enter(60.0))
    gate.pod_began(1)
    await asyncio.sleep(0.01)
    assert not background.done()
    assert not gate.is_calm()
    gate.pod_began(0)
    await asyncio.wait_for(background, 10)
    assert gate.is_calm()


async def test_pods_that_have_yet_to_run_are_counted() -> None:
    told: list[int] = []
    client = Client(Refusing(""))
    watched = Supervision(client, registry.REGISTRY, PlatformSettings(), pod_began=told.append)

    def pod(uid: str, phase: str, kind: str = "PyTorchJob") -> Object:
        owner = {"apiVersion": "kubeflow.org/v1", "kind": kind, "name": "job", "uid": "1", "controller": True}
        return {"metadata": {"uid": uid, "name": uid, "ownerReferences": [owner]}, "status": {"phase": phase}}

    for uid in "abc":
        watched._saw_pod(ADDED, pod(uid, "Pending"), None)
    watched._saw_pod(ADDED, pod("else", "Pending", "ReplicaSet"), None)
    watched._saw_pod(MODIFIED, pod("else", "Running", "ReplicaSet"), None)
    watched._saw_pod(MODIFIED, pod("a", "Running"), None)
    watched._saw_pod(MODIFIED, pod("a", "Succeeded"), None)
    watched._saw_pod(DELETED, pod("b", "Pending"), None)
    watched._saw_pod(MODIFIED, pod("c", "Failed"), None)
    assert told == [2, 1, 0]


async def test_one_that_gives_up_takes_no_place_with_it() -> None:
    gate = AccessGate(places=1)
    await gate.enter(0.0)
    waiting = [asyncio.create_task(gate.enter(0.0)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    gate.leave(0.0)
    await asyncio.wait_for(waiting[1], 10)
    gate.leave(0.0)
    assert gate._free == 1


class Refusing:
    def __init__(self, said: str) -> None:
        self.said = said

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        return TransportResponse(403, {}, self.said.encode())

    async def close(self) -> None:
        return None


async def test_a_missing_right_is_named_once_with_what_grants_it(caplog: pytest.LogCaptureFixture) -> None:
    refusing = Refusing('pods is forbidden: User "operator" cannot create resource "pods" in API group ""')
    asked = Access(refusing, "https://server", Limit(0, 1))
    for _ in range(3):
        await asked.request("POST", "/api/v1/namespaces/a/pods", [], {}, b"{}")
    assert [record.getMessage() for record in caplog.records] == [
        "may not create pods: the operator's role lacks it; `danlu install` grants it"
    ]
    assert asked.requests["create", "403"] == 3


async def test_a_spent_quota_is_the_objects_trouble_and_not_the_operators(caplog: pytest.LogCaptureFixture) -> None:
    asked = Access(Refusing('pods "a" is forbidden: exceeded quota: q'), "https://server", Limit(0, 1))
    await asked.request("POST", "/api/v1/namespaces/a/pods", [], {}, b"{}")
    assert not caplog.records


def test_the_same_is_told_sparingly(caplog: pytest.LogCaptureFixture) -> None:
    told = Sparingly(logging.getLogger("test"), every_s=3600)
    for _ in range(3):
        told.warning("a", "a is wrong")
    told.warning("b", "b is wrong")
    assert [record.getMessage() for record in caplog.records] == ["a is wrong", "b is wrong"]
    assert told.forget("a")
    assert not told.forget("a")
    told.warning("a", "a is wrong")
    assert len(caplog.records) == 3


def test_json_lines_have_time_level_and_message() -> None:
    record = logging.LogRecord("danlu.operator", logging.WARNING, "f", 1, "%s is %s", ("a", "b"), None)
    record.controller, record.object = "PyTorchJob", "team/mnist"
    line = JsonFormatter().format(record)
    assert line.endswith('"controller":"PyTorchJob","object":"team/mnist"}')
    assert '"level":"warning"' in line
    assert '"message":"a is b"' in line
    assert line.startswith('{"time":"2')


def test_pages_answer_gets_only() -> None:
    pages = {"/healthz": lambda: OK}
    assert _answer(b"GET /healthz?a=b HTTP/1.1\r\n\r\n", pages).text == "ok\n"
    assert _answer(b"GET /else HTTP/1.1\r\n\r\n", pages).status == 404
    assert _answer(b"POST /healthz HTTP/1.1\r\n\r\n", pages).status == 405
    assert _answer(b"nonsense\r\n\r\n", pages).status == 405
    assert _encode(OK, with_body=False).endswith(b"connection: close\r\n\r\n")


async def test_a_lease_is_renewed_however_many_wait() -> None:
    asked = Access(Refusing(""), "https://server", Limit(0, 1))
    for _ in range(access.PLACES):
        await asked.gate.enter(0.0)
    path = "/apis/coordination.k8s.io/v1/namespaces/a/leases/l"
    answer = await asyncio.wait_for(asked.request("PUT", path, [], {}, b""), 10)
    assert answer.status == 403
