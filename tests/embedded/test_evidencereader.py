"""What `danlu why` finds around an object, on a server: pods through what stands between, and their events."""

from __future__ import annotations

from danlu.client.client import Client
from danlu.client.evidencereader import gather
from danlu.diagnose import explain
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT, POD, RESOURCE_QUOTA, STATEFUL_SET

TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}


async def test_pods_are_found_through_what_stands_between(client: Client) -> None:
    body: Object = {"metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}}}
    body["spec"] |= {"template": TEMPLATE}
    owner = await client.create(STATEFUL_SET, body, "default")
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": owner["metadata"]["uid"]}
    spec = {**TEMPLATE["spec"], "schedulerName": "nobody"}
    own = {"metadata": {"name": "s-0", "ownerReferences": [reference]}, "spec": spec}
    pod = await client.create(POD, own, "default")
    await client.create(POD, {"metadata": {"name": "other"}, "spec": spec}, "default")
    told = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "s-0", "namespace": "default", "uid": pod["metadata"]["uid"]},
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'MountVolume.SetUp failed for volume "v" : secret "hidden" not found',
    }
    await client.create(EVENT, told, "default")
    hard = {"metadata": {"name": "team"}, "spec": {"hard": {"pods": "9"}}}
    await client.create(RESOURCE_QUOTA, hard, "default")
    evidence = await gather(client, owner)
    assert [found["metadata"]["name"] for found in evidence.quotas] == ["team"]
    assert [found["metadata"]["name"] for found in evidence.pods] == ["s-0"]
    assert [found["metadata"]["name"] for found in evidence.events] == ["e"]
    [cause] = explain({**owner, "kind": "StatefulSet"}, evidence)
    assert (cause.code, cause.params["name"], cause.about) == ("DL-CONFIG", "hidden", "Pod/s-0")
