"""The platform's kinds: one folder each, which knows no other kind and decides without doing I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tree import ROOT

from danlu.kinds.registry import EVERY, folder_of

KINDS = ROOT / "src/danlu/kinds"
FOLDERS = sorted(path.parent.name for path in KINDS.glob("[a-z]*/kind.py"))
PARTS = ("schema.py", "reconcile.py", "example.yaml", "README.md", "words.zh.yaml", "form.yaml", "console.yaml")
DOES_IO = ("danlu.client", "asyncio", "aiohttp", "http", "os", "pathlib", "socket", "subprocess", "urllib")


def _imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports while it runs; what only type checkers read does not count."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_every_folder_is_registered_under_its_name() -> None:
    brought: dict[str, set[str]] = {}
    for one in EVERY:
        brought.setdefault(folder_of(one).name, set()).add(one.kind.singular_name)
    assert set(brought) == set(FOLDERS)
    for folder, names in brought.items():
        assert folder in names, f"kinds/{folder} is not named by the word typed after kubectl get: {names}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_kind_has_its_parts(folder: str) -> None:
    missing = [part for part in PARTS if not (KINDS / folder / part).exists()]
    assert not missing, f"kinds/{folder} has no {missing}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_kinds_do_not_know_each_other(folder: str) -> None:
    others = tuple(f"danlu.kinds.{other}." for other in FOLDERS if other != folder)
    for path in (KINDS / folder).rglob("*.py"):
        found = [name for name in _imports(path) if f"{name}.".startswith(others)]
        assert not found, f"{path.relative_to(ROOT)} imports {found}; what kinds share lies in kinds/_…"


@pytest.mark.parametrize("folder", FOLDERS)
def test_deciding_does_no_io(folder: str) -> None:
    path = KINDS / folder / "reconcile.py"
    found = [name for name in _imports(path) if f"{name}.".startswith(tuple(f"{module}." for module in DOES_IO))]
    assert not found, f"{path.relative_to(ROOT)} imports {found}: reconcile answers from what it is given"
