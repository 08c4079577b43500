"""What holds of every patch, whatever it patches."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.errors import ApiError
from danlu.meta.nesting import is_too_deep
from danlu.meta.patch import apply, json_patch, merge_patch, strategic_merge_patch
from danlu.meta.schema import native

settings.register_profile("properties", derandomize=True, deadline=None, database=None, max_examples=60)
PROPERTIES = settings.get_profile("properties")
POD = native("io.k8s.api.core.v1.Pod")
CONFIG_MAP = native("io.k8s.api.core.v1.ConfigMap")
NOW = "2026-01-01T00:00:01Z"

keys = st.sampled_from(["a", "b", "c", "", "a/b", "~", "-", "0", "$patch", "metadata", "名"])
scalars = (
    st.none() | st.booleans() | st.integers(-3, 2**53) | st.floats(-2, 2) | st.sampled_from(["", "a", "b", "\x00"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
documents = st.dictionaries(keys, values, max_size=4)
WITHOUT_NULL = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def pointer(path: list[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


pointers = st.lists(keys | st.sampled_from(["1", "-1", "99", "01"]), max_size=3).map(pointer) | st.sampled_from(
    ["x", "//"]
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "fly"])},
    optional={"path": pointers | scalars, "from": pointers, "value": values},
)


def outcome(run: Any, *given: Any) -> Any:
    """What comes back, or the refusal. Anything but an ApiError is a mistake of ours and fails the test."""
    before = copy.deepcopy(given)
    try:
        found = run(*given)
    except ApiError as error:
        found = error
    if isinstance(found, ApiError):
        assert 400 <= found.code < 500, found
        return found
    assert given == before, "what was given was changed"
    orjson.dumps(found)
    return found


# -- JSON patch


@PROPERTIES
@given(documents, st.lists(operations, max_size=6) | values)
def test_json_patch_applies_or_is_refused(document: dict[str, Any], patch: Any) -> None:
    found = outcome(json_patch, document, patch)
    assert isinstance(found, dict | ApiError)


def difference(old: Any, new: Any, path: list[str]) -> list[dict[str, Any]]:
    """Operations that make the one of the other, by a way of this test's own."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = [{"op": "remove", "path": pointer([*path, key])} for key in old if key not in new]
        for key, value in new.items():
            place = [*path, key]
            if key not in old:
                found.append({"op": "add", "path": pointer(place), "value": value})
            else:
                found += difference(old[key], value, place)
        return found
    return [] if same(old, new) else [{"op": "replace", "path": pointer(path), "value": new}]


def same(left: Any, right: Any) -> bool:
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)


@PROPERTIES
@given(documents, documents)
def test_a_difference_leads_to_the_other_and_its_inverse_back(old: dict[str, Any], new: dict[str, Any]) -> None:
    there = json_patch(old, difference(old, new, []))
    assert same(there, new)
    assert same(json_patch(there, difference(new, old, [])), old)


@PROPERTIES
@given(documents, st.lists(operations, min_size=1, max_size=4))
def test_a_json_patch_is_whole_or_not_at_all(document: dict[str, Any], patch: list[dict[str, Any]]) -> None:
    """One by one they come to the same, unless one of them is refused or an object stops being one on the way."""
    whole = outcome(json_patch, document, patch)
    one_by_one: Any = document
    for operation in patch:
        one_by_one = outcome(json_patch, one_by_one, [operation])
        if isinstance(one_by_one, ApiError):
            return
    assert not isinstance(whole, ApiError)
    assert same(whole, one_by_one)


# -- merge patch


@PROPERTIES
@given(documents, documents | scalars)
def test_a_merge_patch_twice_is_once(document: dict[str, Any], patch: Any) -> None:
    once = outcome(merge_patch, document, patch)
    if not isinstance(once, ApiError):
        assert same(merge_patch(once, patch), once)


@PROPERTIES
@given(documents, st.dictionaries(keys, WITHOUT_NULL, max_size=4))
def test_a_merge_patch_without_null_is_contained_in_what_comes_out(document: dict[str, Any], patch: Any) -> None:
    def contains(whole: Any, part: Any) -> bool:
        if isinstance(part, dict):
            return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
        return same(whole, part)

    assert contains(merge_patch(document, patch), patch)


def merge_difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            found[key] = merge_difference(old[key], value)
        elif key not in old or not same(old[key], value):
            found[key] = value
    return found


@PROPERTIES
@given(st.dictionaries(keys, WITHOUT_NULL, max_size=4), st.dictionaries(keys, WITHOUT_NULL, max_size=4))
def test_what_has_no_null_can_be_reached_by_a_merge_patch(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert same(merge_patch(old, merge_difference(old, new)), new)


# -- strategic merge patch

names = st.sampled_from(["a", "b", "c"])
container = st.fixed_dictionaries({"name": names}, optional={"image": names, "args": st.lists(names, max_size=2)})
containers = st.lists(container, max_size=3, unique_by=lambda one: one["name"])
pods = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({"containers": containers}, optional={"nodeName": names, "hostname": names})},
    optional={"metadata": st.fixed_dictionaries({}, optional={"finalizers": st.lists(names, max_size=3, unique=True)})},
)
directives = st.sampled_from(
    [
        {"$patch": "replace"}, {"$patch": "delete"}, {"$patch": "explode"}, {"$retainKeys": ["a"]}, {"$retainKeys": 1},
        {"$setElementOrder/containers": [{"name": "a"}]}, {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"$setElementOrder/finalizers": ["b", "a"]}, {"containers": [{"$patch": "replace"}]},
        {"containers": [{"$patch": "delete", "name": "a"}]}, {"containers": [{"image": "x"}]}, {"containers": None},
    ]
)  # fmt: skip


@PROPERTIES
@given(pods, pods)
def test_a_strategic_patch_twice_is_once(pod: dict[str, Any], patch: dict[str, Any]) -> None:
    once = strategic_merge_patch(pod, patch, POD)
    assert same(strategic_merge_patch(once, patch, POD), once)
    merged = {one["name"]: one for one in once["spec"]["containers"]}
    assert len(merged) == len(once["spec"]["containers"]), "a key stands twice"
    assert set(merged) == {one["name"] for side in (pod, patch) for one in side["spec"]["containers"]}
    for one in patch["spec"]["containers"]:
        assert one.items() <= merged[one["name"]].items()


@PROPERTIES
@given(pods, values | st.fixed_dictionaries({"spec": directives, "metadata": directives | values}))
def test_a_strategic_patch_applies_or_is_refused(pod: dict[str, Any], patch: Any) -> None:
    outcome(lambda obj, change: strategic_merge_patch(obj, change, POD), pod, patch)


# -- server-side apply


def configured(data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}, "data": data}


maps = st.dictionaries(names, names, max_size=3)


def applied(live: Any, data: dict[str, str], manager: str, force: bool = True) -> Any:
    return apply(live, configured(data), manager, force, CONFIG_MAP, "v1", NOW)


@PROPERTIES
@given(maps, maps, maps)
def test_apply_twice_is_once_and_takes_back_what_it_no_longer_says(
    first: dict[str, str], second: dict[str, str], others: dict[str, str]
) -> None:
    live = applied(None, first, "me")
    assert applied(live, first, "me") == live
    live = applied(live, others, "you")
    found = applied(live, second, "me")
    again = applied(found, second, "me")
    # An empty map is none: it is left out when the object is written.
    assert [again.pop("data", {}), again] == [found.pop("data", {}), found]


@PROPERTIES
@given(maps, maps, maps)
def test_after_an_apply_there_is_what_the_managers_say(
    first: dict[str, str], second: dict[str, str], others: dict[str, str]
) -> None:
    live = applied(applied(None, first, "me"), others, "you")
    assert live.get("data", {}) == {**first, **others}
    assert applied(live, second, "me").get("data", {}) == {**others, **second}


@PROPERTIES
@given(maps, maps)
def test_a_conflict_names_what_somebody_else_owns(mine: dict[str, str], yours: dict[str, str]) -> None:
    live = applied(None, mine, "me")
    differing = {key for key in mine.keys() & yours.keys() if mine[key] != yours[key]}
    found = outcome(lambda obj, data: applied(obj, data, "you", force=False), live, yours)
    assert isinstance(found, ApiError) == bool(differing)
    if isinstance(found, ApiError):
        assert all(f".data.{key}" in found.message for key in differing)


@PROPERTIES
@given(values, values)
def test_apply_applies_or_is_refused(live: Any, change: Any) -> None:
    stored = {**configured({}), "data": live} if isinstance(live, dict) else None
    patch = {**configured({}), "data": change}
    outcome(lambda obj, config: apply(obj, config, "me", True, CONFIG_MAP, "v1", NOW), stored, patch)


def test_nothing_gets_deep_by_being_put_into_itself() -> None:
    patch = [{"op": "add", "path": "/a", "value": {}}]
    patch += [{"op": "copy", "from": "", "path": "/a/a"}, {"op": "move", "from": "/a", "path": "/b"}] * 300
    found = outcome(json_patch, {"a": {}}, patch)
    assert isinstance(found, ApiError) or not is_too_deep(found)
