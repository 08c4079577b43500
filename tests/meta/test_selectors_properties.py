"""Selectors: what is printed can be read again, and what is read means what a few plain lines say that it means."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from danlu.meta import fieldselector, labels
from danlu.meta.labels import LabelRequirement, Selector, SelectorError, parse_selector, requirement

PROPERTIES = settings(derandomize=True, deadline=None, database=None, max_examples=100)
_ends = st.text(alphabet="aZ09n", min_size=1, max_size=2)
words = st.one_of(_ends, st.builds("{}{}{}".format, _ends, st.sampled_from("_.-"), _ends))
# A key that is spelled like an operator cannot be told from one, by Kubernetes either.
label_keys = st.one_of(words, st.builds("{}.example/{}".format, st.sampled_from(["a", "b-c"]), words)).filter(
    lambda key: key not in ("in", "notin")
)
label_values = st.one_of(words, st.just(""), st.integers(-20, 20).map(str), st.sampled_from(["1_0", "007", "9" * 30]))
numbers = st.integers(-20, 20).map(lambda number: str(abs(number)))


@st.composite
def requirements(draw: st.DrawFn) -> LabelRequirement:
    operator = draw(st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]))
    if operator in ("exists", "!"):
        return requirement(draw(label_keys), operator)
    if operator in ("gt", "lt"):
        return requirement(draw(label_keys), operator, [draw(numbers)])
    if operator in ("in", "notin"):
        found = draw(st.lists(words, min_size=1, max_size=3, unique=True))
        return requirement(draw(label_keys), operator, sorted(found))
    return requirement(draw(label_keys), operator, [draw(words)])


selectors = st.lists(requirements(), max_size=4).map(
    lambda found: Selector(tuple(sorted(found, key=lambda one: one.key)))
)


@PROPERTIES
@given(selectors)
def test_what_is_printed_is_read_again(selector: Selector) -> None:
    assert parse_selector(str(selector)) == selector


def naive(one: LabelRequirement, given: Mapping[str, str]) -> bool:
    """Kubernetes' words, one after the other."""
    has, value = one.key in given, given.get(one.key, "")
    if one.operator in ("=", "==", "in"):
        return has and value in one.values
    if one.operator in ("!=", "notin"):
        return not has or value not in one.values
    if one.operator in ("exists", "!"):
        return has == (one.operator == "exists")
    if not has or not re.fullmatch(r"[+-]?[0-9]+", value) or not -(2**63) <= int(value) < 2**63:
        return False  # strconv.ParseInt of 64 bits
    return int(value) > int(one.values[0]) if one.operator == "gt" else int(value) < int(one.values[0])


@PROPERTIES
@given(selectors, st.dictionaries(label_keys, label_values, max_size=4), st.data())
@example(parse_selector("a>5"), {"a": "1_0"}, None)
@example(parse_selector("a>5"), {"a": "9" * 30}, None)
def test_matching_agrees_with_a_naive_model(
    selector: Selector, given: dict[str, str], data: st.DataObject | None
) -> None:
    if data is not None and selector.requirements:  # at least one of the keys is there
        one = data.draw(st.sampled_from(selector.requirements))
        given = {**given, one.key: data.draw(st.one_of(label_values, st.sampled_from([*one.values, "x"])))}
    assert selector.matches(given) == all(naive(one, given) for one in selector.requirements)


@PROPERTIES
@given(st.text(alphabet="ab=!<>(), inot,\t\x00é", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_selector(text)
    except SelectorError:
        return
    assert parse_selector(str(found)) == found


@PROPERTIES
@given(st.dictionaries(label_keys, words, max_size=4), st.dictionaries(label_keys, words, max_size=4))
def test_a_map_selects_what_contains_it(wanted: dict[str, str], given: dict[str, str]) -> None:
    assert labels.from_map(wanted).matches(given) == (wanted.items() <= given.items())
    assert labels.from_label_selector({"matchLabels": wanted}).matches(given) == (wanted.items() <= given.items())
    assert labels.from_map(wanted).matches({**given, **wanted})


# -- fields

field_names = st.sampled_from(["metadata.name", "metadata.namespace", "status.phase", "spec.nodeName"])
field_values = st.text(alphabet="ab,=\\! é", max_size=6)
terms = st.builds(fieldselector.FieldTerm, field_names, field_values, st.booleans())


def without_spaces_lost(selector: fieldselector.FieldSelector) -> fieldselector.FieldSelector:
    return fieldselector.FieldSelector(tuple(sorted(selector.terms, key=str)))


@PROPERTIES
@given(st.lists(terms, max_size=4))
def test_a_field_selector_that_is_printed_is_read_again(found: list[fieldselector.FieldTerm]) -> None:
    selector = without_spaces_lost(fieldselector.FieldSelector(tuple(found)))
    again = fieldselector.parse(str(selector))
    assert without_spaces_lost(again) == selector


@PROPERTIES
@given(st.lists(terms, max_size=4), st.dictionaries(field_names, field_values, max_size=4))
def test_a_field_selector_agrees_with_a_naive_model(
    found: list[fieldselector.FieldTerm], fields: dict[str, str]
) -> None:
    wanted = all((fields.get(one.field, "") == one.value) == one.equal for one in found)
    assert fieldselector.FieldSelector(tuple(found)).matches(fields) == wanted


@PROPERTIES
@given(st.text(alphabet="a.=!,\\ é\x00", max_size=20))
def test_any_text_is_a_field_selector_or_refused(text: str) -> None:
    try:
        found = fieldselector.parse(text)
    except fieldselector.FieldSelectorError:
        return
    for one in found.terms:
        assert found.exact(one.field) is not None or not one.equal


def test_a_selector_is_bounded() -> None:
    for text in (",".join("a" for _ in range(10_000)), "a in (" + "b," * 10):
        with pytest.raises(SelectorError):
            parse_selector(text)
