from __future__ import annotations

from typing import Any

import pytest

from danlu.errors import BadRequest, Invalid
from danlu.meta.patch import json_patch, merge_patch

DOCUMENT = {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": None}, "g": 1}


@pytest.mark.parametrize(
    ("op", "path", "value", "found"),
    [
        ("add", "/a/b/1", 9, [1, 9, 2, 3]),
        ("add", "/a/b/-", 9, [1, 2, 3, 9]),
        ("add", "/a/b/3", 9, [1, 2, 3, 9]),
        ("add", "/a/b/-1", 9, [1, 2, 3, 9]),
        ("replace", "/a/b/0", 9, [9, 2, 3]),
        ("replace", "/a/b/-1", 9, [1, 2, 9]),
        ("remove", "/a/b/0", None, [2, 3]),
        ("replace", "/a/b", [], []),
        ("test", "/a/b", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_lists(op: str, path: str, value: Any, found: list[int]) -> None:
    patched = json_patch(DOCUMENT, [{"op": op, "path": path, "value": value}])
    assert patched["a"]["b"] == found
    assert DOCUMENT["a"]["b"] == [1, 2, 3]  # type: ignore[index]


def test_escapes_move_copy_and_the_lenient_replace() -> None:
    patched = json_patch(
        DOCUMENT,
        [
            {"op": "move", "from": "/a/c~1d", "path": "/h"},
            {"op": "copy", "from": "/a/b", "path": "/i"},
            {"op": "add", "path": "/i/0", "value": 0},
            {"op": "replace", "path": "/new", "value": 1},
            {"op": "test", "path": "/a/e~0f", "value": None},
            {"op": "test", "path": "/missing", "value": None},
        ],
    )
    assert patched["h"] == "x"
    assert patched["i"] == [0, 1, 2, 3]
    assert patched["a"]["b"] == [1, 2, 3]
    assert patched["new"] == 1


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ({"op": "remove", "path": "/x"}, "Unable to remove nonexistent key: x"),
        ({"op": "remove", "path": "/a/b/7"}, "Unable to access invalid index: 7"),
        ({"op": "add", "path": "/x/y", "value": 1}, 'add operation does not apply: doc is missing path: "/x/y"'),
        ({"op": "add", "path": "", "value": 1}, "missing path"),
        ({"op": "add", "path": "/g/x", "value": 1}, "missing path"),
        ({"op": "test", "path": "/g", "value": True}, "testing value /g failed"),
        ({"op": "test", "path": "/g", "value": 1.0}, "testing value /g failed"),
        ({"op": "move", "from": "/x", "path": "/y"}, "Unable to remove nonexistent key"),
        ({"op": "jump", "path": "/x"}, "Unexpected kind: jump"),
        ({"op": "add"}, "failed to decode path"),
        ({"op": "replace", "path": "", "value": []}, "not an object"),
        ({"op": "replace", "path": "/a/b/9", "value": 1}, "doc is missing key"),
        ({"op": "replace", "path": "/a/b/x", "value": 1}, "doc is missing key"),
    ],
)
def test_what_does_not_apply(op: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid) as refused:
        json_patch(DOCUMENT, [op])
    assert refused.value.message.startswith("the server rejected our request due to an error in our request")
    assert words in refused.value.message


def test_what_is_no_patch() -> None:
    patches: tuple[Any, ...] = ({}, ["x"], None)
    for patch in patches:
        with pytest.raises(BadRequest):
            json_patch(DOCUMENT, patch)


def test_merge_patch() -> None:
    patched = merge_patch(DOCUMENT, {"a": {"b": None, "n": {"x": None, "y": 1}}, "g": {"z": 1}})
    assert patched == {"a": {"c/d": "x", "e~f": None, "n": {"y": 1}}, "g": {"z": 1}}
    with pytest.raises(BadRequest, match="Invalid JSON Patch"):
        merge_patch(DOCUMENT, [])
