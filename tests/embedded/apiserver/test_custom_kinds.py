"""Custom kinds from end to end, as kubectl sees them."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from danlu.client.client import Client
from danlu.embedded.controllers.customresources import clean_up
from danlu.errors import Invalid, NotFound
from danlu.meta.kind import Kind
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION as CRD

if TYPE_CHECKING:
    from tests.embedded.conftest import Kubectl

CRON_TAB = Kind("stable.example.com", "v1", "CronTab", "crontabs", True, ("ct",))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["cronSpec"],
            "x-kubernetes-validations": [{"rule": "self.replicas <= 10", "message": "at most ten"}],
            "properties": {
                "cronSpec": {"type": "string", "description": "When it runs."},
                "image": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "image is immutable"}],
                },
                "replicas": {"type": "integer", "minimum": 1, "default": 1},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "selectableFields": [{"jsonPath": ".spec.cronSpec"}],
                "additionalPrinterColumns": [
                    {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def changed(**spec: Any) -> dict[str, Any]:
    crd = copy.deepcopy(DEFINITION)
    crd["spec"].update(spec)
    return crd


def tab(name: str = "tab", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"cronSpec": "* * * * *", **spec}}


async def test_a_kind_is_served_once_its_definition_is_acknowledged(client: Client) -> None:
    crd = await client.create(CRD, changed())
    states = {one["type"]: one["status"] for one in crd["status"]["conditions"]}
    assert states == {"NamesAccepted": "True", "Established": "True"}
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["status"]["acceptedNames"]["listKind"] == "CronTabList"
    made = await client.create(CRON_TAB, tab(junk=1), "default")
    assert made["spec"] == {"cronSpec": "* * * * *", "replicas": 1}
    assert made["metadata"]["generation"] == 1


async def test_rules_and_types(client: Client) -> None:
    await client.create(CRD, changed())
    with pytest.raises(Invalid) as found:
        await client.create(CRON_TAB, tab(replicas=11), "default")
    assert found.value.message == 'CronTab.stable.example.com "tab" is invalid: spec: Invalid value: at most ten'
    with pytest.raises(Invalid, match="in body must be of type integer"):
        await client.create(CRON_TAB, tab(replicas="3"), "default")
    made = await client.create(CRON_TAB, tab(image="a"), "default")
    made["spec"]["image"] = "b"
    with pytest.raises(Invalid, match="image is immutable"):
        await client.update(CRON_TAB, made)


def patterns(**of: str) -> list[dict[str, Any]]:
    """Versions of the definition whose spec has these fields with these patterns."""
    versions: list[dict[str, Any]] = copy.deepcopy(DEFINITION["spec"]["versions"])
    properties = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties |= {name: {"type": "string", "pattern": pattern} for name, pattern in of.items()}
    return versions


async def test_patterns_are_go_s(client: Client) -> None:
    """As Kueue's AdmissionCheck has them (flags behind the anchor), negated classes, and letters of any script."""
    kind = "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"
    group = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    await client.create(
        CRD, changed(versions=patterns(kind=kind, group=group, label=r"^[^\s\PL]+$", plain=r"^[^\W_]+$"))
    )
    await client.create(
        CRON_TAB, tab(kind="ProvisioningRequest", group="kueue.x-k8s.io", label="丹炉", plain="a1"), "default"
    )
    for wrong in ({"kind": "9th"}, {"group": "Kueue.x-k8s.io"}, {"label": "a b"}, {"label": "a1"}, {"plain": "a_1"}):
        with pytest.raises(Invalid, match="should match"):
            await client.create(CRON_TAB, tab("wrong", **wrong), "default")


async def test_a_pattern_that_go_refuses_is_refused_with_the_definition(client: Client) -> None:
    with pytest.raises(Invalid, match="invalid or unsupported Perl syntax"):
        await client.create(CRD, changed(versions=patterns(kind="^(?!a)b$")))


async def test_status_is_apart_from_spec(client: Client) -> None:
    await client.create(CRD, changed())
    made = await client.create(CRON_TAB, {**tab(), "status": {"x": 1}}, "default")
    assert "status" not in made
    made["status"] = {"replicas": 2}
    made["spec"]["replicas"] = 5
    told = await client.update_status(CRON_TAB, made)
    assert told["status"] == {"replicas": 2}
    assert told["spec"]["replicas"] == 1
    assert told["metadata"]["generation"] == 1


async def test_versions_differ_in_name_only(client: Client) -> None:
    versions: list[dict[str, Any]] = copy.deepcopy(DEFINITION["spec"]["versions"])
    versions.append({**versions[0], "name": "v2", "storage": False})
    await client.create(CRD, changed(versions=versions))
    newer = Kind("stable.example.com", "v2", "CronTab", "crontabs")
    await client.create(CRON_TAB, tab(), "default")
    assert (await client.get(newer, "tab", "default"))["apiVersion"] == "stable.example.com/v2"
    assert [item["apiVersion"] for item in (await client.list(newer)).items] == ["stable.example.com/v2"]
    await client.create(newer, tab("other"), "default")
    assert (await client.get(CRON_TAB, "other", "default"))["apiVersion"] == "stable.example.com/v1"


async def test_names_are_taken_once(client: Client) -> None:
    await client.create(CRD, changed())
    rival = changed(names={"plural": "rivals", "kind": "CronTab", "shortNames": ["ct"]})
    rival["metadata"]["name"] = "rivals.stable.example.com"
    crd = await client.create(CRD, rival)
    accepted = next(one for one in crd["status"]["conditions"] if one["type"] == "NamesAccepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "ListKindConflict")
    with pytest.raises(NotFound):
        await client.list(Kind("stable.example.com", "v1", "CronTab", "rivals"))


async def test_the_instances_go_before_the_definition(client: Client) -> None:
    await client.create(CRD, changed())
    await client.create(CRON_TAB, tab(), "default")
    await client.delete(CRD, DEFINITION["metadata"]["name"])
    crd = await client.get(CRD, DEFINITION["metadata"]["name"])
    assert await clean_up(client, crd)
    with pytest.raises(NotFound):
        await client.get(CRD, DEFINITION["metadata"]["name"])
    with pytest.raises(NotFound):
        await client.list(CRON_TAB)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"group": "other.example.com"}, 'must be spec.names.plural+"."+spec.group'),
        (
            {"scope": "Everywhere"},
            'spec.scope: Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"',
        ),
        (
            {"versions": [{"name": "v1", "served": True, "storage": True}]},
            "spec.versions[0].schema.openAPIV3Schema: Required",
        ),
        (
            {"versions": [{**DEFINITION["spec"]["versions"][0], "storage": False}]},
            "must have exactly one version marked as storage version",
        ),
        ({"names": {"plural": "crontabs", "kind": "Cron_Tab"}}, "may have mixed case, but should otherwise match"),
    ],
)
async def test_definitions_that_are_refused(client: Client, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid) as found:
        await client.create(CRD, changed(**change))
    assert text in found.value.message


ROOT = "spec.validation.openAPIV3Schema"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "object", "properties": {"a": {}}}, f"{ROOT}.properties[a].type: Required value: must not be empty"),
        ({"properties": {}}, f"{ROOT}.type: Required value: must not be empty at the root"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, f"{ROOT}.properties[a].items: Required value"),
        ({"type": "object", "properties": {"a": {"type": "int"}}}, 'type: Unsupported value: "int"'),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
            "must be a valid regular expression, but isn't",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}},
            f"{ROOT}.properties[a].default: Invalid value",
        ),
        (
            {"type": "object", "anyOf": [{"properties": {"b": {}}}]},
            f"{ROOT}.properties[b]: Required value: because it is defined in {ROOT}.anyOf[0].properties[b]",
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.nope"}], "properties": {}},
            "compilation failed: ERROR: <input>:1:5: undefined field 'nope'",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map",
             "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}},
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
    ],
)  # fmt: skip
async def test_schemas_that_are_refused(client: Client, schema: dict[str, Any], text: str) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    with pytest.raises(Invalid) as found:
        await client.create(CRD, changed(versions=[version]))
    assert text in found.value.message


async def test_kubectl(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
    await kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=5s")
    body = json.dumps({"apiVersion": "stable.example.com/v1", "kind": "CronTab", **tab()})
    assert "created" in (await kubectl("apply", "-f", "-", stdin=body)).stdout
    assert "unchanged" in (await kubectl("apply", "-f", "-", stdin=body)).stdout
    await kubectl("scale", "ct/tab", "--replicas=4")
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    await kubectl("patch", "ct", "tab", "--type=merge", "--subresource=status", "-p", ready)
    shown = (await kubectl("get", "ct")).stdout.splitlines()
    assert shown[0].split() == ["NAME", "SPEC", "REPLICAS", "READY", "AGE"]
    assert shown[1].split()[:8] == ["tab", "*", "*", "*", "*", "*", "4", "True"]
    assert "When it runs." in (await kubectl("explain", "ct.spec.cronSpec")).stdout
    assert "crontab.stable.example.com/tab" in (await kubectl("get", "all")).stdout
    found = await kubectl("get", "ct", "--field-selector", "spec.cronSpec=other", "-o", "name")
    assert found.stdout == ""
    strict = await kubectl("apply", "-f", "-", stdin=body.replace("cronSpec", "cronSpek"), check=False)
    assert 'unknown field "spec.cronSpek"' in strict.stderr
    assert (await kubectl("diff", "-f", "-", stdin=body)).stdout == ""
