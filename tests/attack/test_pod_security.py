"""Pods that ask for the machine: refused by the namespace's level, and never given Danlu's own data directory."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tests.attack.conftest import NewPerson, Person

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings, PodSecuritySettings
from danlu.kinds.project.schema import PROJECT
from danlu.meta.kind import Object
from danlu.meta.podsecurity import BASELINE, LevelVersion, detailed, evaluate
from danlu.meta.wellknown import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    DEPLOYMENT,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    RUNTIME_CLASS,
)
from danlu.standalone.embeddedplatform import start_platform

ROOT = Path(__file__).parent.parent.parent
ENFORCE = "pod-security.kubernetes.io/enforce"
WAIT_S = 60.0
HOST_PATH: dict[str, Any] = {"volumes": [{"name": "v", "hostPath": {"path": "/var/log"}}]}


@pytest.fixture
def settings(tmp_path: Path) -> ClusterSettings:
    exempt = PodSecuritySettings(exempt_users=("trusted",), exempt_namespaces=("free",), exempt_runtime_classes=("vm",))
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_node=False, pod_security=exempt)


def pod(name: str = "x", namespace: str = "a", container: Object | None = None, **spec: Any) -> Object:
    main = {"name": "c", "image": "busybox", **(container or {})}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [main], **spec}}


async def make_namespace(client: Client, name: str = "a", **labels: str) -> None:
    labelled = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    meta = {"name": name, "labels": labelled}
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def label(client: Client, name: str = "a", **labels: str) -> Object:
    labelled = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return await client.patch(NAMESPACE, name, None, {"metadata": {"labels": labelled}})


async def until(what: str, look: Callable[[], Any]) -> Any:
    for _ in range(int(WAIT_S / 0.05)):
        answer = await look()
        if answer:
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited {WAIT_S:.0f} s in vain for {what}")


# -- levels


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (pod(**HOST_PATH), 'hostPath volumes (volume "v")'),
        (pod(hostNetwork=True, hostPID=True), "host namespaces (hostNetwork=true, hostPID=true)"),
        (
            pod(container={"securityContext": {"privileged": True}}),
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (
            pod(container={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}),
            'non-default capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
        ),
        (
            pod(container={"ports": [{"containerPort": 80, "hostPort": 80}]}),
            'hostPort (container "c" uses hostPort 80)',
        ),
    ],
)
async def test_baseline_refuses_what_breaks_out(client: Client, new_person: NewPerson, made: Object, why: str) -> None:
    await make_namespace(client, enforce="baseline")
    person = await new_person()
    status, answer = await person.request("POST", "/api/v1/namespaces/a/pods", made)
    assert status == 403
    assert answer["message"] == f'pods "x" is forbidden: violates PodSecurity "baseline:latest": {why}'
    assert answer["reason"] == "Forbidden"


async def test_a_workload_is_warned_of_and_its_pods_are_refused(client: Client, new_person: NewPerson) -> None:
    await make_namespace(client, enforce="baseline")
    person = await new_person()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod()["spec"], **HOST_PATH}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "a"}, "spec": spec}
    warnings = await _warnings(person, "POST", "/apis/apps/v1/namespaces/a/deployments", made)
    assert warnings == ['would violate PodSecurity "baseline:latest": hostPath volumes (volume "v")']

    async def told() -> str:
        sets = (await client.list(REPLICA_SET, "a")).items
        conditions = [one for found in sets for one in (found.get("status") or {}).get("conditions") or ()]
        return next((one["message"] for one in conditions if one["type"] == "ReplicaFailure"), "")

    assert 'violates PodSecurity "baseline:latest"' in await until("the replica set to say why", told)
    assert (await client.list(POD, "a")).items == []
    assert (await client.get(DEPLOYMENT, "w", "a"))["metadata"]["name"] == "w"


async def test_a_running_pod_cannot_be_given_a_privileged_container(client: Client) -> None:
    await make_namespace(client, enforce="baseline")
    await client.create(POD, pod())
    debugger = {"name": "d", "image": "busybox", "securityContext": {"privileged": True}}
    body = {"spec": {"ephemeralContainers": [debugger]}}
    with pytest.raises(errors.Forbidden, match='privileged \\(container "d" must not set'):
        await client.patch(POD, "x", "a", body, type="strategic", subresource="ephemeralcontainers")


async def test_a_namespace_that_becomes_stricter_tells_of_its_pods(client: Client, new_person: NewPerson) -> None:
    await make_namespace(client)
    await client.create(POD, pod("one", **HOST_PATH))
    await client.create(POD, pod("two", **HOST_PATH))
    await client.create(POD, pod("fine"))
    person = await new_person(namespace="b")
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    meta = {"name": "all"}
    await client.create(CLUSTER_ROLE, {**_typed(CLUSTER_ROLE), "metadata": meta, "rules": [everything]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"}
    subject = {"kind": "ServiceAccount", "name": "mallory", "namespace": "b"}
    binding = {"metadata": meta, "roleRef": role, "subjects": [subject]}
    await client.create(CLUSTER_ROLE_BINDING, {**_typed(CLUSTER_ROLE_BINDING), **binding})
    body = {"metadata": {"labels": {ENFORCE: "baseline"}}}
    assert await _warnings(person, "PATCH", "/api/v1/namespaces/a", body, "application/merge-patch+json") == [
        'existing pods in namespace "a" violate the new PodSecurity enforce level "baseline:latest"',
        "one (and 1 other pod): hostPath volumes",
    ]


async def _warnings(
    person: Person, method: str, path: str, body: Object, content_type: str = "application/json"
) -> list[str]:
    headers = {"authorization": f"Bearer {person.token}", "content-type": content_type}
    data = orjson.dumps(body)
    async with person.session.request(method, person.url + path, data=data, headers=headers) as answer:
        assert answer.status == (201 if method == "POST" else 200), await answer.text()
        said = answer.headers.get("warning", "")
    return [text.replace('\\"', '"') for text in re.findall(r'299 - "((?:[^"\\]|\\.)*)"', said)]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("enforce", "strict", "must be one of privileged, baseline, restricted"),
        ("warn_version", "v2.0", 'must be "latest" or "v1.x"'),
    ],
)
async def test_labels_that_cannot_be_read_are_refused(client: Client, key: str, value: str, why: str) -> None:
    name = f"pod-security.kubernetes.io/{key.replace('_', '-')}"
    with pytest.raises(errors.Invalid) as refused:
        await make_namespace(client, **{key: value})
    text = f'Namespace "a" is invalid: metadata.labels[{name}]: Invalid value: "{value}": {why}'
    assert refused.value.message == text
    await make_namespace(client)
    with pytest.raises(errors.Invalid):
        await label(client, **{key: value})


async def test_what_is_exempt(client: Client, cluster: Cluster) -> None:
    await make_namespace(client, enforce="restricted")
    await make_namespace(client, "free", enforce="restricted")
    with pytest.raises(errors.Forbidden):
        await client.create(POD, pod())
    await cluster.component("trusted").create(POD, pod("by-user"))
    await client.create(POD, pod("by-namespace", "free", **HOST_PATH))
    await client.create(RUNTIME_CLASS, {"metadata": {"name": "vm"}, "handler": "vm"})
    await client.create(POD, pod("by-class", runtimeClassName="vm"))


# -- projects, and what is ours


async def test_a_project_is_baseline_unless_somebody_chose(client: Client, cluster: Cluster) -> None:
    manager = await start_platform(cluster)
    for name in ("team", "default"):
        if name == "team":
            await make_namespace(client, name)
        meta = {"name": name, "namespace": name}
        await client.create(PROJECT, {**_typed(PROJECT), "metadata": meta, "spec": {}})

    async def level(name: str, wanted: str | None) -> bool:
        found = (await client.get(NAMESPACE, name))["metadata"].get("labels") or {}
        return found.get("project.tensorstack.dev") == "true" and found.get(ENFORCE) == wanted

    await until("the project to be baseline", lambda: level("team", "baseline"))
    await until("the laptop's own to be left alone", lambda: level("default", None))
    await label(client, "team", enforce="privileged")
    await client.patch(PROJECT, "team", "team", {"metadata": {"labels": {"touched": "yes"}}})
    for _ in range(10):
        await asyncio.sleep(0.1)
        assert await level("team", "privileged"), "what an administrator chose stays"
    await manager.stop()


def _typed(kind: Any) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _pods_in(value: Any) -> Iterator[Object]:
    """Every pod spec in a document, wherever it stands."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list) and all(isinstance(one, dict) for one in value["containers"]):
            yield value
        for inner in value.values():
            yield from _pods_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pods_in(inner)


SYSTEM = {"nvidia-device-plugin.yaml"}  # a part of the node, in kube-system


def test_our_own_pods_and_examples_are_baseline() -> None:
    """Notebooks, TensorBoards, training jobs (as the golden files have them), and every example."""
    files = [*ROOT.glob("tests/kinds/*/*.output.yaml"), *ROOT.glob("src/danlu/kinds/*/example.yaml")]
    files += [path for path in ROOT.glob("examples/**/*.yaml") if path.name not in SYSTEM]
    seen = 0
    for path in files:
        for document in yaml.safe_load_all(path.read_text()):
            for spec in _pods_in(document):
                seen += 1
                found = evaluate(LevelVersion(BASELINE), {}, spec)
                assert not found, f"{path.relative_to(ROOT)}: {detailed(found)}"
    assert seen > 100


# -- the data directory


def protected(cluster: Cluster) -> dict[str, str]:
    own = str(cluster.directory.root)
    return {
        "itself": own,
        "inside": f"{own}/pki",
        "above": os.path.dirname(own),
        "the root": "/",
        "with a detour": f"{own}/volumes/../pki",
        "with slashes": own.replace("/", "//") + "/",
        "with dots": f"{own}/./pki",
    }


PROTECTED = ["itself", "inside", "above", "the root", "with a detour", "with slashes", "with dots"]


@pytest.mark.parametrize("which", PROTECTED)
async def test_no_pod_is_given_the_data_directory(client: Client, cluster: Cluster, which: str) -> None:
    """Not in a privileged namespace, and not by the administrator: it holds the keys."""
    path = protected(cluster)[which]
    made = pod("x", "default", volumes=[{"name": "v", "hostPath": {"path": path}}])
    with pytest.raises((errors.Forbidden, errors.Invalid)) as refused:
        await client.create(POD, made)
    assert ("must not contain '..'" if "detour" in which else "data directory") in refused.value.message


@pytest.mark.parametrize("kind", ["hostPath", "local"])
@pytest.mark.parametrize("which", PROTECTED)
async def test_no_volume_is_made_of_it(client: Client, cluster: Cluster, which: str, kind: str) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], kind: {"path": protected(cluster)[which]}}
    if kind == "local":
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    with pytest.raises((errors.Forbidden, errors.Invalid)):
        await client.create(PERSISTENT_VOLUME, {**_typed(PERSISTENT_VOLUME), "metadata": {"name": "v"}, "spec": spec})


async def test_claims_are_served_all_the_same(client: Client) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "data", "namespace": "default"}
    await client.create(PERSISTENT_VOLUME_CLAIM, {**_typed(PERSISTENT_VOLUME_CLAIM), "metadata": meta, "spec": spec})

    async def bound() -> bool:
        found = await client.get(PERSISTENT_VOLUME_CLAIM, "data", "default")
        return bool((found.get("status") or {}).get("phase") == "Bound")

    await until("the claim to be bound", bound)
    [volume] = (await client.list(PERSISTENT_VOLUME)).items
    await client.patch(PERSISTENT_VOLUME, volume["metadata"]["name"], None, {"metadata": {"labels": {"a": "b"}}})
