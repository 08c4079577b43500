"""Poison objects: specs whose numbers ask for more than any machine has. They cost what exists, and can be deleted.

A person with rights in one project writes them all. None may stop the API, fill the memory, or outlive a restart as
something that stops the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tests.house.tree import ROOT

from danlu import errors
from danlu.cli.local import status
from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.settings import ClusterSettings
from danlu.kinds import registry
from danlu.kinds._training.job import MOST_REPLICAS, MOST_TENSORFLOW_REPLICAS
from danlu.meta import objects
from danlu.meta.kind import Kind, Object
from danlu.meta.said import ANNOTATION
from danlu.meta.wellknown import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    JOB,
    NAMESPACE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
)
from danlu.runtime.manager import Manager
from danlu.standalone.embeddedplatform import start_platform

BILLION = 1_000_000_000
LARGEST_INT32, LARGEST_INT64 = 2**31 - 1, 2**63 - 1
WAIT_S = 60.0


@pytest.fixture
def settings(tmp_path: Any) -> ClusterSettings:
    """With controllers and scheduler, and no node: nothing of what is asked for finds a place."""
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_node=False)


async def until(what: str, look: Callable[[], Any]) -> Any:
    """Asks until the answer is true; `look` may be a coroutine function."""
    for _ in range(int(WAIT_S / 0.05)):
        answer = look()
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer:
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {WAIT_S:.0f} s in vain for {what}")


def template(**more: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}], **more}
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


def workload(kind: Kind, name: str = "poison", **spec: Any) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec},
    }


ASKING_FOR_A_BILLION = {
    "statefulset": (STATEFUL_SET, workload(STATEFUL_SET, replicas=BILLION, serviceName="x")),
    "statefulset at once": (
        STATEFUL_SET,
        workload(STATEFUL_SET, replicas=BILLION, serviceName="x", podManagementPolicy="Parallel"),
    ),
    "statefulset from the last ordinal on": (
        STATEFUL_SET,
        workload(STATEFUL_SET, replicas=LARGEST_INT32, serviceName="x", ordinals={"start": LARGEST_INT32 - 1}),
    ),
    "replicaset": (REPLICA_SET, workload(REPLICA_SET, replicas=LARGEST_INT32)),
    "replicationcontroller": (
        REPLICATION_CONTROLLER,
        workload(REPLICATION_CONTROLLER, replicas=BILLION, selector={"app": "x"}),
    ),
    "deployment": (
        DEPLOYMENT,
        workload(
            DEPLOYMENT,
            replicas=BILLION,
            strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": BILLION, "maxUnavailable": "100%"}},
        ),
    ),
    "job": (
        JOB,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "poison", "namespace": "default"},
            "spec": {
                "parallelism": BILLION,
                "completions": LARGEST_INT32,
                "backoffLimit": LARGEST_INT32,
                "activeDeadlineSeconds": LARGEST_INT32,
                "ttlSecondsAfterFinished": LARGEST_INT32,
                "template": template(restartPolicy="Never"),
            },
        },
    ),
    "indexed job": (
        JOB,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "poison", "namespace": "default"},
            "spec": {
                "completionMode": "Indexed",
                "parallelism": 10_000,
                "completions": BILLION,
                "template": template(restartPolicy="Never"),
            },
        },
    ),
}


@pytest.mark.parametrize("poison", ASKING_FOR_A_BILLION)
async def test_a_billion_replicas_cost_what_exists(client: Client, poison: str) -> None:
    kind, obj = ASKING_FOR_A_BILLION[poison]
    await client.create(kind, obj)
    some = await until("the first pod", lambda: _pods(client))
    # The API goes on answering, and what is made stays within bounds, however often the controller looks.
    for _ in range(20):
        await asyncio.sleep(0.1)
        some = await _pods(client)
        assert len(some) <= states.MOST_UNPLACED
    await client.delete(kind, "poison", "default", propagation="Background")
    await until("the poison to be gone", lambda: _is_gone(client, kind))


async def _pods(client: Client) -> list[Object]:
    return (await client.list(POD, "default")).items


async def _is_gone(client: Client, kind: Kind) -> bool:
    try:
        await client.get(kind, "poison", "default")
    except errors.NotFound:
        return True
    return False


async def test_a_grace_period_beyond_all_years_does_not_make_a_pod_undeletable(client: Client) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "poison", "namespace": "default"}}
    spec = {**template()["spec"], "terminationGracePeriodSeconds": LARGEST_INT64, "nodeName": "nowhere"}
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LARGEST_INT64}
    await client.create(POD, {**pod, "spec": {**spec, "tolerations": [toleration]}})
    await client.delete(POD, "poison", "default")
    held = await client.get(POD, "poison", "default")
    assert held["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
    await client.delete(POD, "poison", "default", grace=0)
    assert await _is_gone(client, POD)


@pytest.mark.parametrize("amount", ["9" * 5000, "0." + "0" * 5000 + "1", "1e1000000", "1e301", "9" * 390 + "e300"])
async def test_quantities_that_would_fill_the_memory_are_refused(client: Client, amount: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "poison", "namespace": "default"}}
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"memory": amount}}}
    with pytest.raises((errors.Invalid, errors.BadRequest)):
        await client.create(POD, {**pod, "spec": {"containers": [container]}})


# -- the number of pods


async def test_a_cluster_and_a_namespace_hold_so_many_pods(tmp_path: Any) -> None:
    settings = ClusterSettings(
        data_dir=tmp_path / "small", port=0, run_node=False, max_pods=30, max_pods_per_namespace=20
    )
    cluster = Cluster(settings)
    await cluster.start()
    try:
        client = cluster.client
        await client.create(REPLICA_SET, workload(REPLICA_SET, replicas=BILLION))
        event = await until("the refusal to be told", lambda: _event(client, "FailedCreate"))
        assert "forbidden: exceeded quota: danlu-max-pods-per-namespace, requested: pods=1, used: pods=20" in event
        assert len(await _pods(client)) == 20
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        elsewhere = workload(REPLICA_SET, replicas=BILLION)
        elsewhere["metadata"]["namespace"] = "other"
        await client.create(REPLICA_SET, elsewhere)
        event = await until("the refusal to be told", lambda: _event(client, "FailedCreate", "other"))
        assert "exceeded quota: danlu-max-pods, requested: pods=1, used: pods=30, limited: pods=30" in event
        # Room that was made can be used.
        await client.delete(REPLICA_SET, "poison", "default", propagation="Background")
        await until("the pods to be gone", lambda: _has_no_pods(client))
        await until("the other to have its share", lambda: _has_pods(client, "other", 20))
    finally:
        await cluster.stop()


async def _event(client: Client, reason: str, namespace: str = "default") -> str:
    found = (await client.list(EVENT, namespace)).items
    return next((event["message"] for event in found if event["reason"] == reason), "")


async def _has_no_pods(client: Client) -> bool:
    return not await _pods(client)


async def _has_pods(client: Client, namespace: str, count: int) -> bool:
    return len((await client.list(POD, namespace)).items) == count


# -- our own kinds

KINDS = {one.kind.kind: one for one in registry.REGISTRY}
FOLDER = Path(registry.__file__).parent


@pytest.fixture
async def platform(cluster: Cluster) -> AsyncIterator[Manager]:
    manager = await start_platform(cluster)
    yield manager
    await manager.stop()


def training(kind: str, **replicas: int) -> Object:
    """The kind's own example with other numbers of replicas."""
    obj: Object = yaml.safe_load((FOLDER / kind.lower() / "example.yaml").read_text())
    obj["metadata"] = {"name": "poison", "namespace": "default"}
    for role, count in replicas.items():
        _roles(obj)[role]["replicas"] = count
    return obj


def _roles(obj: Object) -> dict[str, Object]:
    spec = obj["spec"]
    for field in ("pytorchReplicaSpecs", "tfReplicaSpecs"):
        if field in spec:
            return dict(spec[field])
    return {one["type"]: one for one in spec["replicaSpecs"]}


TOO_MANY = [
    ("PyTorchJob", {"Worker": BILLION}, f"should be less than or equal to {MOST_REPLICAS}"),
    ("PyTorchJob", {"Worker": MOST_REPLICAS}, f"together must be less than or equal to {MOST_REPLICAS}"),
    ("TFJob", {"Worker": BILLION}, f"should be less than or equal to {MOST_REPLICAS}"),
    ("TFJob", {"Worker": MOST_TENSORFLOW_REPLICAS + 1}, f"must be less than or equal to {MOST_TENSORFLOW_REPLICAS}"),
    ("PyTorchTrainingJob", {"worker": BILLION}, f"should be less than or equal to {MOST_REPLICAS}"),
    ("TensorFlowTrainingJob", {"worker": BILLION}, f"should be less than or equal to {MOST_REPLICAS}"),
]


@pytest.mark.parametrize(("kind", "replicas", "text"), TOO_MANY)
async def test_training_kinds_refuse_too_many_replicas(
    client: Client, platform: Manager, kind: str, replicas: dict[str, int], text: str
) -> None:
    obj = training(kind, **replicas)
    with pytest.raises(errors.Invalid) as refused:
        await client.create(KINDS[kind].kind, obj)
    assert text in refused.value.message


async def test_a_job_cannot_be_scaled_beyond_its_bound(client: Client, platform: Manager) -> None:
    kind = KINDS["PyTorchJob"].kind
    await client.create(kind, training("PyTorchJob"))
    with pytest.raises(errors.Invalid):
        await client.patch(kind, "poison", "default", {"spec": {"replicas": BILLION}}, subresource="scale")


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob", "PyTorchTrainingJob", "TensorFlowTrainingJob"])
async def test_a_stored_job_that_is_older_than_the_bound_is_set_aside(
    cluster: Cluster, client: Client, settings: ClusterSettings, kind: str
) -> None:
    """As a data directory has it that was written before there was a bound: the next start comes up, and says so."""
    served = KINDS[kind].kind
    manager = await start_platform(cluster)
    made = await client.create(served, {**training(kind), "metadata": {"name": "model", "namespace": "default"}})
    poison = objects.copy(made)
    poison["metadata"] = {**made["metadata"], "name": "poison", "uid": "poison-uid"}
    role = "worker" if "replicaSpecs" in poison["spec"] else "Worker"
    _roles(poison)[role]["replicas"] = BILLION
    await cluster.store.put(served.resource, poison)
    await _is_set_aside(cluster, client, served)
    await manager.stop()
    await cluster.stop()
    again = Cluster(settings)
    await again.start()
    manager = await start_platform(again)
    await _is_set_aside(again, again.client, served)
    await again.client.delete(served, "poison", "default")
    await until("nothing to be set aside any more", lambda: not again.directory.read_set_aside())
    await manager.stop()
    await again.stop()
    await cluster.start()  # for the fixture to stop


async def _is_set_aside(cluster: Cluster, client: Client, kind: Kind) -> None:
    def named() -> bool:
        return any(entry.name == "poison" for entry in cluster.directory.read_set_aside())

    await until("the job to be set aside", named)
    [line] = status.facts(cluster.directory, None)["set aside"]
    assert line.startswith(f"{kind.kind} default/poison (")
    told = await until("an event", lambda: _event(client, "SetAside"))
    assert "must be less than or equal to" in told
    assert (await client.get(kind, "poison", "default"))["metadata"]["name"] == "poison"


QUOTED = "nodes are available: " * 20_000
UNENDING: Object = {"code": "DL-QUEUE-UNSTATED", "params": {"resource": "x"}}
for _ in range(60):
    UNENDING = {"code": "DL-QUEUE-UNSTATED", "params": {"resource": UNENDING}}
SAID = orjson.dumps([{"code": "DL-IMAGE-UNKNOWN", "params": {"image": UNENDING}}]).decode()
TEMPLATES: dict[str, Object] = {
    "a label that every refusal quotes": {"labels": {"long": QUOTED}},
    "an annotation that says without end": {"annotations": {ANNOTATION: SAID}},
}


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob", "PyTorchTrainingJob", "TensorFlowTrainingJob"])
@pytest.mark.parametrize("what", TEMPLATES)
async def test_a_template_that_is_read_for_ever_stops_nobody(
    cluster: Cluster, client: Client, settings: ClusterSettings, kind: str, what: str
) -> None:
    """Controllers read what refusals and pods say on the event loop: one job was enough, also after a restart."""
    served = KINDS[kind].kind
    manager = await start_platform(cluster)
    poison = training(kind)
    for role in _roles(poison).values():
        role["template"]["metadata"] = TEMPLATES[what]
    await client.create(served, poison)
    await until("an event about it", lambda: _is_told_of(client))
    await manager.stop()
    await cluster.stop()
    again = Cluster(settings)
    await again.start()
    manager = await start_platform(again)
    try:
        await again.client.create(served, {**training(kind), "metadata": {"name": "fine", "namespace": "default"}})
        await until("a pod of another job", lambda: _has_pod_of(again.client, "fine-"))
        assert not again.directory.read_set_aside()
        await again.client.delete(served, "poison", "default")
    finally:
        await manager.stop()
        await again.stop()
        await cluster.start()  # for the fixture to stop


async def _is_told_of(client: Client) -> bool:
    told = (await client.list(EVENT, "default")).items
    return any(event["involvedObject"]["name"] == "poison" and "Create" in event["reason"] for event in told)


async def test_a_large_job_is_made_in_parts(client: Client, platform: Manager) -> None:
    """Its parts share one list of members; none of them is made twice or left out."""
    await client.create(KINDS["TFJob"].kind, training("TFJob", Worker=300))
    await until("all pods", lambda: _has_pods(client, "default", _total(training("TFJob", Worker=300))))
    pods = await _pods(client)
    told = {_tf_config(pod)["cluster"]["worker"][299] for pod in pods}
    assert len(told) == 1
    services = {service["metadata"]["name"] for service in (await client.list(SERVICE, "default")).items}
    assert services >= {pod["metadata"]["name"] for pod in pods}


def _total(obj: Object) -> int:
    return sum(role.get("replicas", 1) for role in _roles(obj).values())


def _tf_config(pod: Object) -> Object:
    env = {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}
    found: Object = yaml.safe_load(env["TF_CONFIG"])
    return found


# -- many of something, and numbers of many digits


async def test_thousands_of_owners_are_looked_at_once_each(client: Client) -> None:
    """Twice as many took four times as long: 20,000 stopped the API for a minute. So many fit into one object."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "n"}
    owners = [{**owner, "uid": f"u{number % 15_999}"} for number in range(16_000)]
    meta = {"name": "poison", "namespace": "default", "ownerReferences": owners}
    made = await asyncio.wait_for(
        client.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}), WAIT_S
    )
    assert len(made["metadata"]["ownerReferences"]) == 15_999


MANY_DIGITS = "9" * 5000
DIGITS = {
    "maxSurge": (DEPLOYMENT, workload(DEPLOYMENT, strategy={"rollingUpdate": {"maxSurge": f"{MANY_DIGITS}%"}}), True),
    "index": (
        JOB,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "poison", "namespace": "default"},
            "spec": {
                "completions": 5,
                "completionMode": "Indexed",
                "successPolicy": {"rules": [{"succeededIndexes": f"0-{MANY_DIGITS}"}]},
                "template": template(restartPolicy="Never"),
            },
        },
        False,
    ),
    "deletion cost": (
        POD,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "poison",
                "namespace": "default",
                "annotations": {"controller.kubernetes.io/pod-deletion-cost": MANY_DIGITS},
            },
            "spec": template()["spec"],
        },
        False,
    ),
}


@pytest.mark.parametrize("where", DIGITS)
async def test_numbers_of_thousands_of_digits_are_numbers(client: Client, where: str) -> None:
    """Taken, where Kubernetes takes them, or refused; but never an error of ours (500)."""
    kind, obj, taken = DIGITS[where]
    if taken:
        await client.create(kind, obj)
        await client.delete(kind, "poison", "default", propagation="Background")
        return
    with pytest.raises(errors.Invalid, match="Invalid value"):
        await client.create(kind, obj)


async def test_a_version_of_thousands_of_digits_is_one_that_has_not_come(client: Client) -> None:
    with pytest.raises(errors.ApiError) as refused:
        await client.request("GET", "/api/v1/namespaces/default/pods", [("resourceVersion", MANY_DIGITS)])
    assert refused.value.code == 504


# -- environments that grow as they are expanded


DOUBLING = [{"name": "A0", "value": "x" * 16}] + [
    {"name": f"A{number}", "value": f"$(A{number - 1})$(A{number - 1})"} for number in range(1, 37)
]


@pytest.mark.parametrize(
    ("container", "why"),
    [
        ({"env": DOUBLING}, "environment variable A13 is longer than 128 KiB when its $(VARIABLES) are expanded"),
        (
            {"env": DOUBLING[:13], "args": ["$(A12)" * 1000]},
            "word 1 of command or args is longer than 128 KiB when its $(VARIABLES) are expanded",
        ),
        (
            {"env": [*DOUBLING[:13], *({"name": f"B{n}", "value": "$(A12)"} for n in range(40))]},
            "the environment is larger than 2048 KiB",
        ),
    ],
)
async def test_an_environment_is_bounded_before_it_is_built(
    tmp_path: Path, container: dict[str, Any], why: str
) -> None:
    """36 doublings of 16 characters are a terabyte: the pod says so and waits, and goes when it is deleted."""
    cluster = Cluster(ClusterSettings(data_dir=tmp_path / "node", port=0))
    await cluster.start()
    try:
        spec = template()["spec"]
        spec["containers"] = [{**spec["containers"][0], **container}]
        meta = {"name": "poison", "namespace": "default"}
        await cluster.client.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        waiting = await until("the container to wait", lambda: _waiting(cluster.client, "CreateContainerConfigError"))
        assert waiting["message"].startswith(why)
        await cluster.client.delete(POD, "poison", "default")
        await until("the pod to be gone", lambda: _is_gone(cluster.client, POD))
    finally:
        await cluster.stop()


async def _waiting(client: Client, reason: str) -> Object | None:
    status = (await client.get(POD, "poison", "default")).get("status") or {}
    states_of = [one["state"].get("waiting") or {} for one in status.get("containerStatuses") or ()]
    return next((one for one in states_of if one.get("reason") == reason), None)


# -- a start that isolates bad objects

EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"], "scope": "*"}
REFUSING_ALL = (
    (
        VALIDATING_POLICY,
        {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [EVERYTHING]},
            "validations": [{"expression": "false", "message": "no"}],
        },
    ),
    (VALIDATING_POLICY_BINDING, {"policyName": "poison", "validationActions": ["Deny"]}),
)


async def test_a_policy_that_refuses_everything_does_not_stop_the_next_start(tmp_path: Path) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0)
    cluster = Cluster(settings)
    await cluster.start()
    for kind, spec in REFUSING_ALL:
        meta = {"name": "poison"}
        await cluster.client.create(
            kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
        )
    await cluster.stop()
    again = Cluster(settings)
    await asyncio.wait_for(again.start(), WAIT_S)
    manager = await asyncio.wait_for(start_platform(again), WAIT_S)
    try:
        with pytest.raises(errors.ApiError, match="denied request: no"):
            await again.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
        await again.client.delete(VALIDATING_POLICY_BINDING, "poison")
        await again.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    finally:
        await manager.stop()
        await again.stop()


# What other hands than ours may have left in a store: of each kind that something reads at the start.
GARBAGE: dict[str, list[Any]] = {
    "resourcequotas": [{"hard": {"pods": "x"}}, {"hard": 7}, None],
    "limitranges": [{"limits": 7}, None],
    "services": [{"ports": [{}], "type": "NodePort"}, {"ports": 7}, None],
    "pods": [{"containers": [{}]}, {"nodeName": "nowhere", "tolerations": 7}, None],
    "jobs.batch": [None, {"template": 7, "selector": {"matchLabels": 7}}],
    "deployments.apps": [None, {"selector": 7}],
    "replicasets.apps": [None, {"replicas": "x", "selector": {}}],
    "statefulsets.apps": [None, {"replicas": "x", "selector": {}}],
    "daemonsets.apps": [None, {"selector": 7}],
    "persistentvolumeclaims": [None, {"resources": 7}],
    "endpointslices.discovery.k8s.io": [None],
    "customresourcedefinitions.apiextensions.k8s.io": [None, {"versions": 7}, {"names": 7, "versions": [{}]}],
    "validatingadmissionpolicies.admissionregistration.k8s.io": [None, {"validations": 7}],
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": [{"policyName": 7}],
    "validatingwebhookconfigurations.admissionregistration.k8s.io": [None],
    "clusterroles.rbac.authorization.k8s.io": [None],
    "clusterrolebindings.rbac.authorization.k8s.io": [None],
    "priorityclasses.scheduling.k8s.io": [None],
    "storageclasses.storage.k8s.io": [None],
    "persistentvolumes": [None, {"capacity": 7}],
    "nodes": [None, {"taints": 7}],
    "namespaces": [None],
}
CLUSTER_WIDE = ("customresource", "validating", "clusterrole", "priority", "storageclass", "persistentvolumes")


async def test_objects_that_nobody_can_read_do_not_stop_the_next_start(tmp_path: Path) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0)
    cluster = Cluster(settings)
    await cluster.start()
    for resource, specs in GARBAGE.items():
        for number, spec in enumerate(specs):
            name = f"poison-{number}"
            wide = resource.startswith(CLUSTER_WIDE) or resource in ("nodes", "namespaces")
            meta = {"name": name, "uid": f"{resource}-{number}", "creationTimestamp": "2026-01-01T00:00:00Z"}
            garbage: Object = {"metadata": meta if wide else {**meta, "namespace": "default"}}
            if spec is not None:
                garbage["spec"] = spec
            with contextlib.suppress(Exception):  # what watches in this process may choke; the next start is tried
                await cluster.store.put(resource, garbage)
    await cluster.stop()
    again = Cluster(settings)
    await asyncio.wait_for(again.start(), WAIT_S)
    manager = await asyncio.wait_for(start_platform(again), WAIT_S)
    try:
        client = again.client
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fine", "namespace": "default"}}
        await client.create(CONFIG_MAP, made)
        good = workload(REPLICA_SET, "fine", replicas=1)
        await client.create(REPLICA_SET, good)
        await until("a pod beside the garbage", lambda: _has_pod_of(client, "fine-"))

        def set_aside() -> bool:
            named = {(entry.controller, entry.name) for entry in again.directory.read_set_aside()}
            return named >= {("statefulset", "poison-0"), ("deployment", "poison-1")}

        await until("the garbage to be named", set_aside)
    finally:
        await manager.stop()
        await again.stop()


async def _has_pod_of(client: Client, prefix: str) -> bool:
    return any(pod["metadata"]["name"].startswith(prefix) for pod in await _pods(client))


# -- what blocks the event loop in C

BLOCKS_IN_C = """
import asyncio, ctypes, sys
from pathlib import Path
from danlu.diagnose import refusals
from danlu.embedded import cluster as clusters
from danlu.embedded.settings import ClusterSettings
from danlu.meta.wellknown import POD
from danlu.runtime.watchdog import Watchdog
from danlu.standalone.embeddedplatform import start_platform
from tests.attack.test_poison import KINDS, _roles, training

KIND = KINDS["PyTorchJob"].kind

def recognise(message):  # an engine that does not come back
    ctypes.PyDLL(None).pause()

async def main():
    refusals.recognise = recognise
    clusters.Watchdog = lambda *options: Watchdog(*options, tick_s=0.2)
    cluster = clusters.Cluster(ClusterSettings(data_dir=Path(sys.argv[1]), port=0, run_node=False))
    await cluster.start()
    await start_platform(cluster)
    if sys.argv[2] == "first":
        poison = training("PyTorchJob")
        for role in _roles(poison).values():
            role["template"]["metadata"] = {"labels": {"a": "?"}}
        await cluster.client.create(KIND, poison)
        await asyncio.Event().wait()
    meta = {"name": "fine", "namespace": "default"}
    await cluster.client.create(KIND, {**training("PyTorchJob"), "metadata": meta})
    while not (await cluster.client.list(POD, "default")).items:
        await asyncio.sleep(0.05)
    print("a pod", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_blocks_the_loop_in_c_is_named_and_left_alone_by_the_next_start(tmp_path: Path) -> None:
    """No thread of ours runs as long as C code holds the interpreter's lock: another process has to see it."""
    data = DataDirectory(tmp_path / "danlu")
    first = await _start_blocking(data.root, "first")
    said = await _read_until(first.stderr, b"in recognise")
    assert b"by the pytorchjob-controller controller, at default/poison; should this process be killed" in said
    [entry] = data.read_set_aside()
    assert (entry.kind, entry.namespace, entry.name) == ("PyTorchJob", "default", "poison")
    first.kill()
    await first.wait()
    second = await _start_blocking(data.root, "second")
    try:
        await _read_until(second.stdout, b"a pod")
        assert [entry.name for entry in data.read_set_aside()] == ["poison"]
    finally:
        second.kill()
        await second.wait()


async def _start_blocking(root: Path, which: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BLOCKS_IN_C, str(root), which), cwd=ROOT, stdout=pipe, stderr=pipe
    )


async def _read_until(stream: asyncio.StreamReader | None, wanted: bytes) -> bytes:
    assert stream is not None
    said = b""
    async with asyncio.timeout(WAIT_S):
        while wanted not in said and (line := await stream.readline()):
            said += line
    assert wanted in said
    return said
