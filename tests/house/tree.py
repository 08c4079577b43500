"""What git keeps of this repository: the files that the rules of the house speak of."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LANGUAGES = ("en", "zh")

_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)


@cache
def tracked(*endings: str) -> tuple[Path, ...]:
    """Files under version control that still exist, by the ends of their names; relative to the root."""
    try:
        answer = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout: nobody can tell which files belong to it")
    paths = (Path(name) for name in answer.stdout.split("\0") if name)
    return tuple(path for path in paths if path.name.endswith(endings or ("",)) and (ROOT / path).is_file())


def text_of(path: Path) -> str:
    """The file's text; "" where it is no text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """(language, what follows it on the line, content) of each fenced block of a document."""
    for found in _BLOCK.finditer(text):
        yield found[1], found[2].strip(), found[3]


def prose(text: str) -> str:
    """A document without its fenced blocks."""
    return _BLOCK.sub("", text)
