from __future__ import annotations

from typing import Any

import pytest

from danlu.errors import BadRequest, Conflict
from danlu.meta.objects import copy
from danlu.meta.patch import apply, track_update
from danlu.meta.schema import native

DEPLOYMENT = native("io.k8s.api.apps.v1.Deployment")
CONFIG_MAP = native("io.k8s.api.core.v1.ConfigMap")
T1, T2, T3 = ("2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z")


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "x"}, "spec": spec}


def template(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers)}}


def fields(obj: dict[str, Any], manager: str) -> Any:
    return next(entry["fieldsV1"] for entry in obj["metadata"]["managedFields"] if entry["manager"] == manager)


def applied(
    live: dict[str, Any] | None, config: dict[str, Any], manager: str = "me", force: bool = False, now: str = T1
) -> dict[str, Any]:
    return apply(live, config, manager, force, DEPLOYMENT, "apps/v1", now)


def test_create_tracks_the_whole_object() -> None:
    obj = deployment(
        replicas=1,
        selector={"matchLabels": {"app": "web"}},
        template=template({"name": "a", "image": "i", "ports": [{"containerPort": 80}], "args": ["x"]}),
    )
    track_update(obj, None, "kubectl-create", "apps/v1", DEPLOYMENT, T1)
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:replicas": {},
                    "f:selector": {},
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"a"}': {
                                    ".": {},
                                    "f:name": {},
                                    "f:image": {},
                                    "f:args": {},
                                    "f:ports": {
                                        ".": {},
                                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                                    },
                                },
                            }
                        },
                    },
                }
            },
        }
    ]


def test_update_moves_changed_fields_to_the_changer() -> None:
    old: dict[str, Any] = {"metadata": {"name": "c", "uid": "u"}, "data": {"a": "1", "b": "2", "c": "3"}}
    track_update(old, None, "first", "v1", CONFIG_MAP, T1)
    new = copy(old)
    new["data"] = {"a": "1", "b": "changed", "d": "4"}
    track_update(new, old, "second", "v1", CONFIG_MAP, T2)
    assert fields(new, "first") == {"f:data": {".": {}, "f:a": {}}}
    assert fields(new, "second") == {"f:data": {"f:b": {}, "f:d": {}}}
    same = copy(new)
    track_update(same, new, "third", "v1", CONFIG_MAP, T3)
    assert same["metadata"]["managedFields"] == new["metadata"]["managedFields"]


def test_the_same_manager_under_a_subresource_is_another_entry() -> None:
    old = deployment(replicas=1)
    old["metadata"]["uid"] = "u"
    track_update(old, None, "m", "apps/v1", DEPLOYMENT, T1)
    new = copy(old)
    new["status"] = {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}
    track_update(new, old, "m", "apps/v1", DEPLOYMENT, T2, subresource="status")
    entries = new["metadata"]["managedFields"]
    assert [entry.get("subresource") for entry in entries] == [None, "status"]
    assert entries[1]["fieldsV1"]["f:status"]["f:conditions"] == {
        ".": {},
        'k:{"type":"Available"}': {".": {}, "f:type": {}, "f:status": {}},
    }


def test_managed_fields_can_be_reset_and_stay_so() -> None:
    old: dict[str, Any] = {"metadata": {"name": "c", "uid": "u"}, "data": {"a": "1"}}
    track_update(old, None, "first", "v1", CONFIG_MAP, T1)
    new = copy(old)
    new["metadata"]["managedFields"] = [{}]
    track_update(new, old, "first", "v1", CONFIG_MAP, T2)
    assert "managedFields" not in new["metadata"]
    newer = copy(new)
    newer["data"]["a"] = "2"
    track_update(newer, new, "first", "v1", CONFIG_MAP, T2)
    assert "managedFields" not in newer["metadata"]


def test_old_update_managers_are_merged() -> None:
    obj: dict[str, Any] = {"metadata": {"name": "c", "uid": "u"}, "data": {"k0": "x"}}
    track_update(obj, None, "m0", "v1", CONFIG_MAP, "2026-01-01T00:00:00Z")
    for number in range(1, 15):
        new = copy(obj)
        new["data"][f"k{number}"] = "x"
        track_update(new, obj, f"m{number}", "v1", CONFIG_MAP, f"2026-01-01T00:00:{number:02}Z")
        obj = new
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert managers[0] == "ancient-changes"
    assert "f:k0" in fields(obj, "ancient-changes")["f:data"]


def test_apply_creates_and_owns_what_it_says() -> None:
    obj = applied(None, deployment(replicas=2, template=template({"name": "a", "image": "i"})))
    assert fields(obj, "me") == {
        "f:spec": {
            "f:replicas": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:image": {}}}},
            },
        }
    }
    assert obj["metadata"]["managedFields"][0]["operation"] == "Apply"


def test_apply_removes_what_it_no_longer_says_unless_shared() -> None:
    live = applied(None, deployment(replicas=2, paused=True, template=template({"name": "a"}, {"name": "b"})))
    live = applied(live, deployment(paused=True), "other", now=T2)
    live = applied(live, deployment(template=template({"name": "a"})), now=T3)
    assert "replicas" not in live["spec"]
    assert live["spec"]["paused"] is True
    assert [container["name"] for container in live["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_apply_keeps_what_others_set() -> None:
    live = applied(None, deployment(template=template({"name": "a", "image": "i"})))
    live["metadata"]["uid"] = "u"
    new = copy(live)
    new["spec"]["template"]["spec"]["containers"].append({"name": "injected"})
    new["spec"]["template"]["spec"]["containers"][0]["args"] = ["x"]
    track_update(new, live, "webhook", "apps/v1", DEPLOYMENT, T2)
    result = applied(new, deployment(template=template({"name": "a", "image": "j"})), now=T3)
    assert result["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "j", "args": ["x"]},
        {"name": "injected"},
    ]


def test_conflicts() -> None:
    live = deployment(replicas=1, paused=True)
    live["metadata"]["uid"] = "u"
    track_update(live, None, "kubectl-client-side-apply", "apps/v1", DEPLOYMENT, T1)
    with pytest.raises(Conflict) as refused:
        applied(live, deployment(replicas=3))
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert refused.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
            "field": ".spec.replicas",
        }
    ]
    with pytest.raises(Conflict, match="Apply failed with 2 conflicts: conflicts with"):
        applied(live, deployment(replicas=3, paused=False))
    forced = applied(live, deployment(replicas=3), force=True, now=T2)
    assert forced["spec"]["replicas"] == 3
    assert fields(forced, "kubectl-client-side-apply") == {"f:spec": {"f:paused": {}}}
    shared = applied(live, deployment(replicas=1), now=T2)
    assert fields(shared, "me") == {"f:spec": {"f:replicas": {}}}


def test_kubectl_takes_back_what_its_client_side_apply_set() -> None:
    import json

    live = deployment(replicas=1)
    live["metadata"]["uid"] = "u"
    note = json.dumps(deployment(replicas=1))
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": note}
    track_update(live, None, "kubectl-client-side-apply", "apps/v1", DEPLOYMENT, T1)
    result = applied(live, deployment(replicas=5), "kubectl", now=T2)
    assert result["spec"]["replicas"] == 5
    note = result["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(note)["spec"]["replicas"] == 5


def test_a_second_apply_of_the_same_changes_nothing() -> None:
    config = deployment(replicas=2, template=template({"name": "a", "env": [{"name": "E", "value": "1"}]}))
    live = applied(None, config)
    live["metadata"]["uid"] = "u"
    assert applied(live, config, now=T2) == live


def test_untracked_objects_get_a_first_owner() -> None:
    live = deployment(replicas=1)
    live["metadata"]["uid"] = "u"
    with pytest.raises(Conflict, match='conflict with "before-first-apply" using apps/v1'):
        applied(live, deployment(replicas=2))


def test_refused_input() -> None:
    with pytest.raises(BadRequest, match="managedFields must be nil"):
        applied(None, {**deployment(), "metadata": {"name": "web", "managedFields": []}})
    with pytest.raises(BadRequest, match="Specified patch version: apps/v2, expected: apps/v1"):
        applied(None, {**deployment(), "apiVersion": "apps/v2"})
    with pytest.raises(BadRequest, match=r'.spec.template.spec.containers: duplicate entries for key \[name="a"\]'):
        applied(None, deployment(template=template({"name": "a"}, {"name": "a"})))
    with pytest.raises(BadRequest, match="non-map elements"):
        applied(None, deployment(template={"spec": {"containers": ["x"]}}))


def test_what_names_the_object_is_never_pruned() -> None:
    config = deployment()
    config["metadata"]["labels"] = {"x": "y"}
    live = applied(None, config)
    live["metadata"]["uid"] = "u"
    result = applied(live, deployment(), now=T2)
    del result["metadata"]["managedFields"]
    assert result["metadata"] == {"name": "web", "namespace": "x", "uid": "u"}


def test_status_is_not_applied_through_the_main_resource() -> None:
    result = applied(None, {**deployment(replicas=1), "status": {"replicas": 1}})
    assert "status" not in result


def test_atomic_parts_are_owned_whole() -> None:
    live = applied(None, deployment(selector={"matchLabels": {"a": "b"}}))
    assert fields(live, "me") == {"f:spec": {"f:selector": {}}}
    with pytest.raises(Conflict, match=r"\.spec\.selector"):
        applied(live, deployment(selector={"matchLabels": {"a": "c"}}), "other")
