"""Events are asked for only where pods stay silent."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from danlu import errors
from danlu.client.client import ObjectList
from danlu.kinds._training.controller import mount_events
from danlu.kinds._training.controller.mount_events import MountEvents
from danlu.meta.kind import Object
from danlu.runtime.controller import Controller
from danlu.runtime.reconcile import Request

JOB = Request("team", "job")


def pod(name: str, **status: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": {"nodeName": "node"},
        "status": {"phase": "Pending", **status},
    }  # fmt: skip


def event(name: str, message: str) -> Object:
    return {"involvedObject": {"uid": f"uid-{name}"}, "reason": "FailedMount", "message": message}


class Cluster:
    """An informer of pods and the server behind it."""

    def __init__(self) -> None:
        self.pods: dict[str, Object] = {}
        self.events: list[Object] = []
        self.asked: list[str] = []
        self.refuses = 0

    def get(self, _namespace: str, name: str) -> Object | None:
        return self.pods.get(name)

    @property
    def client(self) -> Any:
        return SimpleNamespace(list=self._list)

    async def _list(self, _kind: Any, namespace: str, *, fields: str, limit: int) -> ObjectList:
        self.asked.append(f"{namespace} {fields}")
        if self.refuses:
            self.refuses -= 1
            raise errors.Forbidden("not you")
        return ObjectList(self.events)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount_events, "FIRST_S", 0.02)


def watched(cluster: Cluster, *names: str) -> tuple[MountEvents, Controller]:
    async def nothing(_request: Request) -> None:
        return None

    controller = Controller("test", nothing)
    cluster.pods = {name: pod(name) for name in names}
    return MountEvents(cast(Any, cluster), controller), controller


async def until(what: Any) -> None:
    async with asyncio.timeout(5):
        while not what():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_silent_pod_is_asked_about_and_its_job_hears_of_it_once() -> None:
    cluster = Cluster()
    found, controller = watched(cluster, "a", "b")
    cluster.events = [event("a", "no secret"), event("another", "no disk")]
    assert found.about(cluster.pods.values(), JOB) == []
    assert await controller.queue.get() == JOB
    controller.queue.done(JOB)
    assert [one["message"] for one in found.about(cluster.pods.values(), JOB)] == ["no secret"]
    asked = len(cluster.asked)
    assert cluster.asked[0] == "team reason=FailedMount", "one question for both pods"
    await until(lambda: len(cluster.asked) > asked + 1)
    assert not len(controller.queue), "the same again is no news"
    cluster.events = [event("a", "still no secret")]
    assert await controller.queue.get() == JOB
    await controller.stop()


async def test_nothing_is_asked_about_pods_that_soon_run_or_say_why() -> None:
    cluster = Cluster()
    found, controller = watched(cluster, "a", "b")
    found.about(cluster.pods.values(), JOB)
    waiting = [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    cluster.pods = {"a": pod("a", phase="Running"), "b": pod("b", containerStatuses=waiting)}
    await until(lambda: not controller._background)
    assert cluster.asked == []
    assert found.about(cluster.pods.values(), JOB) == []
    assert not controller._background


async def test_a_refusal_is_not_the_end() -> None:
    cluster = Cluster()
    found, controller = watched(cluster, "a")
    cluster.refuses = 2
    cluster.events = [event("a", "no secret")]
    found.about(cluster.pods.values(), JOB)
    assert await controller.queue.get() == JOB
    assert len(cluster.asked) == 3
    await controller.stop()
