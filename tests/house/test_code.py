"""Borders inside the code: layers, the public face, one file for each kind."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.tree import ROOT

import danlu
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin import BUILTINS

PUBLIC = {"__version__"}
"""What `import danlu` offers to users. A name that is added here is promised to them."""

BUILTIN = ROOT / "src/danlu/embedded/builtin"
OTHER_NAME = {"eventsevent": "event"}  # events.k8s.io's Event: the core group's has the plain name
TOGETHER = {"reviews"}  # five kinds that are questions, not objects; nothing of them is stored


def test_layers() -> None:
    """The import contracts of pyproject.toml. In a process of its own: import-linter switches others' loggers off."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_public_face() -> None:
    assert set(danlu.__all__) == PUBLIC
    assert not [name for name in danlu.__all__ if not hasattr(danlu, name)]


def _kind_files() -> list[Path]:
    return [path for path in sorted(BUILTIN.glob("*.py")) if "\nSERVED" in path.read_text()]


@pytest.mark.parametrize("path", _kind_files(), ids=lambda path: path.stem)
def test_a_kind_lies_in_the_file_that_has_its_name(path: Path) -> None:
    served = importlib.import_module(f"danlu.embedded.builtin.{path.stem}").SERVED
    if path.stem in TOGETHER:
        return
    assert isinstance(served, ServedKind), f"{path.name} serves several kinds; give each a file"
    assert served.kind.singular_name == OTHER_NAME.get(path.stem, path.stem)


def test_every_kind_that_is_written_is_served() -> None:
    served = {id(one) for one in BUILTINS}
    for path in _kind_files():
        found = importlib.import_module(f"danlu.embedded.builtin.{path.stem}").SERVED
        for one in found if isinstance(found, tuple) else (found,):
            assert id(one) in served, f"{path.name} is not in BUILTINS of builtin/__init__.py"
