"""Kubeflow's training-operator beside the platform: applied, replaced, removed, and jobs go on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests import kubeflow
from tests.kinds.jobs import job, role

from danlu import errors
from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import ClusterSettings
from danlu.kinds._operators import definitions, findings
from danlu.kinds._operators.known import TRAINING_OPERATOR
from danlu.kinds.pytorchjob.kind import KIND
from danlu.kinds.registry import MANAGER
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    EVENT,
    NAMESPACE,
    POD,
    VALIDATING_WEBHOOKS,
)
from danlu.standalone.embeddedplatform import start_platform

PYTORCHJOBS = KIND.kind
CRD = "pytorchjobs.kubeflow.org"
GUARD = "validator.pytorchjob.training-operator.kubeflow.org"
OTHERS_GUARD = "validator.xgboostjob.training-operator.kubeflow.org"
WAIT_S = 30.0


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """With controllers and the platform; without a node, on which nothing of Kubeflow's would become ready either."""
    monkeypatch.setattr(definitions, "GAP_S", 0.0)
    cluster = Cluster(ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=True, run_node=False))
    await cluster.start()
    platform = await start_platform(cluster)
    yield cluster
    await platform.stop()
    await cluster.stop()


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client


async def kubectl(cluster: Cluster, *words: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run, ["kubectl", *words], capture_output=True, text=True, timeout=120,
        env={**os.environ, "KUBECONFIG": str(cluster.directory.kubeconfig)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


async def until(what: str, look: Callable[[], Awaitable[Any]]) -> Any:
    ends = asyncio.get_running_loop().time() + WAIT_S
    while asyncio.get_running_loop().time() < ends:
        try:
            if found := await look():
                return found
        except errors.ApiError:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


async def has_pods(client: Client, name: str) -> None:
    made = job("PyTorchJob", name, {"Master": role("PyTorchJob", "pass")})
    await until(f"{name} to be accepted", lambda: client.create(PYTORCHJOBS, made, "default"))

    async def pods() -> list[Object]:
        return (await client.list(POD, "default", labels=f"training.kubeflow.org/job-name={name}")).items

    await until(f"the pods of {name}", pods)


async def is_ours(client: Client) -> bool:
    return definitions.is_applied_by(MANAGER, await client.get(CUSTOM_RESOURCE_DEFINITION, CRD))


async def guards(client: Client) -> dict[str, str]:
    found = await client.get(VALIDATING_WEBHOOKS, kubeflow.WEBHOOKS)
    return {hook["name"]: hook["failurePolicy"] for hook in found["webhooks"]}


async def reasons(client: Client, about: Kind) -> set[str]:
    return {one["reason"] for one in (await client.list(EVENT)).items if one["involvedObject"]["kind"] == about.kind}


@pytest.mark.parametrize("version", kubeflow.VERSIONS)
async def test_jobs_go_on_beside_kubeflows_operator_and_after_it(
    cluster: Cluster, client: Client, need_kubectl: None, version: str
) -> None:
    folder = str(await asyncio.to_thread(kubeflow.manifests, version))
    await kubectl(cluster, "apply", "--server-side", "--force-conflicts", "-k", folder)
    await has_pods(client, "beside")

    async def set_aside() -> bool:
        return (await guards(client))[GUARD] == "Ignore"

    await until("the guard to be set aside", set_aside)
    assert (await guards(client))[OTHERS_GUARD] == "Fail", "a kind that we do not look after keeps its guard"
    await until("our definition", lambda: is_ours(client))
    await until("an event", lambda: reasons(client, VALIDATING_WEBHOOKS))
    assert await reasons(client, VALIDATING_WEBHOOKS) == {"WebhookSetAside"}
    assert "AnotherOperator" in await reasons(client, DEPLOYMENT)
    told = {cause.code: cause.text() for cause in cluster.directory.read_operators()}
    assert told.keys() == {"DL-OPERATOR-IDLE", "DL-WEBHOOK-ASIDE"}
    assert f"kubectl delete validatingwebhookconfiguration {kubeflow.WEBHOOKS}" in told["DL-WEBHOOK-ASIDE"]

    await kubectl(cluster, "delete", "--ignore-not-found", "--wait=false", "-k", folder)
    await until("the definition to be put back", lambda: is_ours(client))
    await has_pods(client, "after")

    async def forgotten() -> bool:
        return not cluster.directory.read_operators()

    await until("nothing to be told any more", forgotten)


async def test_a_definition_that_was_deleted_comes_back_without_its_objects(cluster: Cluster, client: Client) -> None:
    await has_pods(client, "gone")
    await client.delete(CUSTOM_RESOURCE_DEFINITION, CRD)

    async def jobs() -> bool:
        return (await client.list(PYTORCHJOBS, "default")).items == [] and await is_ours(client)

    await until("the kind without objects", jobs)
    await until("an event", lambda: reasons(client, CUSTOM_RESOURCE_DEFINITION))
    await has_pods(client, "again")


async def test_a_guard_that_is_answered_again_is_asked_again(cluster: Cluster, client: Client) -> None:
    await client.create(VALIDATING_WEBHOOKS, configuration(GUARD))

    async def policy(wanted: str) -> bool:
        return (await guards(client))[GUARD] == wanted

    await until("it to be set aside", lambda: policy("Ignore"))
    await client.create(NAMESPACE, {"metadata": {"name": kubeflow.NAMESPACE}})
    labels = {"kubernetes.io/service-name": "training-operator"}
    answers = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}
    await client.create(
        ENDPOINT_SLICE, {"metadata": {"name": "answers", "labels": labels}, **answers}, kubeflow.NAMESPACE
    )
    await until("it to be asked again", lambda: policy("Fail"))
    found = await client.get(VALIDATING_WEBHOOKS, kubeflow.WEBHOOKS)
    assert findings.SET_ASIDE not in (found["metadata"].get("annotations") or {})


async def test_a_guard_of_anybody_else_keeps_refusing(cluster: Cluster, client: Client) -> None:
    """Nobody may pass a guard because it is asleep: that is Kubernetes, and what its owner asked for."""
    await client.create(VALIDATING_WEBHOOKS, configuration("budget.example.com"))
    with pytest.raises(errors.InternalError, match=r"budget\.example\.com"):
        await client.create(PYTORCHJOBS, job("PyTorchJob", "held", {"Master": role("PyTorchJob", "")}), "default")
    assert await guards(client) == {"budget.example.com": "Fail"}


def configuration(name: str, resources: tuple[str, ...] = ("pytorchjobs",), policy: str = "Fail") -> Object:
    service = {"name": "training-operator", "namespace": kubeflow.NAMESPACE, "path": "/validate"}
    rule = {
        "apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]
    }  # fmt: skip
    hook = {
        "name": name, "clientConfig": {"service": service}, "rules": [rule], "failurePolicy": policy,
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    return {"metadata": {"name": kubeflow.WEBHOOKS}, "webhooks": [hook]}


# -- pure


@pytest.mark.parametrize(
    ("name", "resources", "is_guard"),
    [
        (GUARD, ("pytorchjobs",), True),
        (GUARD, ("pytorchjobs/status",), True),
        (GUARD, ("pytorchjobs", "pods"), False),  # it guards something else, too
        (GUARD, ("*",), False),
        ("pytorchjobs.example.com", ("pytorchjobs",), False),
    ],
)
def test_which_webhooks_are_guards_of_ours(name: str, resources: tuple[str, ...], is_guard: bool) -> None:
    found = [*findings.guards(TRAINING_OPERATOR, configuration(name, resources), [PYTORCHJOBS])]
    assert bool(found) == is_guard


def deployment(image: str, *, replicas: int = 1, ready: int = 0) -> Object:
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"name": "manager", "image": image}]}}}
    return {"metadata": {"namespace": "kubeflow", "name": "op"}, "spec": spec, "status": {"readyReplicas": ready}}


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (deployment("kubeflow/training-operator:v1-04f9f13"), [findings.Installed("kubeflow/op", runs=False)]),
        (
            deployment("ghcr.io/kubeflow/training-v1/training-operator:v1-d6eb98e", ready=1),
            [findings.Installed("kubeflow/op", runs=True)],
        ),
        (deployment("kubeflow/training-operator", replicas=0), []),
        (deployment("nginx"), []),
    ],
)
def test_which_deployments_are_another_operator(stored: Object, found: list[findings.Installed]) -> None:
    assert findings.installed(TRAINING_OPERATOR, [stored]) == found


def test_one_that_ignores_by_itself_is_left_as_it_is() -> None:
    """Its policy is its owner's: it must not become Fail when somebody answers."""
    stored = configuration(GUARD, policy="Ignore")
    assert findings.policies(stored, {GUARD}, {GUARD}) is None
    assert findings.policies(stored, {GUARD}, set()) is None


def test_setting_aside_and_back_leaves_what_there_was() -> None:
    stored = json.loads(json.dumps(configuration(GUARD)))
    aside = findings.policies(stored, {GUARD}, {GUARD})
    assert aside is not None
    assert findings.set_aside(aside) == {GUARD}
    assert findings.policies(aside, {GUARD}, {GUARD}) is None
    back = findings.policies(aside, {GUARD}, set())
    assert back is not None
    assert back["webhooks"] == stored["webhooks"]
    assert not findings.set_aside(back)
