"""What the controllers say is said in Chinese, too, on the console's Chinese pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import yaml
from tests.house.tree import ROOT

TABLE = ROOT / "src/danlu/diagnose/reasons.yaml"
PARTS = ("kinds", "operator", "runtime", "embedded/controllers", "embedded/scheduler", "embedded/node")
TELL = {"normal", "warning", "event", "EventNote", "Trouble", "PagePhase", "condition", "set", "add"}
TELL |= {"_event", "_tell", "_lost", "_progress", "_fail", "_set"}  # what stands before them in a class
REASON = re.compile(r"[A-Z][a-z]+[A-Za-z]*")
NO_REASONS = {"Normal", "Warning", "True", "False", "Unknown"}


def test_every_reason_of_an_event_or_condition_has_chinese() -> None:
    """Messages are tried by web/src/why/said.test.ts, on the examples of tests/kinds."""
    known = set(yaml.safe_load(TABLE.read_text()))
    assert len(known) > 100, f"{TABLE} is not read as it is written"
    said = list(_said())
    assert len({reason for reason, _ in said}) > 80, "reasons are no longer found"
    lacking = [f"{reason} ({where})" for reason, where in said if reason not in known]
    assert not lacking, f"without Chinese in {TABLE.relative_to(ROOT)}: {', '.join(lacking)}"


def _said() -> Iterator[tuple[str, str]]:
    for part in PARTS:
        for path in sorted((ROOT / "src/danlu" / part).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                yield from ((word, where) for word in _reasons(node))


def _reasons(node: ast.AST) -> Iterator[str]:
    stated: list[ast.expr] = []
    if isinstance(node, ast.Call) and _name(node.func) in TELL:
        stated = [*node.args, *(one.value for one in node.keywords if one.arg == "reason")]
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        stated = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "reason"]
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        stated = [one for one, after in pairwise(node.value.elts) if isinstance(after, ast.JoinedStr | ast.Name)]
    for one in stated:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value not in NO_REASONS:
            yield from REASON.findall(one.value) if REASON.fullmatch(one.value) else ()


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", "") or getattr(function, "id", "")
