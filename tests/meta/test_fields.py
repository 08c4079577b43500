from __future__ import annotations

from danlu.meta import fields
from danlu.meta.wellknown import DEPLOYMENT, POD


def test_bodies_read_as_apimachinery_writes_them() -> None:
    assert fields.required("spec.a").message() == "spec.a: Required value"
    assert fields.required("spec.a", "must be").message() == "spec.a: Required value: must be"
    assert fields.invalid("a", 'x"y', "bad").message() == 'a: Invalid value: "x\\"y": bad'
    assert fields.invalid("a", -1, "bad").message() == "a: Invalid value: -1: bad"
    assert fields.invalid("a", None, "bad").body() == "Invalid value: null: bad"
    assert fields.invalid("a", {"b": ["<"]}, "bad").body() == 'Invalid value: {"b":["\\u003c"]}: bad'
    assert fields.duplicate("a", "x").body() == 'Duplicate value: "x"'
    assert fields.not_supported("a", "X", ["A", "B"]).body() == 'Unsupported value: "X": supported values: "A", "B"'
    assert fields.forbidden("a", "no").body() == "Forbidden: no"
    assert fields.too_long("a", "long", 3).body() == "Too long: may not be more than 3 bytes"
    assert fields.too_many("a", 5, 1).body() == "Too many: 5: must have at most 1 item"
    assert fields.not_found("a", "x").body() == 'Not found: "x"'


def test_invalid_error() -> None:
    one = fields.invalid_error(POD, "web", [fields.required("spec.a")])
    assert one.message == 'Pod "web" is invalid: spec.a: Required value'
    two = fields.invalid_error(DEPLOYMENT, "web", [fields.required("a"), fields.required("b"), fields.required("a")])
    assert two.message == 'Deployment.apps "web" is invalid: [a: Required value, b: Required value]'
    assert two.details["group"] == "apps"
    assert two.details["causes"][0] == {"reason": "FieldValueRequired", "message": "Required value", "field": "a"}
