from __future__ import annotations

from typing import Any

import pytest

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
