"""Patches and server-side apply, in the words of a real Kubernetes 1.36.3 API server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.apiserver.asking import (
    APPLY,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    NAMESPACE,
    STRATEGIC,
    THINGS,
    Ask,
    config_map,
    definition,
    thing,
)

from danlu.embedded.cluster import Cluster

MAP = f"{NAMESPACE}/configmaps/c"
UNDETERMINABLE = "the name of the object (c based on URL) was undeterminable: name must be provided"
OTHER_UID = "12345678-1234-1234-1234-123456789012"


@pytest.fixture
async def ask(cluster: Cluster) -> Ask:
    ask = Ask(cluster)
    await ask.made(f"{NAMESPACE}/configmaps", config_map("c", a="1"))
    return ask


async def test_what_a_patch_may_not_change(ask: Ask) -> None:
    other_namespace = "the namespace of the provided object does not match the namespace sent on the request"
    cases: list[tuple[Any, int, str]] = [
        ({"name": "d"}, 400, "the name of the object (d) does not match the name on the URL (c)"),
        ({"name": None}, 400, UNDETERMINABLE),
        ({"namespace": "other"}, 400, other_namespace),
        ({"uid": OTHER_UID}, 422, f'metadata.uid: Invalid value: "{OTHER_UID}": field is immutable'),
        ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, 422, "metadata.deletionTimestamp: Invalid value: "
         '"2020-01-01T00:00:00Z": field is immutable'),
        ({"deletionGracePeriodSeconds": 5}, 422,
         "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"),
    ]  # fmt: skip
    for metadata, status, message in cases:
        answer = await ask("PATCH", MAP, {"metadata": metadata}, MERGE)
        assert answer.status == status, metadata
        assert answer.message == (message if status == 400 else f'ConfigMap "c" is invalid: {message}')
    assert (await ask("PATCH", MAP, {"metadata": None}, MERGE)).message == UNDETERMINABLE
    for metadata in ({"namespace": None}, {"uid": None}, {"creationTimestamp": None}, {"generation": 5}):
        assert (await ask("PATCH", MAP, {"metadata": metadata}, MERGE)).status == 200, metadata


async def test_a_patch_to_another_type_is_an_invalid_patch(ask: Ask) -> None:
    cases: list[tuple[Any, str, str]] = [
        ({"kind": "Secret"}, MERGE, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ({"apiVersion": "v2"}, MERGE,
         'no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'),
        ({"data": {"a": 1}}, MERGE, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ([{"op": "add", "path": "/data", "value": "x"}], JSON_PATCH,
         "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"),
    ]  # fmt: skip
    for body, content_type, why in cases:
        answer = await ask("PATCH", MAP, body, content_type)
        assert answer.status == 422, body
        assert answer.message.startswith(' "" is invalid: patch: Invalid value: "{')
        assert answer.message.endswith(f": {why}")
        assert answer.body["details"].keys() == {"causes"}
    assert (await ask("PATCH", MAP, {"kind": "Secret", "data": {"b": "2"}}, STRATEGIC)).body["kind"] == "ConfigMap"
    strict = await ask("PATCH", f"{MAP}?fieldValidation=Strict", {"foo": 1}, MERGE)
    assert strict.message.endswith(': strict decoding error: unknown field "foo"')


async def test_bodies_that_are_no_patch(ask: Ask) -> None:
    into_map = "into Go value of type map[string]interface {}"
    cases = [
        ("[]", MERGE, 400, f"error decoding patch: json: cannot unmarshal array {into_map}"),
        ('"x"', MERGE, 400, f"error decoding patch: json: cannot unmarshal string {into_map}"),
        ("[]", STRATEGIC, 400, f"json: cannot unmarshal array {into_map}"),
        ("{}", "application/json", 415, "415: Unsupported Media Type"),
    ]
    for body, content_type, status, message in cases:
        answer = await ask("PATCH", MAP, body, content_type)
        assert (answer.status, answer.message) == (status, message)
    answer = await ask("PATCH", f"{MAP}?force=true", {}, MERGE)
    assert answer.message == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    )


async def test_field_ownership_moves_from_client_side_to_server_side(ask: Ask) -> None:
    """What kubectl does when it migrates an object: it rewrites managedFields itself."""
    entry = {
        "manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }  # fmt: skip
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    answer = await ask("PATCH", MAP, patch, JSON_PATCH)
    assert answer.body["metadata"]["managedFields"] == [entry]
    resets: list[list[dict[str, Any]]] = [[], [{}]]
    for reset in resets:
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": reset}]
        assert "managedFields" not in (await ask("PATCH", MAP, patch, JSON_PATCH)).body["metadata"]
        await ask("PATCH", MAP, [{"op": "add", "path": "/metadata/managedFields", "value": [entry]}], JSON_PATCH)


async def test_applies_that_are_refused(ask: Ask) -> None:
    manager = "?fieldManager=me"
    undeclared = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    cases: list[tuple[str, Any, int, str]] = [
        ("", config_map("c"), 422,
         'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'),
        (manager, {"metadata": {"name": "c"}}, 400, "invalid object type: /, Kind="),
        (manager, {**config_map("c"), "kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        (manager, config_map("c", {"managedFields": []}), 400, "metadata.managedFields must be nil"),
        (manager, {**config_map("c"), "foo": 1}, 400, undeclared),
        (manager, "[]", 400, "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
         "unmarshal array into Go value of type map[string]interface {}"),
        (f"{manager}&force=true", config_map("c", {"uid": "abc"}), 422,
         'ConfigMap "c" is invalid: metadata.uid: Invalid value: "abc": field is immutable'),
    ]  # fmt: skip
    for query, body, status, message in cases:
        answer = await ask("PATCH", MAP + query, body, APPLY)
        assert (answer.status, answer.message) == (status, message)
    nameless = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert (await ask("PATCH", MAP + manager, nameless, APPLY)).status == 200
    answer = await ask("PATCH", f"{NAMESPACE}/configmaps/new{manager}", nameless, APPLY)
    assert answer.status == 400
    assert answer.message.endswith("(new based on URL) was undeterminable: name must be provided")


async def test_undeclared_fields_are_named_by_the_keys_of_their_lists(ask: Ask) -> None:
    spec = {"containers": [{"name": "x", "image": "i", "foo": 1}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    answer = await ask("PATCH", f"{NAMESPACE}/pods/p?fieldManager=me", pod, APPLY)
    assert answer.message == (
        'failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers[name="x"].foo: field not declared '
        "in schema"
    )


async def test_custom_objects(ask: Ask) -> None:
    await ask.made(DEFINITIONS, definition())
    applied = thing("t", spec={"color": "x", "items": [{"name": "a", "v": 1}]}, status={"ready": True})
    made = await ask("PATCH", f"{THINGS}/t?fieldManager=me", applied, APPLY)
    assert made.status == 201
    assert "status" not in made.body
    assert "f:status" not in made.body["metadata"]["managedFields"][0]["fieldsV1"]
    again = await ask("PATCH", f"{THINGS}/t?fieldManager=me", applied, APPLY)
    assert again.body["metadata"]["resourceVersion"] == made.body["metadata"]["resourceVersion"]
    cases: list[tuple[Any, str, int, str]] = [
        ({"kind": "Bar"}, MERGE, 422, 'Bar.example.com "t" is invalid: kind: Invalid value: "Bar": must be Thing'),
        ({"apiVersion": "example.com/v2"}, MERGE, 422, 'Thing.example.com "t" is invalid: apiVersion: Invalid value: '
         '"example.com/v2": must be example.com/v1'),
        ({}, STRATEGIC, 415, "the body of the request was in an unknown format - accepted media types include: "
         "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"),
    ]  # fmt: skip
    for body, content_type, status, message in cases:
        answer = await ask("PATCH", f"{THINGS}/t", body, content_type)
        assert (answer.status, answer.message) == (status, message)


async def test_scales(ask: Ask) -> None:
    await ask.made(DEFINITIONS, definition())
    await ask.made(THINGS, thing("t"))
    answer = await ask("GET", f"{THINGS}/t/scale")
    assert answer.message == 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    scale: dict[str, Any] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "t"}}
    assert (await ask("PUT", f"{THINGS}/t/scale", {**scale, "spec": {"replicas": 3}})).body["spec"] == {"replicas": 3}
    answer = await ask("PATCH", f"{THINGS}/t/scale", {"spec": {"replicas": -4}}, MERGE)
    assert answer.message == (
        'Thing.example.com "t" is invalid: .spec.replicas: Invalid value: -4: should be a non-negative integer'
    )
    answer = await ask("PUT", f"{THINGS}/t/scale", {**scale, "metadata": {"name": "u"}})
    assert answer.message == "the name of the object (u) does not match the name on the URL (t)"
    answer = await ask("PUT", f"{THINGS}/t/scale", config_map("t"))
    assert answer.message.endswith("converting (v1.ConfigMap) to (autoscaling.Scale): unknown conversion")
    conflict = await ask("PATCH", f"{THINGS}/t/scale?fieldManager=me", {**scale, "spec": {"replicas": 7}}, APPLY)
    assert conflict.status == 409
    assert conflict.body["details"]["causes"][0]["field"] == ".spec.replicas"
    forced = await ask("PATCH", f"{THINGS}/t/scale?fieldManager=me&force=1", {**scale, "spec": {"replicas": 7}}, APPLY)
    assert forced.body["spec"] == {"replicas": 7}
