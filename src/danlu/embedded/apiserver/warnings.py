"""The `Warning` header: what the client should hear although its request worked, in the form and length of Kubernetes'.

The texts carry names that users chose, so anything may be in them: control characters are written as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable

# Characters of all texts together, as Kubernetes has it. Beyond it each is cut to the second figure, and when those are
# too many as well, the rest is left out.
MOST_IN_ALL = 4 * 1024
MOST_OF_ONE = 256


def header(texts: Iterable[str]) -> str:
    """ "" where there is nothing to say. The same text is said once."""
    shown = [printable(text) for text in dict.fromkeys(texts) if text]
    if sum(map(len, shown)) > MOST_IN_ALL:
        shown = _cut(shown)
    return ", ".join(f"299 - {_quoted(text)}" for text in shown)


def _cut(texts: list[str]) -> list[str]:
    kept: list[str] = []
    written = 0
    for text in texts:
        if written >= MOST_IN_ALL:
            break
        kept.append(text[:MOST_OF_ONE])
        written += len(kept[-1])
    return kept


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def printable(text: str) -> str:
    """With escapes, as Go writes them, in place of control characters, line ends of Unicode among them."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    known = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(letter)
    if known:
        return known
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
