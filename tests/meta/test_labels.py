from __future__ import annotations

import pytest

from danlu.meta.labels import (
    SelectorError,
    from_label_selector,
    parse_selector,
    validate_label_selector,
    validate_labels,
)


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b,c)", {"a": "c"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a>3", {"a": "4"}, True),
        ("a<3", {"a": "x"}, False),
        ("a=", {"a": ""}, True),
        ("x/y=b,c", {"x/y": "b", "c": "1"}, True),
        ("in in (in)", {"in": "in"}, True),
    ],
)
def test_matching(selector: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_selector(selector).matches(labels) is matches


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("_=b", 'unable to parse requirement: <nil>: Invalid value: "_": name part must consist'),
        ("a=_", 'unable to parse requirement: values[0][a]: Invalid value: "_": a valid label must be'),
        ("a>x", "the value must be an integer"),
    ],
)
def test_refused(selector: str, words: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_selector(selector)
    assert words in str(refused.value)


def test_printed_sorted_by_key() -> None:
    assert str(parse_selector("b in (z,y), a=1, !c")) == "a=1,b in (y,z),!c"


def test_label_selectors() -> None:
    assert not from_label_selector(None).matches({})
    assert from_label_selector({}).matches({"a": "b"})
    chosen = from_label_selector(
        {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}
    )
    assert chosen.matches({"a": "b"})
    assert not chosen.matches({"a": "b", "c": "d"})
    assert str(chosen) == "a=b,c notin (d)"


def test_validation() -> None:
    assert [error.field for error in validate_labels({"a b": "c d"}, "metadata.labels")] == ["metadata.labels"] * 2
    errors = validate_label_selector({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector")
    assert [error.message() for error in errors] == [
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    ]
