"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions. Texts are those of a real 1.36 server."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.apps import controllerrevision, daemonset, deployment, replicaset, statefulset
from danlu.meta.objects import copy

WORKLOADS = (deployment.SERVED, replicaset.SERVED, statefulset.SERVED, daemonset.SERVED)


def workload(served: ServedKind, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    obj: dict[str, Any] = {
        "apiVersion": served.kind.api_version,
        "kind": served.kind.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }
    served.default(obj)
    served.prepare_create(obj)
    return obj


def messages(served: ServedKind, obj: dict[str, Any]) -> list[str]:
    return [error.message() for error in served.validate(obj)]


def changed(served: ServedKind, old: dict[str, Any], **spec: Any) -> tuple[dict[str, Any], list[str]]:
    new = copy(old)
    new["spec"].update(spec)
    served.default(new)
    served.prepare_update(new, old)
    return new, [error.message() for error in served.validate_update(new, old)]


@pytest.mark.parametrize("served", WORKLOADS, ids=lambda served: served.kind.plural)
class TestAll:
    def test_a_plain_one_is_valid_and_defaulting_settles(self, served: ServedKind) -> None:
        obj = workload(served)
        assert messages(served, obj) == []
        assert obj["metadata"]["generation"] == 1
        again = copy(obj)
        served.default(again)
        assert again == obj

    def test_the_selector_must_match_and_never_changes(self, served: ServedKind) -> None:
        other = {"matchLabels": {"app": "other"}}
        assert messages(served, workload(served, selector=other)) == [
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'
        ]
        _, errors = changed(served, workload(served), selector={"matchLabels": {"app": "web", "x": "y"}})
        words = "are forbidden" if served.kind.kind == "StatefulSet" else "field is immutable"
        assert any(words in error for error in errors), errors

    def test_generation_counts_changes_of_the_spec(self, served: ServedKind) -> None:
        obj = workload(served)
        same, _ = changed(served, obj)
        assert same["metadata"]["generation"] == 1
        new, errors = changed(served, obj, minReadySeconds=5)
        assert errors == []
        assert new["metadata"]["generation"] == 2

    def test_pods_are_kept_running(self, served: ServedKind) -> None:
        obj = workload(served)
        obj["spec"]["template"]["spec"].update(restartPolicy="Never", activeDeadlineSeconds=5)
        kind = "ReplicaSet" if served is deployment.SERVED else served.kind.kind
        assert messages(served, obj) == [
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            f"spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in {kind} is not Supported",
        ]

    def test_a_status_write_keeps_the_spec(self, served: ServedKind) -> None:
        old = workload(served)
        new = copy(old)
        new["spec"] = {}
        new["status"] = {"observedGeneration": 1}
        served.prepare_status(new, old)
        assert new["spec"] == old["spec"]
        assert served.validate_status(new, old) == []
        new["status"]["observedGeneration"] = -1
        assert [error.message() for error in served.validate_status(new, old)] == [
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0"
        ]

    def test_columns_can_be_read_of_anything(self, served: ServedKind) -> None:
        for obj in (workload(served), {"metadata": {"name": "x"}}):
            assert all(column.value(obj) is not None for column in served.columns)


@pytest.mark.parametrize(
    ("served", "kind"),
    [(deployment.SERVED, "deployment"), (replicaset.SERVED, "deployment"), (statefulset.SERVED, "statefulset")],
)
def test_missing_empty_and_broken_selectors(served: ServedKind, kind: str) -> None:
    assert messages(served, workload(served, selector=None))[:2] == [
        "spec.selector: Required value",
        'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]
    assert messages(served, workload(served, selector={})) == [
        f"spec.selector: Invalid value: {{}}: empty selector is invalid for {kind}"
    ]
    broken = {"matchExpressions": [{"key": "a", "operator": "X"}]}
    assert messages(served, workload(served, selector=broken))[0] == (
        'spec.selector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator'
    )


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"type": "Recreate"}, None),
        (
            {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            {"type": "Bad"},
            'spec.strategy: Unsupported value: {"Type":"Bad","RollingUpdate":null}: supported values: '
            '"Recreate", "RollingUpdate"',
        ),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            {"rollingUpdate": {"maxUnavailable": "200%"}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
        ),
        (
            {"rollingUpdate": {"maxSurge": -1}},
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
def test_deployment_strategies(strategy: dict[str, Any], message: str | None) -> None:
    obj = workload(deployment.SERVED, strategy=strategy)
    assert messages(deployment.SERVED, obj) == ([message] if message else [])


def test_deployment_defaults_and_columns() -> None:
    obj = workload(deployment.SERVED)
    assert obj["spec"]["replicas"] == 1
    assert obj["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert obj["spec"]["revisionHistoryLimit"] == 10
    assert obj["spec"]["progressDeadlineSeconds"] == 600
    obj["status"] = {"readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    assert [(column.name, column.value(obj)) for column in deployment.SERVED.columns] == [
        ("Name", "web"),
        ("Ready", "1/1"),
        ("Up-to-date", 1),
        ("Available", 1),
        ("Age", "<unknown>"),
        ("Containers", "c"),
        ("Images", "nginx"),
        ("Selector", "app=web"),
    ]


def test_deployment_annotations_count_as_a_change() -> None:
    old = workload(deployment.SERVED)
    new = copy(old)
    new["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "1"}
    deployment.SERVED.prepare_update(new, old)
    assert new["metadata"]["generation"] == 2


def test_deployment_deadline_and_status() -> None:
    obj = workload(deployment.SERVED, minReadySeconds=10, progressDeadlineSeconds=5)
    assert messages(deployment.SERVED, obj) == [
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"
    ]
    new = {**obj, "status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "collisionCount": 1}}
    old = {**obj, "status": {"collisionCount": 2}}
    assert [error.message() for error in deployment.SERVED.validate_status(new, old)] == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        "status.collisionCount: Invalid value: 1: cannot be decremented",
    ]


def test_names_that_are_no_labels_are_warned_of_once() -> None:
    obj = workload(deployment.SERVED)
    obj["metadata"]["name"] = "web.x"
    assert deployment.SERVED.warnings(obj) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]
    obj["metadata"]["resourceVersion"] = "1"
    assert deployment.SERVED.warnings(obj) == []


def test_statefulset_fields_that_may_change() -> None:
    served = statefulset.SERVED
    old = workload(served, serviceName="web")
    assert changed(served, old, replicas=3, ordinals={"start": 1}, minReadySeconds=1)[1] == []
    assert changed(served, old, serviceName="other")[1] == [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "
        "are forbidden"
    ]


def test_statefulset_claims_are_volumes_of_their_pods() -> None:
    served = statefulset.SERVED
    claim: dict[str, Any] = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    obj = workload(served, volumeClaimTemplates=[claim])
    obj["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    assert messages(served, obj) == []
    assert obj["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    obj["spec"]["volumeClaimTemplates"][0]["spec"] = {}
    assert messages(served, obj) == [
        "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
        "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
    ]


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ({"type": "OnDelete"}, None),
        (
            {"type": "OnDelete", "rollingUpdate": {"partition": 1}},
            'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: '
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        (
            {"rollingUpdate": {"partition": -1}},
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
        ),
    ],
)
def test_statefulset_strategies(strategy: dict[str, Any], message: str | None) -> None:
    obj = workload(statefulset.SERVED, updateStrategy=strategy)
    assert messages(statefulset.SERVED, obj) == ([message] if message else [])


def test_daemonset_template_generation() -> None:
    served = daemonset.SERVED
    old = workload(served)
    assert old["metadata"]["annotations"] == {"deprecated.daemonset.template.generation": "1"}
    template = copy(old["spec"]["template"])
    template["spec"]["containers"][0]["image"] = "nginx:2"
    new, errors = changed(served, old, template=template)
    assert errors == []
    assert new["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "2"


@pytest.mark.parametrize(
    ("rolling", "message"),
    [
        ({"maxSurge": "30%", "maxUnavailable": 0}, None),
        (
            {"maxSurge": 1},
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
            "may not be set when maxUnavailable is non-zero",
        ),
        (
            {"maxUnavailable": 0},
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
    ],
)
def test_daemonset_strategies(rolling: dict[str, Any], message: str | None) -> None:
    obj = workload(daemonset.SERVED, updateStrategy={"rollingUpdate": rolling})
    assert messages(daemonset.SERVED, obj) == ([message] if message else [])


def test_controller_revisions_keep_their_data() -> None:
    served = controllerrevision.SERVED
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    obj = {"metadata": {"name": "r", "ownerReferences": [owner]}, "data": {"a": 1}, "revision": 3}
    assert served.validate(obj) == []
    assert [column.value(obj) for column in served.columns][:3] == ["r", "statefulset.apps/web", 3]
    assert [error.message() for error in served.validate({"revision": -1})] == [
        "revision: Invalid value: -1: must be greater than or equal to 0",
        "data: Required value: data is mandatory",
    ]
    errors = served.validate_update({**obj, "data": {"a": 2}}, obj)
    assert [error.message() for error in errors] == ['data: Invalid value: {"a":2}: field is immutable']
