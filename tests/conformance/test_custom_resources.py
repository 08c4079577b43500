"""CustomResourceDefinitions: schemas, defaults, pruning, columns, CEL rules, subresources, versions."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.conftest import Kube


@pytest.fixture(scope="module")
def group(kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    kube = Kube(kubeconfig, tmp_path_factory.getbasetemp(), "default")
    group = define(kube)
    yield group
    kube.run("delete", "crd", f"ovens.{group}", "--wait=false", check=False)


def define(kube: Kube) -> str:
    group = f"t{secrets.token_hex(3)}.example.com"
    kube("create", "-f", "-", stdin=definition(group))
    kube("wait", "--for=condition=Established", f"crd/ovens.{group}", "--timeout=30s")
    kube.wait("the kind to be served", lambda: kube.run("get", f"ovens.{group}", check=False).returncode == 0)
    return group


def definition(group: str) -> dict[str, Any]:
    spec = {
        "type": "object",
        "required": ["heat"],
        "properties": {
            "heat": {"type": "integer", "minimum": 1, "maximum": 3000},
            "mode": {"type": "string", "enum": ["bake", "fire"], "default": "fire"},
            "replicas": {"type": "integer", "default": 1},
            "low": {"type": "integer"},
            "high": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        },
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                "message": "low must not be above high",
            },
            {"rule": "self.heat >= oldSelf.heat", "message": "an oven does not cool down"},
        ],
    }
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}
    columns = [
        {"name": "Heat", "type": "integer", "jsonPath": ".spec.heat"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "served": True,
        "schema": schema,
        "additionalPrinterColumns": columns,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"ovens.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "ovens", "singular": "oven", "kind": "Oven", "shortNames": [f"ov{group[1:7]}"]},
            "versions": [{**version, "name": "v1", "storage": True}, {**version, "name": "v1alpha1", "storage": False}],
        },
    }


def oven(group: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Oven", "metadata": {"name": name}, "spec": spec}


def test_defaults_and_pruning(kube: Kube, group: str) -> None:
    kube("create", "--validate=ignore", "-f", "-", stdin=oven(group, "a", heat=5, nonsense=1))
    assert kube.get(f"ovens.{group}", "a")["spec"] == {"heat": 5, "mode": "fire", "replicas": 1}
    assert 'unknown field "spec.nonsense"' in kube.fails(
        "create", "-f", "-", stdin=oven(group, "b", heat=5, nonsense=1)
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.heat: Required value"),
        ({"heat": 0}, "spec.heat: Invalid value: 0: spec.heat in body should be greater than or equal to 1"),
        ({"heat": "hot"}, 'spec.heat: Invalid value: "string": spec.heat in body must be of type integer: "string"'),
        ({"heat": 5, "mode": "grill"}, 'spec.mode: Unsupported value: "grill": supported values: "bake", "fire"'),
        ({"heat": 5, "tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"heat": 5, "low": 3, "high": 2}, "low must not be above high"),
    ],
)  # fmt: skip
def test_bad_resources_are_refused(kube: Kube, group: str, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=oven(group, "bad", **spec))


def test_transition_rules(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    problem = kube.fails("patch", f"ovens.{group}", "a", "--type=merge", "-p", '{"spec":{"heat":4}}')
    assert "an oven does not cool down" in problem
    kube("patch", f"ovens.{group}", "a", "--type=merge", "-p", '{"spec":{"heat":6}}')


def test_columns_and_names(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    assert kube("get", f"ov{group[1:7]}").splitlines()[0].split() == ["NAME", "HEAT", "AGE"]
    wide = kube("get", f"oven.{group}", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "HEAT", "MODE", "AGE"]
    assert wide[1].split()[:3] == ["a", "5", "fire"]


def test_status_and_generation(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin={**oven(group, "a", heat=5), "status": {"phase": "lie"}})
    assert "status" not in kube.get(f"ovens.{group}", "a")
    kube(
        "patch",
        f"ovens.{group}",
        "a",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"phase":"hot"},"spec":{"heat":9}}',
    )
    found = kube.get(f"ovens.{group}", "a")
    assert found["status"] == {"phase": "hot"}
    assert found["spec"]["heat"] == 5
    assert found["metadata"]["generation"] == 1
    kube("patch", f"ovens.{group}", "a", "--type=merge", "-p", '{"spec":{"heat":9}}')
    assert kube.get(f"ovens.{group}", "a")["metadata"]["generation"] == 2


def test_scale(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    kube("scale", f"ovens.{group}", "a", "--replicas=3")
    assert kube.value(f"ovens.{group}/a", "{.spec.replicas}") == "3"


def test_two_versions_one_object(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    path = f"/apis/{group}/v1alpha1/namespaces/{kube.namespace}/ovens/a"
    found = json.loads(kube("get", "--raw", path))
    assert found["apiVersion"] == f"{group}/v1alpha1"
    assert found["spec"]["heat"] == 5


def test_strategic_patches_are_not_for_custom_resources(kube: Kube, group: str) -> None:
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    assert "the body of the request was in an unknown format" in kube.fails(
        "patch", f"ovens.{group}", "a", "--type=strategic", "-p", '{"spec":{"heat":6}}'
    )


def test_explain(kube: Kube, group: str) -> None:
    shown = kube.wait(
        "the schema to be published", lambda: kube.run("explain", f"ovens.{group}", "--recursive", check=False).stdout
    )
    assert "heat\t<integer> -required-" in shown


def test_deleting_a_definition_deletes_its_objects(kube: Kube) -> None:
    group = define(kube)
    kube("create", "-f", "-", stdin=oven(group, "a", heat=5))
    kube("delete", "crd", f"ovens.{group}")
    assert "the server doesn't have a resource type" in kube.fails("get", f"ovens.{group}")


def test_bad_definitions_are_refused(kube: Kube) -> None:
    bad = definition("x.example.com")
    bad["metadata"]["name"] = "other.x.example.com"
    assert 'must be spec.names.plural+"."+spec.group' in kube.fails("create", "-f", "-", stdin=bad)
    bad = definition("x.example.com")
    del bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["heat"]["type"]
    assert "Required value: must not be empty for specified object fields" in kube.fails("create", "-f", "-", stdin=bad)
    bad = definition("x.example.com")
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"][0][
        "rule"
    ] = "self.nothing > 1"
    assert "compilation failed" in kube.fails("create", "-f", "-", stdin=bad)
