"""What the CRDs of the Kubeflow jobs refuse, in the words of the operator's webhook where it has some."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tests.kinds.jobs import job

from danlu.kinds.crd import object_schema
from danlu.kinds.pytorchjob.kind import KIND as PYTORCHJOB
from danlu.kinds.tfjob.kind import KIND as TFJOB
from danlu.meta.schema import Schema, structural

SUPPORTED = 'supported values: "Always", "ExitCode", "Never", "OnFailure"'


@cache
def schema(kind: str) -> Schema:
    return structural(object_schema({"PyTorchJob": PYTORCHJOB, "TFJob": TFJOB}[kind]))


def role(replicas: int | None = 1, containers: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    named = [{"name": "pytorch", "image": "a"}, {"name": "tensorflow", "image": "a"}]
    found = {"template": {"spec": {"containers": named if containers is None else containers}}, **more}
    return found if replicas is None else {"replicas": replicas, **found}


def refusals(
    kind: str, roles: dict[str, Any], name: str = "x", old: dict[str, Any] | None = None, **spec: Any
) -> list[str]:
    obj = job(kind, name, roles, **spec)
    before = None if old is None else job(kind, name, roles, **old)
    return [error.message() for error in schema(kind).validate(obj, before)]


PY, TF = "spec.pytorchReplicaSpecs", "spec.tfReplicaSpecs"
CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("PyTorchJob", {"Master": role(2)}, {}, f"{PY}[Master].replicas: Forbidden: must be 1"),
    ("PyTorchJob", {"Master": role(None)}, {}, f"{PY}[Master].replicas: Forbidden: must be 1"),
    ("PyTorchJob", {"Worker": role(0)}, {}, f"{PY}[Worker].replicas: Forbidden: must be at least 1"),
    (
        "PyTorchJob", {"Chief": role()}, {},
        f'{PY}[Chief]: Unsupported value: "Chief": supported values: "Master", "Worker"',
    ),
    (
        "PyTorchJob", {"Master": role(containers=[{"name": "a", "image": "a"}])}, {},
        f"{PY}[Master].template.spec.containers: Required value: must have at least one container with name pytorch",
    ),
    (
        "PyTorchJob", {"Master": role(containers=[{"name": "pytorch"}])}, {},
        f"{PY}[Master].template.spec.containers[0].image: Required value: must be required",
    ),
    (
        "PyTorchJob", {"Master": role(containers=[])}, {},
        f"{PY}[Master].template.spec.containers: Required value: must be specified",
    ),
    ("PyTorchJob", {}, {}, f"{PY}: Required value: must name at least one role"),
    (
        "PyTorchJob", {"Worker": role()}, {"elasticPolicy": {"nProcPerNode": 2}, "nprocPerNode": "2"},
        "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode",
    ),
    (
        "PyTorchJob", {"Master": role()}, {"elasticPolicy": {}},
        f"{PY}[Worker]: Required value: must be configured if elastic policy is used",
    ),
    (
        "PyTorchJob", {"Worker": role()}, {"elasticPolicy": {"minReplicas": 3, "maxReplicas": 2}},
        "minReplicas must not be greater than maxReplicas",
    ),
    ("PyTorchJob", {"Worker": role(restartPolicy="Sometimes")}, {}, f'Unsupported value: "Sometimes": {SUPPORTED}'),
    (
        "PyTorchJob", {"Worker": role()}, {"runPolicy": {"cleanPodPolicy": "Sometimes"}},
        'spec.runPolicy.cleanPodPolicy: Unsupported value: "Sometimes": supported values: "All", "None", "Running"',
    ),
    ("PyTorchJob", {"Worker": role()}, {"runPolicy": {"backoffLimit": -1}}, "runPolicy.backoffLimit: Invalid value"),
    (
        "PyTorchJob", {"Worker": role()}, {"runPolicy": {"managedBy": "x/y"}},
        'spec.runPolicy.managedBy: Unsupported value: "x/y": supported values: "kubeflow.org/training-operator", ',
    ),
    ("PyTorchJob", {"Worker": role()}, {"nprocPerNode": "many"}, 'spec.nprocPerNode: Invalid value: "many"'),
    ("PyTorchJob", {"Master": role()}, {"name": "1bad"}, 'name: Invalid value: "1bad": should match: a DNS-1035 label'),
    ("PyTorchJob", {"Master": role()}, {"name": "a" * 60}, "must be no more than 63 characters"),
    ("TFJob", {"Boss": role()}, {}, f'{TF}[Boss]: Unsupported value: "Boss": supported values: "PS", "Worker", '),
    (
        "TFJob", {"Chief": role(), "Master": role()}, {},
        f"{TF}: Forbidden: must not have more than 1 Chief or Master role",
    ),
    ("TFJob", {"PS": role()}, {}, "PS and Evaluator never end by themselves"),
    ("TFJob", {"Worker": role(), "worker": role()}, {}, "must name each role once"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "roles", "spec", "expected"), CASES)
def test_refused(kind: str, roles: dict[str, Any], spec: dict[str, Any], expected: str) -> None:
    said = refusals(kind, roles, **spec)
    assert any(expected in text for text in said), said


def test_a_queue_and_a_manager_cannot_be_changed() -> None:
    one: dict[str, Any] = {
        "runPolicy": {"schedulingPolicy": {"queue": "a"}, "managedBy": "kubeflow.org/training-operator"}
    }
    two: dict[str, Any] = {"runPolicy": {"schedulingPolicy": {"queue": "b"}, "managedBy": "kueue.x-k8s.io/multikueue"}}
    said = refusals("PyTorchJob", {"Worker": role()}, old=one, **two)
    assert any("spec.runPolicy.schedulingPolicy.queue is immutable" in text for text in said)
    assert any("spec.runPolicy.managedBy" in text for text in said)


@pytest.mark.parametrize("name", ["Worker", "worker", "WORKER", "ps", "Evaluator"])
def test_roles_of_tensorflow_in_any_letter_case(name: str) -> None:
    assert refusals("TFJob", {"Chief": role(), name: role(2)}) == []
