from __future__ import annotations

import copy
from typing import Any

import pytest

from danlu.meta.schema import structural

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-z]+$"},
        "replicas": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 5, "default": 1},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "note": {"type": "string", "nullable": True},
        "when": {"type": "string", "format": "date-time"},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        "ports": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "surge": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "either": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}
SCHEMA = structural({"type": "object", "properties": {"spec": SPEC}})


def messages(spec: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    errors = SCHEMA.validate({"spec": spec}, None if old is None else {"spec": old})
    return [error.message() for error in errors]


def test_unknown_fields_are_pruned_except_where_preserved() -> None:
    obj = {
        "apiVersion": "x/v1",
        "metadata": {"name": "a", "junk": 1},
        "spec": {"image": "a", "bad": 1, "free": {"any": {"thing": 1}}, "ports": [{"name": "p", "no": 1}]},
        "top": 1,
    }
    assert SCHEMA.decode(obj).unknown == ["metadata.junk", "spec.bad", "spec.ports[0].no", "top"]
    assert obj == {
        "apiVersion": "x/v1",
        "metadata": {"name": "a"},
        "spec": {"image": "a", "free": {"any": {"thing": 1}}, "ports": [{"name": "p"}]},
    }


def test_null_is_dropped_defaulted_or_kept() -> None:
    obj: dict[str, Any] = {"spec": {"mode": None, "replicas": None, "note": None}}
    SCHEMA.decode(obj)
    SCHEMA.default(obj)
    assert obj["spec"] == {"replicas": 1, "note": None}


def test_defaults_reach_into_lists_and_are_copies() -> None:
    one: dict[str, Any] = {"spec": {"ports": [{"name": "a"}]}}
    two = copy.deepcopy(one)
    SCHEMA.default(one)
    SCHEMA.default(two)
    assert one["spec"]["ports"] == [{"name": "a", "port": 80}]
    assert one["spec"]["ports"][0] is not two["spec"]["ports"][0]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["spec.image: Required value"]),
        ({"image": ""}, ['spec.image: Invalid value: "": spec.image in body should be at least 1 chars long']),
        ({"image": "abcdefghi"}, ["spec.image: Too long: may not be more than 8 bytes"]),
        ({"image": "A"}, ["spec.image: Invalid value: \"A\": spec.image in body should match '^[a-z]+$'"]),
        (
            {"image": "a", "replicas": "x"},
            ['spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'],
        ),
        (
            {"image": "a", "replicas": 9},
            ["spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5"],
        ),
        ({"image": "a", "mode": "C"}, ['spec.mode: Unsupported value: "C": supported values: "A", "B"']),
        ({"image": "a", "ratio": 0}, ["spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"]),
        (
            {"image": "a", "when": "now"},
            ['spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'],
        ),
        ({"image": "a", "tags": ["x", "y", "x"]}, ['spec.tags[2]: Duplicate value: "x"']),
        ({"image": "a", "ports": [{"name": "p"}, {"name": "p"}]}, ['spec.ports[1]: Duplicate value: {"name":"p"}']),
        (
            {"image": "a", "ports": [{"name": n} for n in "pqrs"]},
            ["spec.ports: Too many: 4: must have at most 3 items"],
        ),
        (
            {"image": "a", "labels": {"k": 1}},
            ['spec.labels.k: Invalid value: "integer": spec.labels.k in body must be of type string: "integer"'],
        ),
        (
            {"image": "a", "surge": True},
            ['spec.surge: Invalid value: "boolean": spec.surge in body must be of type integer,string: "boolean"'],
        ),
        (
            {"image": "a", "either": {"a": "x", "b": "y"}},
            [
                '<nil>: Invalid value: "": "spec.either" must validate one and only one schema (oneOf). '
                "Found 2 valid alternatives"
            ],
        ),
        (
            {"image": "a", "template": {"kind": "Pod"}},
            ["spec.template.apiVersion: Required value"],
        ),
    ],
)
def test_errors_are_apiextensions_own(spec: dict[str, Any], expected: list[str]) -> None:
    assert messages(spec) == expected


def test_what_did_not_change_is_not_checked_again() -> None:
    old = {"image": "TOO-OLD", "mode": "A"}
    assert messages({**old, "mode": "B"}, old) == []
    assert messages({**old, "mode": "C"}, old) == ['spec.mode: Unsupported value: "C": supported values: "A", "B"']


def test_metadata_of_a_wrong_type_is_a_decoding_problem() -> None:
    problem = SCHEMA.decode({"metadata": {"labels": {"a": 1}}}).problem
    assert problem is not None
    assert "cannot unmarshal number into Go struct field ObjectMeta.labels of type string" in problem.message
