"""Borders inside the code: layers, the public face, one file for each kind."""

from __future__ import annotations

import importlib
import os
import re
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
PREFIXED = {
    "eventsevent": "event",  # events.k8s.io's Event: the core group's has the plain name
    "horizontalpodautoscaler_v1": "horizontalpodautoscaler",  # the version in which it is stored has the plain name
}
TRAINING = re.compile(
    r"\b(py)?torch|tensor(flow|board|stack)|keras|jupyter|notebook|mnist|kubeflow|t9k|\btrain(s|ing|ings|er)?\b",
    re.IGNORECASE,
)
# Of two dialects or of two sorts of kinds, of both ends of one protocol, and of each command.
ALIKE = {"Activity", "JobConditions", "Observed", "Options", "RunPolicy", "Scheduler", "T9kScheduler"}
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
    return [path for path in sorted(BUILTIN.rglob("*.py")) if "\nSERVED" in path.read_text()]


def _module(path: Path) -> str:
    return ".".join(("danlu.embedded.builtin", *path.relative_to(BUILTIN).with_suffix("").parts))


@pytest.mark.parametrize("path", _kind_files(), ids=lambda path: path.stem)
def test_a_kind_lies_in_the_file_and_the_room_that_have_its_name(path: Path) -> None:
    served = importlib.import_module(_module(path)).SERVED
    if path.stem in TOGETHER:
        return
    assert isinstance(served, ServedKind), f"{path.name} serves several kinds; give each a file"
    assert served.kind.singular_name == PREFIXED.get(path.stem, path.stem)
    assert path.parent.name == (served.kind.group.partition(".")[0] or "core")


def test_every_kind_that_is_written_is_served() -> None:
    served = {id(one) for one in BUILTINS}
    for path in _kind_files():
        found = importlib.import_module(_module(path)).SERVED
        for one in found if isinstance(found, tuple) else (found,):
            assert id(one) in served, f"{path.name} is not in BUILTINS of builtin/__init__.py"


def test_embedded_has_never_heard_of_training() -> None:
    """Not in words either: what stands behind the names of images is `environments`, the rest is `kinds`."""
    said = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "src/danlu/embedded").rglob("*"))
        if path.suffix in (".py", ".md", ".yaml")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if TRAINING.search(line) and "never heard of training" not in line
    ]
    assert not said, "\n".join(said)


def test_no_two_classes_have_one_name() -> None:
    """Who greps for a class finds one. Those of a schema have the words of their API."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src/danlu").rglob("*.py")):
        if path.name != "schema.py" and "contents" not in path.parts:
            for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in found.items() if len(where) > 1 and name not in ALIKE} == {}
