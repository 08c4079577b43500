"""Text in columns as a terminal shows it: Chinese letters are two columns wide and may be broken between any two."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Iterator, Sequence

WIDEST = 100  # of help texts: longer lines are hard to read
NARROWEST = 40
DEFINED = 26  # columns for what is defined; the text of what is longer begins on the next line
NEVER_FIRST = "，。、；：！？）》」』】”’…"  # on a line

_WORD = re.compile(r"\s+|[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+")


def columns(default: int = WIDEST) -> int:
    """Of the terminal, or of what is piped."""
    return shutil.get_terminal_size((default, 24)).columns


def width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def padded(text: str, wanted: int) -> str:
    return text + " " * (wanted - width(text))


def shortened(text: str, most: int) -> str:
    """With … in place of what does not fit."""
    if width(text) <= most:
        return text
    kept, used = "", 0
    for letter in text:
        used += _width(letter)
        if used > most - 1:
            break
        kept += letter
    return f"{kept}…"


def wrapped(text: str, most: int) -> list[str]:
    """A word that is longer than a line stays whole, so that it can be copied."""
    lines, line = [], ""
    for part in _WORD.findall(text):
        if line.strip() and width(line) + width(part.rstrip()) > most and part not in NEVER_FIRST:
            lines.append(line.rstrip())
            line = ""
        line += part if line or not part.isspace() else ""
    return [*lines, line.rstrip()]


def facts(rows: Sequence[tuple[str, str]], left: int = 0) -> Iterator[str]:
    """Each with its name before it."""
    left = left or max(width(name) for name, _ in rows) + 2
    return (f"{padded(name, left)}{value}" for name, value in rows)


def definitions(rows: Sequence[tuple[str, str]], most: int, left: int = 0) -> Iterator[str]:
    """What is defined, and from column `left` on what it means."""
    left = left or min(max(width(name) for name, _ in rows) + 4, DEFINED)
    for name, meaning in rows:
        head = f"  {name}"
        lines = wrapped(meaning, max(most - left, NARROWEST - left))
        if width(head) + 2 > left:
            yield head
        else:
            yield padded(head, left) + lines.pop(0)
        yield from (" " * left + line for line in lines)
