"""Pods that are changed while they run (debugging containers, new sizes), and nodes that others have changed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.node.test_podworker import NODE_NAME, agent, gone, in_phase, pod, reach, ready, run, state

from danlu.client.client import Client
from danlu.embedded.node.agent import Agent
from danlu.embedded.node.pods import inplaceresize
from danlu.meta.kind import Object
from danlu.meta.wellknown import NODE, POD

__all__ = ["agent"]


async def test_labels_and_resources_that_others_gave_the_node_count_at_once(agent: Agent, client: Client) -> None:
    await client.patch(NODE, NODE_NAME, None, {"metadata": {"labels": {"disk": "fast"}}})
    await run(
        client, pod("labelled", "true", restartPolicy="Never", nodeSelector={"disk": "fast"}), in_phase("Succeeded")
    )
    more = {"status": {"capacity": {"example.com/thing": "2"}, "allocatable": {"example.com/thing": "2"}}}
    await client.patch(NODE, NODE_NAME, None, more, subresource="status")
    things = {"resources": {"limits": {"example.com/thing": "2"}, "requests": {"example.com/thing": "2"}}}
    await run(client, pod("asking", "true", restartPolicy="Never", container=things), in_phase("Succeeded"))


def debugged(found: Object) -> Any:
    return (found["status"].get("ephemeralContainerStatuses") or [{}])[0].get("state", {})


async def test_a_debugging_container_runs_once_beside_the_others(agent: Agent, client: Client) -> None:
    await run(client, pod("p", "sleep", "1000"), ready)
    added = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox", "command": ["sh", "-c", "exit 3"]}]}}
    await client.patch(POD, "p", "default", added, subresource="ephemeralcontainers")
    found = await reach(client, "p", lambda one: "terminated" in debugged(one))
    assert debugged(found)["terminated"]["exitCode"] == 3
    assert found["status"]["phase"] == "Running"
    assert ready(found)
    await client.delete(POD, "p", "default")
    await gone(client, "p")


async def test_the_end_of_the_work_does_not_wait_for_who_debugs(agent: Agent, client: Client) -> None:
    await run(client, pod("p", "sh", "-c", "sleep 1", restartPolicy="Never"), ready)
    added = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "busybox", "command": ["sleep", "1000"]}]}}
    await client.patch(POD, "p", "default", added, subresource="ephemeralcontainers")
    await reach(client, "p", in_phase("Succeeded"))


async def test_a_new_size_is_taken_without_a_restart_unless_asked_for(agent: Agent, client: Client) -> None:
    sizes = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    made = pod("p", "sleep", "1000", container={"resources": sizes, "resizePolicy": policy}, restartPolicy="Always")
    before = await run(client, made, ready)

    async def resize(**requests: str) -> None:
        sizes["requests"].update(requests)
        body = {"spec": {"containers": [{"name": "c", "resources": sizes}]}}
        await client.patch(POD, "p", "default", body, subresource="resize")

    await resize(memory="32Mi")
    now = await reach(
        client, "p", lambda one: one["status"]["containerStatuses"][0]["resources"]["requests"]["memory"] == "32Mi"
    )
    assert state(now)["running"] == state(before)["running"]
    await resize(cpu="200m")
    await reach(client, "p", lambda one: one["status"]["containerStatuses"][0]["restartCount"] == 1 and ready(one))
    await client.delete(POD, "p", "default")
    await gone(client, "p")


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, set()),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, {"cpu"}),
        ({}, {"limits": {"memory": "1Gi"}}, {"memory"}),
    ],
)
def test_what_changed(before: Object, now: Object, changed: set[str]) -> None:
    assert inplaceresize.changed({"resources": before}, {"resources": now}) == changed
