"""Functions are short and take few things. What does not hold to that yet is listed, and the list only shrinks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT

SOURCE = ROOT / "src/danlu"
MOST_LINES, MOST_PARAMETERS = 60, 6  # without self
WITHOUT_EXCEPTION = ("kinds", "runtime")

# By file name and function, so that a file may move. Mend one, and strike it out here.
EXCEPTIONS = {
    "serversideapply.py _applied",
    "serversideapply.py apply",
    "client.py Client.delete",
    "client.py Client.patch",
    "client.py Client.watch",
    "managed.py track_update",
    "rbac.py Authorizer._decide",
    "rbac.py Authorizer._kept",
    "rbac.py Authorizer.authorize",
    "typed.py _compare_value",
    "watchhandler.py _follow",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, outer: str = "") -> Iterator[tuple[str, Function]]:
    """With the names of what they stand in."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Function):
            yield f"{outer}{inner.name}", inner
        name = f"{outer}{inner.name}." if isinstance(inner, Function | ast.ClassDef) else outer
        yield from _functions(inner, name)


def _lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _parameters(function: Function) -> int:
    found = function.args
    named = [one.arg for one in (*found.posonlyargs, *found.args, *found.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")])


def _too_large(path: Path) -> Iterator[tuple[str, str]]:
    """Name, and what is wrong with it."""
    for name, function in _functions(ast.parse(path.read_text())):
        lines, parameters = _lines(function), _parameters(function)
        if lines > MOST_LINES or parameters > MOST_PARAMETERS:
            where = f"{path.relative_to(ROOT)}:{function.lineno}"
            yield f"{path.name} {name}", f"{where} {name}: {lines} lines, {parameters} parameters"


def _all() -> dict[str, tuple[Path, str]]:
    return {name: (path, text) for path in sorted(SOURCE.rglob("*.py")) for name, text in _too_large(path)}


def test_functions_are_short_and_take_few_things() -> None:
    strict = tuple(SOURCE / name for name in WITHOUT_EXCEPTION)
    found = [
        text
        for name, (path, text) in _all().items()
        if name not in EXCEPTIONS or any(path.is_relative_to(one) for one in strict)
    ]
    rule = f"at most {MOST_LINES} lines and {MOST_PARAMETERS} parameters"
    assert not found, f"{rule}; make a dataclass of what belongs together: {found}"


def test_what_was_mended_is_struck_out() -> None:
    mended = EXCEPTIONS - set(_all())
    assert not mended, f"no exception any more: {sorted(mended)}"
