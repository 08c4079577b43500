from __future__ import annotations

from typing import Any

import pytest

from danlu.meta.cel.checker import DYN, CheckProblem, check, type_of
from danlu.meta.cel.costs import Budget, CostExceeded
from danlu.meta.cel.evaluator import BUDGET, compile_tree
from danlu.meta.cel.rules import compile_errors
from danlu.meta.cel.values import CelError
from danlu.meta.schema import structural


def run(source: str, **variables: Any) -> Any:
    tree, _ = check(source, dict.fromkeys(variables, DYN))
    return compile_tree(tree)({**variables, BUDGET: Budget()})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3", 7),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2.0", 3.5),
        ("'a' + 'b' == \"ab\"", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("{'a': 1}['a']", 1),
        ("2 in [1, 2] && 'k' in {'k': 1}", True),
        ("true ? 'y' : 'n'", "y"),
        ("false && 1 / 0 > 0", False),
        ("1 / 0 > 0 || true", True),
        ("[1, 2, 3].all(x, x > 0)", True),
        ("[1, 2, 3].exists(x, x == 2)", True),
        ("[1, 2].exists_one(x, x > 1)", True),
        ("[1, 2, 3].filter(x, x > 1).map(x, x * 2)", [4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("{'a': 1, 'b': 2}.all(k, v, k != 'c' && v < 3)", True),
        ("size('héllo') == 5 && b'abc'.size() == 3", True),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'hello'.substring(1, 3) + 'hello'.charAt(4)", "elo"),
        ("' x '.trim().upperAscii().replace('X', 'yz')", "yz"),
        ("['a', 'b'].join('-')", "a-b"),
        ("'abc'.matches('^a.c$')", True),
        ("'a1b22'.findAll('[0-9]+')", ["1", "22"]),
        ("'%s has %d of %.1f'.format(['x', 3, 2.5])", "x has 3 of 2.5"),
        ("[3, 1, 2].min() == 1 && [1, 2].sum() == 3 && [1, 2].isSorted()", True),
        ("quantity('1Gi').compareTo(quantity('1024Mi')) == 0", True),
        ("quantity('100m').add(quantity('900m')).asInteger()", 1),
        ("isQuantity('ten')", False),
        ("url('https://a.b:80/x?y=1').getHost()", "a.b:80"),
        ("isURL('not a url')", False),
        ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')", True),
        ("format.dns1123Label().validate('A_b').hasValue()", True),
        ("duration('1h30m') > duration('89m')", True),
        ("timestamp('2026-01-02T03:04:05Z').getFullYear()", 2026),
        ("string(1) + string(true) + string(1.5)", "1true1.5"),
        ("int('42') + int(1.9)", 43),
        ("type(1) == int", True),
        ("sets.equivalent([1, 2], [2, 1])", True),
        ("optional.of(3).orValue(1) + optional.none().orValue(1)", 4),
        ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
    ],
)
def test_expressions(source: str, value: Any) -> None:
    assert run(source) == value


def test_optional_selection() -> None:
    assert run("self.?a.?b.orValue(5)", self={"a": {"b": 1}}) == 1
    assert run("self.?z.?b.orValue(5)", self={"a": {}}) == 5
    assert run("self[?'a'].hasValue()", self={"a": 1}) is True


def test_escaped_names() -> None:
    assert run("self.__namespace__ == 'x' && self.a__dash__b == 1", self={"namespace": "x", "a-b": 1}) is True


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("self.missing == 1", "no such key: missing"),
        ("[1][3]", "index out of bounds: 3"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("dyn('a') < dyn(1)", "no such overload"),
        ("int('x')", 'strconv.ParseInt: parsing "x": invalid syntax'),
    ],
)
def test_evaluation_errors(source: str, text: str) -> None:
    with pytest.raises(CelError, match=text.replace("(", r"\(")):
        run(source, self={})


def test_a_runaway_rule_is_stopped() -> None:
    with pytest.raises(CostExceeded, match="cost limit"):
        run("self.all(a, self.all(b, self.all(c, true)))", self=list(range(1000)))


TYPES = type_of(
    {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "any": {"x-kubernetes-int-or-string": True},
        },
    }
)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("self.foo == 1", "ERROR: <input>:1:5: undefined field 'foo'\n | self.foo == 1\n | ....^"),
        (
            "self.n == 'a'",
            "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'\n"
            " | self.n == 'a'\n | .......^",
        ),
        ("nope", "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^"),
        ("self.items.all(x, x.y == 1)", "undefined field 'y'"),
        ("self.s.size", "type 'string' does not support field selection"),
        ("self.n.startsWith('a')", "found no matching overload for 'startsWith' applied to 'int.(string)'"),
        ("frobnicate(self)", "undeclared reference to 'frobnicate'"),
        ("self.n >", "Syntax error: mismatched input '<EOF>'"),
        ("self.n && true", "found no matching overload for '_&&_' applied to '(int, bool)'"),
    ],
)
def test_rules_that_do_not_compile(source: str, text: str) -> None:
    with pytest.raises(CheckProblem) as found:
        check(source, {"self": TYPES})
    assert text in found.value.text


def test_dynamic_values_pass_the_checker() -> None:
    check("self.any == 1 || self.any == '10%'", {"self": TYPES})


RULES = structural(
    {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.size() < 5"}],
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [
                    {
                        "rule": "self.replicas <= self.max",
                        "messageExpression": "'no more than ' + string(self.max)",
                        "fieldPath": ".replicas",
                        "reason": "FieldValueForbidden",
                    }
                ],
                "properties": {
                    "replicas": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "no shrinking"}],
                    },
                    "max": {"type": "integer"},
                    "first": {
                        "type": "string",
                        "x-kubernetes-validations": [
                            {
                                "rule": "oldSelf.hasValue() || self == 'new'",
                                "optionalOldSelf": True,
                                "message": "be new",
                            }
                        ],
                    },
                    "ratio": {"type": "number", "x-kubernetes-validations": [{"rule": "self * 2.0 < 3.0"}]},
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "v": {
                                    "type": "string",
                                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}],
                                },
                            },
                        },
                    },
                },
            }
        },
    }
)


def violations(spec: dict[str, Any], old: dict[str, Any] | None = None, name: str = "a") -> list[str]:
    before = None if old is None else {"metadata": {"name": name}, "spec": old}
    return [error.message() for error in RULES.validate({"metadata": {"name": name}, "spec": spec}, before)]


def test_messages_paths_and_reasons() -> None:
    assert violations({"replicas": 1, "max": 2}) == []
    assert violations({"replicas": 3, "max": 2}) == ["spec.replicas: Forbidden: no more than 2"]
    assert violations({"replicas": 1, "max": 2}, name="toolong") == [
        "<nil>: Invalid value: failed rule: self.metadata.name.size() < 5"
    ]
    assert violations({"max": 2}) == [
        'spec: Invalid value: "object": no such key: replicas evaluating rule: self.replicas <= self.max'
    ]


def test_transitions_need_an_old_value() -> None:
    assert violations({"replicas": 1, "max": 5}, {"replicas": 2, "max": 5}) == [
        "spec.replicas: Invalid value: 1: no shrinking"
    ]
    old = {"replicas": 1, "max": 5, "items": [{"name": "a", "v": "1"}]}
    new = {"replicas": 1, "max": 5, "items": [{"name": "b", "v": "9"}, {"name": "a", "v": "2"}]}
    assert violations(new, old) == ['spec.items[1].v: Invalid value: "2": immutable']


def test_optional_old_self_runs_on_create_too() -> None:
    assert violations({"replicas": 1, "max": 5, "first": "x"}) == ['spec.first: Invalid value: "x": be new']
    assert violations({"replicas": 1, "max": 5, "first": "new"}) == []


def test_whole_numbers_in_number_fields_are_doubles() -> None:
    assert violations({"replicas": 1, "max": 5, "ratio": 1}) == []
    assert len(violations({"replicas": 1, "max": 5, "ratio": 2})) == 1


def test_rules_wait_until_the_object_is_sound() -> None:
    assert violations({"replicas": "x", "max": 2})[-1] == (
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    )


def test_old_self_cannot_be_used_where_lists_are_not_correlated() -> None:
    schema = {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}
    [error] = compile_errors({"type": "object", "properties": {"a": schema}}, "root")
    assert error.detail == (
        "oldSelf cannot be used on the uncorrelatable portion of the schema within root.properties[a]"
    )
