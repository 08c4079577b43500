"""Variables and quotes in an instruction, by Dockerfile's rules: a small part of a shell's.

$NAME, ${NAME}, ${NAME:-else}, ${NAME:+then}, ${NAME:?message} and the same without colon. Nothing is expanded between
single quotes; the escape character takes the meaning of the next one away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
DEEPEST = 20  # of variables within variables' defaults


class BadExpansion(ValueError):
    """What is written is not a variable, or has no end."""


class _WordReader:
    def __init__(self, text: str, values: Mapping[str, str], escape: str, *, split: bool) -> None:
        self.text, self.values, self.escape, self.split = text, values, escape, split
        self.at = 0

    def words(self) -> list[str]:
        found: list[str] = []
        word: list[str] | None = None
        while self.at < len(self.text):
            letter = self.text[self.at]
            if self.split and letter.isspace():
                self.at += 1
                if word is not None:
                    found.append("".join(word))
                word = None
                continue
            word = [] if word is None else word
            word.append(self._piece(letter))
        return found if word is None else [*found, "".join(word)]

    def _piece(self, letter: str) -> str:
        self.at += 1
        if letter == "'":
            end = self.text.find("'", self.at)
            if end < 0:
                raise BadExpansion("a single quote has no end")
            piece, self.at = self.text[self.at : end], end + 1
            return piece
        if letter == '"':
            return self._quoted()
        if letter == self.escape:
            self.at += 1
            return self.text[self.at - 1 : self.at]
        return self._variable() if letter == "$" else letter

    def _quoted(self) -> str:
        found: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter == '"':
                return "".join(found)
            if letter == self.escape and self.text[self.at : self.at + 1] in ('"', "$", self.escape):
                found.append(self.text[self.at])
                self.at += 1
            else:
                found.append(self._variable() if letter == "$" else letter)
        raise BadExpansion("a double quote has no end")

    def _variable(self) -> str:
        if self.text[self.at : self.at + 1] == "{":
            return self._braced()
        found = NAME.match(self.text, self.at)
        if not found:
            return "$"
        self.at = found.end()
        return self.values.get(found[0], "")

    def _braced(self) -> str:
        found = NAME.match(self.text, self.at + 1)
        if not found:
            raise BadExpansion(f"{self.text[self.at - 1 : self.at + 20]!r} is not a variable")
        name, self.at = found[0], found.end()
        begun, depth = self.at, 1
        while depth and self.at < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
        if depth:
            raise BadExpansion(f"${{{name} has no closing brace")
        rest = self.text[begun : self.at - 1]
        if not rest:
            return self.values.get(name, "")
        is_set = bool(self.values.get(name)) if rest[0] == ":" else name in self.values
        how, other = rest.lstrip(":")[:1], rest.lstrip(":")[1:]
        if rest.count("${") > DEEPEST or how not in ("-", "+", "?"):
            raise BadExpansion(f"${{{name}{rest[:20]}}} is not a form of a variable that is known here")
        if how == "?" and not is_set:
            raise BadExpansion(f"{name}: {other or 'it has to be set'}")
        if is_set != (how == "+"):
            return self.values.get(name, "")
        return "" if how == "+" and not is_set else expand(other, self.values, self.escape)


def expand(text: str, values: Mapping[str, str], escape: str = "\\") -> str:
    """As one word, its quotes taken away. Raises BadExpansion."""
    return "".join(_WordReader(text, values, escape, split=False).words())


def words(text: str, values: Mapping[str, str], escape: str = "\\") -> list[str]:
    """Split where white space is not quoted. Raises BadExpansion."""
    return _WordReader(text, values, escape, split=True).words()


def pairs(text: str, values: Mapping[str, str], escape: str = "\\") -> dict[str, str]:
    """Of ENV and LABEL: NAME=VALUE …, or the old form NAME VALUE. Raises BadExpansion."""
    first, _, rest = text.partition(" ")
    if "=" not in first:
        return {expand(first, values, escape): expand(rest.strip(), values, escape)}
    found = {}
    for word in words(text, values, escape):
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise BadExpansion(f"{word[:40]!r} is not NAME=VALUE")
        found[name] = value
    return found
