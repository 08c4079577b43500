"""Sizes and names of files, and what must not be written into any of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.conftest import LONGEST
from tests.house.tree import ROOT, text_of, tracked

MOST_LINES = 800
MOST_FILES = 30  # of code in one folder
WRITTEN_BY_HAND = (".py", ".ts", ".tsx", ".css", ".go", ".sh")
SAYS_NOTHING = {"util", "utils", "common", "helper", "helpers", "misc", "shared", "stuff"}

PACKAGES = ("src/danlu/*/__init__.py", "src/danlu/embedded/*/__init__.py")
BORDERS = sorted(str(path.parent.relative_to(ROOT / "src/danlu")) for one in PACKAGES for path in ROOT.glob(one))
"""Packages whose docstring says what belongs into them; the import contracts say it again."""

# Somebody's machine. A container's own /root is no such path, so only folders that people have there are meant.
MACHINE_PATH = re.compile(
    r"(?<![\w.-])(/work/(?:main|shared)|/root/\.(?!cache\b)|/home/(?!jovyan|user\b)[a-z]+/|/Users/[a-z]+/)"
)
REGISTRY = re.compile(
    "|".join((r"pypi\.org", r"pythonhosted", r"npmjs\.(?:org|com)", r"(?:proxy|sum)\.golang", r"--(?:extra-)?index-url",
              r"--find-links", r"registry\.yarnpkg", r"mirrors?\.\w+\.(?:com|edu|cn|org)"))
)  # fmt: skip
THIS_FILE = Path("tests/house/test_files.py")


def test_the_files_that_begin_first_are_there() -> None:
    assert not [name for name in LONGEST if not (ROOT / name).is_file()]


def test_no_file_is_too_long() -> None:
    long = {}
    for path in tracked(*WRITTEN_BY_HAND):
        count = text_of(path).count("\n")
        if count > MOST_LINES:
            long[str(path)] = count
    assert not long, f"more than {MOST_LINES} lines; divide them by what they are about: {long}"


def test_no_folder_is_too_full() -> None:
    counts = Counter(path.parent for path in tracked(*WRITTEN_BY_HAND) if path.parts[0] in ("src", "web"))
    full = {str(folder): count for folder, count in counts.items() if count > MOST_FILES}
    assert not full, f"more than {MOST_FILES} files; give what belongs together a room of its own: {full}"


def test_names_say_what_is_inside() -> None:
    empty = [str(path) for path in tracked() if SAYS_NOTHING & {*path.parent.parts, path.stem}]
    assert not empty, f"name the noun, not 'utils': {empty}"


@pytest.mark.parametrize("package", BORDERS)
def test_a_package_says_where_its_border_is(package: str) -> None:
    text = (ROOT / "src/danlu" / package / "__init__.py").read_text()
    assert text.startswith('"""'), f"danlu/{package}/__init__.py has to say what belongs into it and what does not"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path)
        for path in tracked(".py")
        if path.parts[0] == "src"
        and path.name not in ("__init__.py", "__main__.py")
        and not re.match(r'(#!.*\n)?("""|r""")', text_of(path))
    ]
    assert not silent, f"no docstring at the top: {silent}"


def test_nobodys_own_paths_are_written_down() -> None:
    found = [
        f"{path}: {match[0]}"
        for path in tracked()
        if path != THIS_FILE
        for match in MACHINE_PATH.finditer(text_of(path))
    ]
    assert not found, f"paths of one machine: {found}"


def test_no_registry_is_named() -> None:
    """Whoever installs chooses the registry; a host in a lock file would choose for everybody."""
    found = [
        f"{path}: {match[0]}" for path in tracked() if path != THIS_FILE for match in REGISTRY.finditer(text_of(path))
    ]
    assert not found, f"hosts of package registries: {found}"


def test_lock_files_hold_names_versions_and_digests_only() -> None:
    package = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!]+( *;[^#]*?)?( --hash=sha256:[0-9a-f]{64})+")
    for path in tracked(".lock"):
        for line in text_of(path).splitlines():
            assert line.startswith("#") or package.fullmatch(line), f"{path}: {line[:200]}"
    for path in tracked("package-lock.json", "go.sum"):
        assert "://" not in text_of(path), f"{path} names a host"
