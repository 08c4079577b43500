"""The controllers that keep the cluster in order, on a real API server in this process, without nodes."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers import nodes, system
from danlu.embedded.controllers.serviceaccounts import Authority
from danlu.embedded.scheduler.scheduler import Scheduler
from danlu.meta import conditions
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    ENDPOINT_SLICE,
    ENDPOINTS,
    EVENT,
    JOB,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    STORAGE_CLASS,
)
from danlu.runtime.manager import Manager

Found = TypeVar("Found")


@pytest.fixture
async def manager(cluster: Cluster, client: Client, tmp_path: Path) -> AsyncIterator[Manager]:
    manager = Manager(client)
    manager.add_all(system.factories(tmp_path / "volumes", Authority("CERT"), lambda *_: "SIGNED"))
    await manager.start()
    await until(lambda: client.get(SERVICE_ACCOUNT, "default", "default"))
    yield manager
    await manager.stop()


async def until(ask: Callable[[], Awaitable[Found]], holds: Callable[[Found], Any] = lambda _: True) -> Found:
    found: Found | None = None
    try:
        async with asyncio.timeout(10):
            while True:
                try:
                    found = await ask()
                    if holds(found):
                        return found
                except errors.NotFound:
                    pass
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"still {found}") from None


async def gone(client: Client, kind: Kind, name: str, namespace: str | None = "default") -> None:
    async def is_gone() -> bool:
        try:
            await client.get(kind, name, namespace)
        except errors.NotFound:
            return True
        return False

    await until(is_gone, bool)


def pod(name: str, **more: Any) -> Object:
    labels = more.pop("labels", {})
    container = {"name": "main", "image": "x", **more.pop("container", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [container], **more},
    }


def config_map(name: str, *owners: tuple[Object, Kind, bool]) -> Object:
    references = [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }
        for owner, kind, blocks in owners
    ]
    return {"metadata": {"name": name, "namespace": "default", "ownerReferences": references}}


async def run_pod(client: Client, made: Object, ip: str, *, ready: bool = True, node: str = "n1") -> Object:
    made["spec"]["nodeName"] = node
    created = await client.create(POD, made)
    status = {
        **created.get("status", {}),
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return await client.update_status(POD, {**created, "status": status})


# -- namespaces and service accounts


async def test_a_new_namespace_gets_its_account_and_the_ca(manager: Manager, client: Client) -> None:
    await client.create(NAMESPACE, {"metadata": {"name": "team"}})
    await until(lambda: client.get(SERVICE_ACCOUNT, "default", "team"))
    published = await until(lambda: client.get(CONFIG_MAP, "kube-root-ca.crt", "team"))
    assert published["data"] == {"ca.crt": "CERT"}
    await client.delete(SERVICE_ACCOUNT, "default", "team")
    await until(lambda: client.get(SERVICE_ACCOUNT, "default", "team"))


async def test_a_deleted_namespace_is_emptied(manager: Manager, client: Client) -> None:
    await client.create(NAMESPACE, {"metadata": {"name": "team"}})
    await until(lambda: client.get(SERVICE_ACCOUNT, "default", "team"))
    held = {"metadata": {"name": "held", "namespace": "team", "finalizers": ["example.com/hold"]}}
    await client.create(CONFIG_MAP, held)
    await client.delete(NAMESPACE, "team")
    found = await until(
        lambda: client.get(NAMESPACE, "team"),
        lambda ns: conditions.is_true(ns["status"].get("conditions"), "NamespaceFinalizersRemaining"),
    )
    remaining = conditions.get(found["status"]["conditions"], "NamespaceContentRemaining") or {}
    assert remaining["message"] == "Some resources are remaining: configmaps. has 1 resource instances"
    await client.patch(CONFIG_MAP, "held", "team", {"metadata": {"finalizers": None}})
    await gone(client, NAMESPACE, "team", None)


async def test_a_token_secret_is_filled_and_goes_with_its_account(manager: Manager, client: Client) -> None:
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "robot", "namespace": "default"}})
    secret = {
        "metadata": {
            "name": "robot-token",
            "namespace": "default",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
        },
        "type": "kubernetes.io/service-account-token",
    }
    await client.create(SECRET, secret)
    filled = await until(
        lambda: client.get(SECRET, "robot-token", "default"), lambda found: (found.get("data") or {}).get("token")
    )
    assert base64.b64decode(filled["data"]["namespace"]) == b"default"
    await client.delete(SERVICE_ACCOUNT, "robot", "default")
    await gone(client, SECRET, "robot-token")


# -- garbage


async def test_dependents_follow_their_owner(manager: Manager, client: Client) -> None:
    owner = await client.create(CONFIG_MAP, config_map("owner"))
    child = await client.create(CONFIG_MAP, config_map("child", (owner, CONFIG_MAP, False)))
    await client.create(CONFIG_MAP, config_map("grandchild", (child, CONFIG_MAP, False)))
    other = await client.create(CONFIG_MAP, config_map("other"))
    await client.create(CONFIG_MAP, config_map("shared", (owner, CONFIG_MAP, False), (other, CONFIG_MAP, False)))
    await client.delete(CONFIG_MAP, "owner", "default", propagation="Background")
    await gone(client, CONFIG_MAP, "child")
    await gone(client, CONFIG_MAP, "grandchild")
    shared = await until(
        lambda: client.get(CONFIG_MAP, "shared", "default"),
        lambda found: len(found["metadata"]["ownerReferences"]) == 1,
    )
    assert shared["metadata"]["ownerReferences"][0]["name"] == "other"


async def test_foreground_waits_for_blocking_dependents(manager: Manager, client: Client) -> None:
    owner = await client.create(CONFIG_MAP, config_map("owner"))
    held = config_map("child", (owner, CONFIG_MAP, True))
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await client.create(CONFIG_MAP, held)
    await client.delete(CONFIG_MAP, "owner", "default", propagation="Foreground")
    await until(
        lambda: client.get(CONFIG_MAP, "child", "default"),
        lambda found: found["metadata"].get("deletionTimestamp"),
    )
    assert "foregroundDeletion" in (await client.get(CONFIG_MAP, "owner", "default"))["metadata"]["finalizers"]
    await client.patch(CONFIG_MAP, "child", "default", {"metadata": {"finalizers": None}})
    await gone(client, CONFIG_MAP, "child")
    await gone(client, CONFIG_MAP, "owner")


async def test_owners_in_a_circle_do_not_wait_for_each_other(manager: Manager, client: Client) -> None:
    first = await client.create(CONFIG_MAP, config_map("first"))
    second = await client.create(CONFIG_MAP, config_map("second", (first, CONFIG_MAP, True)))
    third = await client.create(CONFIG_MAP, config_map("third", (second, CONFIG_MAP, True)))
    closing = config_map("first", (third, CONFIG_MAP, True))["metadata"]["ownerReferences"]
    await client.patch(CONFIG_MAP, "first", "default", {"metadata": {"ownerReferences": closing}})
    await client.delete(CONFIG_MAP, "first", "default", propagation="Foreground")
    for name in ("first", "second", "third"):
        await gone(client, CONFIG_MAP, name)


async def test_orphans_lose_the_reference_and_stay(manager: Manager, client: Client) -> None:
    owner = await client.create(CONFIG_MAP, config_map("owner"))
    await client.create(CONFIG_MAP, config_map("child", (owner, CONFIG_MAP, True)))
    await client.delete(CONFIG_MAP, "owner", "default", propagation="Orphan")
    await gone(client, CONFIG_MAP, "owner")
    child = await client.get(CONFIG_MAP, "child", "default")
    assert not child["metadata"].get("ownerReferences")


async def test_an_owner_that_never_was(manager: Manager, client: Client) -> None:
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-0000-0000-000000000000"}}
    await client.create(CONFIG_MAP, config_map("child", (ghost, CONFIG_MAP, False)))
    await gone(client, CONFIG_MAP, "child")


async def test_custom_resources_own_too(manager: Manager, client: Client) -> None:
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    ]
    names = {"kind": "Toy", "plural": "toys", "singular": "toy", "listKind": "ToyList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    await client.create(CUSTOM_RESOURCE_DEFINITION, {"metadata": {"name": "toys.example.com"}, "spec": spec})
    toys = Kind("example.com", "v1", "Toy", "toys")
    body = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "ball", "namespace": "default"}}
    toy = await until(lambda: client.create(toys, body))
    await client.create(CONFIG_MAP, config_map("child", (toy, toys, False)))
    await asyncio.sleep(0.2)
    assert await client.get(CONFIG_MAP, "child", "default")
    await client.delete(toys, "ball", "default")
    await gone(client, CONFIG_MAP, "child")


async def test_an_owner_in_another_namespace_is_none(manager: Manager, client: Client) -> None:
    await client.create(NAMESPACE, {"metadata": {"name": "team"}})
    elsewhere = config_map("owner")
    elsewhere["metadata"]["namespace"] = "team"
    owner = await client.create(CONFIG_MAP, elsewhere)
    await asyncio.sleep(0.1)
    await client.create(CONFIG_MAP, config_map("child", (owner, CONFIG_MAP, False)))
    await gone(client, CONFIG_MAP, "child")
    events = await until(lambda: client.list(EVENT, "default"), lambda listed: listed.items)
    assert events.items[0]["reason"] == "OwnerRefInvalidNamespace"
    assert events.items[0]["message"].endswith('does not exist in namespace "default"')


# -- endpoints


def service(name: str, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"tier": "front"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http", "name": "http"}], **spec},
    }


WEB = {"ports": [{"name": "http", "containerPort": 8080}]}


async def test_endpoints_follow_pods(manager: Manager, client: Client) -> None:
    await client.create(SERVICE, service("web"))
    await until(lambda: client.get(ENDPOINTS, "web", "default"), lambda found: not found.get("subsets"))
    await run_pod(client, pod("a", labels={"app": "web"}, container=WEB), "10.0.0.1")
    await run_pod(client, pod("b", labels={"app": "web"}, container=WEB), "10.0.0.2", ready=False)
    await run_pod(client, pod("c", labels={"app": "other"}, container=WEB), "10.0.0.3")
    found = await until(
        lambda: client.get(ENDPOINTS, "web", "default"),
        lambda found: found.get("subsets") and found["subsets"][0].get("notReadyAddresses"),
    )
    subset = found["subsets"][0]
    assert [address["ip"] for address in subset["addresses"]] == ["10.0.0.1"]
    assert subset["addresses"][0]["targetRef"]["name"] == "a"
    assert [address["ip"] for address in subset["notReadyAddresses"]] == ["10.0.0.2"]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    listed = await until(
        lambda: client.list(ENDPOINT_SLICE, "default", labels="kubernetes.io/service-name=web"),
        lambda found: len(found.items) == 1 and len(found.items[0]["endpoints"]) == 2,
    )
    kept = listed.items[0]
    assert kept["metadata"]["labels"]["tier"] == "front"
    assert [entry["conditions"]["ready"] for entry in kept["endpoints"]] == [True, False]
    await client.delete(POD, "a", "default", grace=0)
    await until(lambda: client.get(ENDPOINTS, "web", "default"), lambda found: "addresses" not in found["subsets"][0])
    await client.delete(SERVICE, "web", "default")
    await gone(client, ENDPOINTS, "web")
    await until(
        lambda: client.list(ENDPOINT_SLICE, "default", labels="kubernetes.io/service-name=web"),
        lambda found: not found.items,
    )


async def test_headless_services_name_their_pods(manager: Manager, client: Client) -> None:
    headless = service("ring", clusterIP="None", publishNotReadyAddresses=True, ports=[{"port": 29500}])
    await client.create(SERVICE, headless)
    member = pod("ring-0", labels={"app": "web"}, hostname="ring-0", subdomain="ring")
    await run_pod(client, member, "10.0.0.1", ready=False)
    found = await until(lambda: client.get(ENDPOINTS, "ring", "default"), lambda found: found.get("subsets"))
    assert found["subsets"][0]["addresses"][0]["hostname"] == "ring-0"
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


async def test_endpoints_by_hand_are_mirrored(manager: Manager, client: Client) -> None:
    await client.create(SERVICE, service("db", selector=None, ports=[{"port": 5432}]))
    subsets = [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 5432}]}]
    await client.create(ENDPOINTS, {"metadata": {"name": "db", "namespace": "default"}, "subsets": subsets})
    listed = await until(
        lambda: client.list(ENDPOINT_SLICE, "default", labels="kubernetes.io/service-name=db"),
        lambda found: found.items,
    )
    assert listed.items[0]["endpoints"][0]["addresses"] == ["192.0.2.1"]


# -- volumes


def claim(name: str, storage_class: str | None = "local", size: str = "1Gi", **spec: Any) -> Object:
    body: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    if storage_class is not None:
        body["storageClassName"] = storage_class
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}


def is_bound(found: Object) -> bool:
    return bool((found.get("status") or {}).get("phase") == "Bound")


async def bound(client: Client, name: str) -> Object:
    return await until(lambda: client.get(PERSISTENT_VOLUME_CLAIM, name, "default"), is_bound)


async def test_a_claim_of_any_class_is_served(manager: Manager, client: Client, tmp_path: Path) -> None:
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data", "fast-ssd"))
    found = await bound(client, "data")
    assert found["status"]["capacity"] == {"storage": "1Gi"}
    name = f"pvc-{found['metadata']['uid']}"
    assert found["spec"]["volumeName"] == name
    volume = await until(lambda: client.get(PERSISTENT_VOLUME, name), is_bound)
    folder = Path(volume["spec"]["hostPath"]["path"])
    assert os.path.isdir(folder)  # noqa: ASYNC240
    assert folder == tmp_path / "volumes" / f"default-data-{found['metadata']['uid']}"
    events = await until(lambda: client.list(EVENT, "default"), lambda listed: len(listed.items) >= 2)
    messages = {event["reason"]: event["message"] for event in events.items}
    assert messages["ProvisioningSucceeded"] == f"Successfully provisioned volume {name} using danlu.io/local"
    assert messages["ServedLocally"].startswith('StorageClass "fast-ssd" does not exist here')
    await client.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
    await gone(client, PERSISTENT_VOLUME_CLAIM, "data")
    await gone(client, PERSISTENT_VOLUME, name, None)
    assert not os.path.exists(folder)  # noqa: ASYNC240


async def test_a_claim_grows(manager: Manager, client: Client) -> None:
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data"))
    found = await bound(client, "data")
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    await client.patch(PERSISTENT_VOLUME_CLAIM, "data", "default", bigger)
    await until(
        lambda: client.get(PERSISTENT_VOLUME_CLAIM, "data", "default"),
        lambda claim: claim["status"]["capacity"]["storage"] == "2Gi",
    )
    volume = await client.get(PERSISTENT_VOLUME, found["spec"]["volumeName"])
    assert volume["spec"]["capacity"]["storage"] == "2Gi"


async def test_a_claim_in_use_is_protected(manager: Manager, client: Client) -> None:
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data"))
    await bound(client, "data")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    await run_pod(client, pod("user", volumes=volumes), "10.0.0.1")
    await client.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
    await asyncio.sleep(0.1)
    assert (await client.get(PERSISTENT_VOLUME_CLAIM, "data", "default"))["metadata"]["deletionTimestamp"]
    await client.delete(POD, "user", "default", grace=0)
    await gone(client, PERSISTENT_VOLUME_CLAIM, "data")


async def test_a_volume_that_somebody_made(manager: Manager, client: Client) -> None:
    for name, size in (("large", "10Gi"), ("fitting", "2Gi"), ("small", "1Mi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/srv/{name}"},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        await client.create(PERSISTENT_VOLUME, {"metadata": {"name": name}, "spec": spec})
        await until(lambda name=name: client.get(PERSISTENT_VOLUME, name), _phase("Available"))  # type: ignore[misc]
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data", ""))
    assert (await bound(client, "data"))["spec"]["volumeName"] == "fitting"
    await until(lambda: client.get(PERSISTENT_VOLUME, "fitting"), _phase("Bound"))
    await client.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
    await until(lambda: client.get(PERSISTENT_VOLUME, "fitting"), _phase("Released"))


def _phase(phase: str) -> Callable[[Object], bool]:
    return lambda found: (found.get("status") or {}).get("phase") == phase


async def test_wait_for_first_consumer(manager: Manager, client: Client) -> None:
    lazy = {"metadata": {"name": "lazy"}, "provisioner": "danlu.io/local", "volumeBindingMode": "WaitForFirstConsumer"}
    await client.create(STORAGE_CLASS, lazy)
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data", "lazy"))
    events = await until(lambda: client.list(EVENT, "default"), lambda listed: listed.items)
    assert events.items[0]["message"] == "waiting for first consumer to be created before binding"
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    await client.patch(PERSISTENT_VOLUME_CLAIM, "data", "default", selected)
    await bound(client, "data")


async def test_the_scheduler_binds_the_claim_before_the_pod(manager: Manager, client: Client) -> None:
    scheduler = Scheduler(manager, client)
    await scheduler.start()
    lazy = {"metadata": {"name": "lazy"}, "provisioner": "danlu.io/local", "volumeBindingMode": "WaitForFirstConsumer"}
    await client.create(STORAGE_CLASS, lazy)
    await client.create(PERSISTENT_VOLUME_CLAIM, claim("data", "lazy"))
    node = await client.create(NODE, {"metadata": {"name": "n1"}})
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    await client.update_status(NODE, {**node, "status": {**node.get("status", {}), "allocatable": allocatable}})
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x", "lazy")["spec"]}}},
    ]
    await client.create(POD, pod("user", volumes=volumes))
    await until(lambda: client.get(POD, "user", "default"), lambda found: found["spec"].get("nodeName") == "n1")
    for name in ("data", "user-scratch"):
        found = await client.get(PERSISTENT_VOLUME_CLAIM, name, "default")
        assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
        assert is_bound(found)
    await client.delete(POD, "user", "default", grace=0)
    await gone(client, PERSISTENT_VOLUME_CLAIM, "user-scratch")
    await scheduler.stop()


# -- quotas


async def test_quota_usage(manager: Manager, client: Client) -> None:
    hard = {"requests.cpu": "4", "pods": "10", "requests.nvidia.com/gpu": "2", "count/configmaps": "9", "services": "3"}
    await client.create(RESOURCE_QUOTA, {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
    resources = {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    await until(lambda: client.get(RESOURCE_QUOTA, "q", "default"), lambda found: found.get("status", {}).get("used"))
    await client.create(POD, pod("a", container={"resources": resources}))
    found = await until(
        lambda: client.get(RESOURCE_QUOTA, "q", "default"),
        lambda found: found["status"]["used"]["pods"] == "1",
    )
    assert found["status"]["hard"] == hard
    assert found["status"]["used"] == {
        "requests.cpu": "500m",
        "pods": "1",
        "requests.nvidia.com/gpu": "1",
        "count/configmaps": "1",
        "services": "1",
    }
    await client.delete(POD, "a", "default", grace=0)
    await until(
        lambda: client.get(RESOURCE_QUOTA, "q", "default"),
        lambda found: found["status"]["used"]["requests.cpu"] == "0",
    )


# -- nodes, jobs, roles


async def test_taints_follow_conditions_and_pods_are_moved(manager: Manager, client: Client) -> None:
    made = await client.create(NODE, {"metadata": {"name": "n1"}})
    stays = pod("stays", tolerations=[{"operator": "Exists"}])
    await run_pod(client, stays, "10.0.0.1")
    briefly = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    await run_pod(client, pod("goes", tolerations=[{**briefly, "tolerationSeconds": 0}]), "10.0.0.2")
    status = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "True"}]}
    await client.update_status(NODE, {**await client.get(NODE, "n1"), "status": status})
    found = await until(lambda: client.get(NODE, "n1"), lambda node: len(node["spec"].get("taints") or ()) == 3)
    assert {(taint["key"].rpartition("/")[2], taint["effect"]) for taint in found["spec"]["taints"]} == {
        ("not-ready", "NoSchedule"),
        ("not-ready", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
    }
    await until(lambda: client.get(POD, "goes", "default"), lambda found: found["metadata"].get("deletionTimestamp"))
    assert not (await client.get(POD, "stays", "default"))["metadata"].get("deletionTimestamp")
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    await client.update_status(NODE, {**await client.get(NODE, "n1"), "status": status})
    await until(lambda: client.get(NODE, "n1"), lambda node: not node["spec"].get("taints"))
    assert made


async def test_a_silent_node_is_unreachable(manager: Manager, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await client.create(NODE, {"metadata": {"name": "n1"}})
    status = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}
    await client.update_status(NODE, {**made, "status": status})
    await run_pod(client, pod("here"), "10.0.0.1")
    await asyncio.sleep(0.1)
    monkeypatch.setattr(nodes, "GRACE_S", -1.0)
    await client.patch(NODE, "n1", None, {"metadata": {"labels": {"look": "now"}}})
    found = await until(lambda: client.get(NODE, "n1"), lambda node: len(node["spec"].get("taints") or ()) == 2)
    ready = conditions.get(found["status"]["conditions"], "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert ready["message"] == "Kubelet stopped posting node status."
    assert {taint["key"] for taint in found["spec"]["taints"]} == {"node.kubernetes.io/unreachable"}
    here = await until(
        lambda: client.get(POD, "here", "default"),
        lambda found: not conditions.is_true(found["status"]["conditions"], "Ready"),
    )
    assert not here["metadata"].get("deletionTimestamp")  # it tolerates that for five minutes


async def test_finished_jobs_expire(manager: Manager, client: Client) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    body = {
        "metadata": {"name": "done", "namespace": "default"},
        "spec": {"template": template, "ttlSecondsAfterFinished": 0},
    }
    job = await client.create(JOB, body)
    now = job["metadata"]["creationTimestamp"]
    told = [{"type": type, "status": "True", "lastTransitionTime": now} for type in ("SuccessCriteriaMet", "Complete")]
    status = {"conditions": told, "startTime": now, "completionTime": now, "succeeded": 1}
    await client.update_status(JOB, {**job, "status": status})
    await gone(client, JOB, "done")


async def test_roles_are_aggregated(manager: Manager, client: Client) -> None:
    selectors = [{"matchLabels": {"add-to-all": "true"}}]
    whole = {"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": []}
    await client.create(CLUSTER_ROLE, whole)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    part = {"metadata": {"name": "part", "labels": {"add-to-all": "true"}}, "rules": rules}
    await client.create(CLUSTER_ROLE, part)
    await until(lambda: client.get(CLUSTER_ROLE, "all"), lambda role: role.get("rules") == rules)
