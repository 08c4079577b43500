from __future__ import annotations

from typing import Any

import pytest

from danlu.errors import BadRequest
from danlu.meta.patch import strategic_merge_patch
from danlu.meta.schema import native

POD = native("io.k8s.api.core.v1.Pod")
DEPLOYMENT = native("io.k8s.api.apps.v1.Deployment")


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


def names(pod: dict[str, Any]) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def test_lists_merge_by_key_and_keep_the_servers_own() -> None:
    pod = {"spec": {"containers": containers("a", "b")}}
    patched = strategic_merge_patch(pod, {"spec": {"containers": [{"name": "b", "image": "b:2"}, {"name": "c"}]}}, POD)
    assert patched["spec"]["containers"] == [
        {"name": "a", "image": "a:1"},
        {"name": "b", "image": "b:2"},
        {"name": "c"},
    ]
    assert pod == {"spec": {"containers": containers("a", "b")}}


def test_delete_and_replace_directives() -> None:
    pod = {"spec": {"containers": containers("a", "b"), "nodeSelector": {"x": "y"}}}
    deleted = strategic_merge_patch(pod, {"spec": {"containers": [{"$patch": "delete", "name": "a"}]}}, POD)
    assert names(deleted) == ["b"]
    replaced = strategic_merge_patch(pod, {"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}]}}, POD)
    assert names(replaced) == ["z"]
    mapped = strategic_merge_patch(pod, {"spec": {"nodeSelector": {"$patch": "replace", "n": "m"}}}, POD)
    assert mapped["spec"]["nodeSelector"] == {"n": "m"}
    emptied = strategic_merge_patch(pod, {"spec": {"nodeSelector": {"$patch": "delete"}}}, POD)
    assert emptied["spec"]["nodeSelector"] == {}


def test_element_order() -> None:
    pod = {"spec": {"containers": containers("a", "b", "c")}}
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "a:2"}],
        }
    }
    patched = strategic_merge_patch(pod, patch, POD)
    assert names(patched) == ["b", "c", "a"]
    assert patched["spec"]["containers"][2]["image"] == "a:2"
    with pytest.raises(BadRequest, match="doesn't match"):
        strategic_merge_patch(
            pod, {"spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "x"}]}}, POD
        )


def test_retain_keys_and_primitive_lists() -> None:
    deployment = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge_patch(deployment, patch, DEPLOYMENT)["spec"]["strategy"] == {"type": "Recreate"}
    pod = {"metadata": {"finalizers": ["a", "b", "c"]}}
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}}
    assert strategic_merge_patch(pod, removal, POD)["metadata"]["finalizers"] == [
        "d",
        "a",
        "c",
    ]  # new ones first, as the real server


def test_null_deletes_and_atomic_lists_replace() -> None:
    pod = {"spec": {"nodeName": "n", "containers": [{"name": "a", "args": ["1", "2"], "env": [{"name": "E"}]}]}}
    patch = {"spec": {"nodeName": None, "containers": [{"name": "a", "args": ["3"], "env": [{"name": "F"}]}]}}
    patched = strategic_merge_patch(pod, patch, POD)
    assert patched["spec"] == {
        "containers": [{"name": "a", "args": ["3"], "env": [{"name": "F"}, {"name": "E"}]}],
    }


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"image": "x"}]}},
        {"spec": {"containers": [{"$patch": "delete"}]}},
        {"spec": {"containers": [{"$patch": "unknown", "name": "a"}]}},
        {"spec": {"containers": ["x"]}},
        {"$patch": "x"},
        {"$setElementOrder/containers": 1},
        {"$setElementOrder": []},
        {"$deleteFromPrimitiveList/x": 1},
        {"$retainKeys": 1},
        [],
    ],
)
def test_refused(patch: Any) -> None:
    with pytest.raises(BadRequest):
        strategic_merge_patch({"spec": {"containers": containers("a")}}, patch, POD)


def test_custom_kinds_have_no_strategy() -> None:
    with pytest.raises(BadRequest, match="strategic merge patch format is not supported"):
        strategic_merge_patch({}, {}, None)
