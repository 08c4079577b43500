from __future__ import annotations

from typing import Any

import pytest

from danlu.meta.goregex import PatternError, compile_go
from danlu.meta.jsonpath import JsonPath, JsonPathError, printed

DATA: dict[str, Any] = {
    "spec": {"a.b": 1, "ports": [{"name": "x", "port": 1}, {"name": "y", "port": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Failed", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.ports[0].name", ["x"]),
        ("{.spec.ports[*].port}", [1, 2]),
        (".spec.ports[-1:].name", ["y"]),
        (".spec['a.b']", [1]),
        (r".spec.a\.b", [1]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".spec.ports[?(@.port>1)].name", ["y"]),
        ("..port", [1, 2]),
        (".spec.nope.deeper", []),
        (".", [DATA]),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(DATA) == found


@pytest.mark.parametrize("path", [".spec[", ".spec[abc]", ".a[?(@.x==~)]"])
def test_nonsense_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


def test_values_print_as_kubectl_prints_them() -> None:
    assert [printed(value) for value in ("a", 1, 1.5, True, None, {"a": [1]})] == [
        "a",
        "1",
        "1.5",
        "true",
        "",
        '{"a":[1]}',
    ]


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^[[:alpha:]]+\z", "abc", True),
        (r"^\d+$", "\u0661", False),
        (r"\Qa.b\E", "a.b", True),
        ("(?i)ABC", "xabcx", True),
        (r"^[^\]]+$", "ab", True),
    ],
)
def test_go_patterns(pattern: str, text: str, matches: bool) -> None:
    assert (compile_go(pattern).search(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "[z-a]"])
def test_what_go_does_not_take(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_go(pattern)
