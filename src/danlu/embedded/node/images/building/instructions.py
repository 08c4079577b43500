"""The text of a Dockerfile as instructions, each with the line on which it begins.

What is read here is the outer form alone: comments, continuation lines, the `escape` directive, flags, here-documents.
What the words mean, variables among them, is known only when the stage has come so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from danlu.embedded.node.images.building.builderrors import BuildError, wrong_line
from danlu.meta.nesting import parse_json

WORDS = frozenset(
    [
        "FROM",
        "RUN",
        "CMD",
        "LABEL",
        "MAINTAINER",
        "EXPOSE",
        "ENV",
        "ADD",
        "COPY",
        "ENTRYPOINT",
        "VOLUME",
        "USER",
        "WORKDIR",
        "ARG",
        "ONBUILD",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "SHELL",
    ]
)
WITH_HEREDOCS = frozenset(("RUN", "COPY", "ADD"))
WITH_FLAGS = frozenset(("FROM", "RUN", "COPY", "ADD", "HEALTHCHECK"))
DIRECTIVE = re.compile(r"#\s*([a-zA-Z]+)\s*=\s*(\S+)\s*$")
HEREDOC = re.compile(r"(?<![<\w])\d*<<(-?)([\"']?)([A-Za-z_][\w.-]*)\2(?=[\s;&|>)]|$)")
LARGEST = 4 << 20  # bytes of a Dockerfile


@dataclass(frozen=True, slots=True)
class Heredoc:
    name: str
    text: str
    is_literal: bool  # its name was quoted: nothing in it is a variable


@dataclass(frozen=True, slots=True)
class Instruction:
    line: int
    word: str
    rest: str  # without flags
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[Heredoc, ...] = ()

    def flag(self, name: str, default: str = "") -> str:
        return next((value for flag, value in reversed(self.flags) if flag == name), default)

    def only_flags(self, *known: str) -> None:
        for name, _ in self.flags:
            if name not in known:
                raise wrong_line(self.line, f"{self.word} has no flag --{name}")

    def json_words(self) -> list[str] | None:
        """The exec form; what only looks like it is taken as a plain line, as docker does."""
        try:
            found = parse_json(self.rest) if self.rest.startswith("[") else None
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(word, str) for word in found) else None

    def __str__(self) -> str:
        flags = "".join(f"--{name}={value} " if value else f"--{name} " for name, value in self.flags)
        return f"{self.word} {flags}{self.rest}".rstrip()


@dataclass(frozen=True, slots=True)
class Dockerfile:
    instructions: tuple[Instruction, ...]
    escape: str = "\\"


def parse(text: str) -> Dockerfile:
    """Raises BuildError."""
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    escape = _escape(lines)
    found = tuple(_read(lines, escape))
    if not any(one.word == "FROM" for one in found):
        raise BuildError("there is no FROM line")
    for one in found:
        if one.word == "FROM":
            break
        if one.word != "ARG":
            raise wrong_line(one.line, f"{one.word} comes before FROM")
    return Dockerfile(found, escape)


def _escape(lines: list[str]) -> str:
    """Directives stand at the very beginning, before any other comment."""
    for line in lines:
        found = DIRECTIVE.match(line.strip())
        if not found:
            break
        if found[1].lower() == "escape":
            if found[2] not in ("\\", "`"):
                raise BuildError(f"escape={found[2]} is neither \\ nor `")
            return found[2]
    return "\\"


def _read(lines: list[str], escape: str) -> Iterator[Instruction]:
    at = 0
    while at < len(lines):
        begun, joined, more = at, "", True
        while more and at < len(lines):
            line = lines[at].rstrip("\r")
            at += 1
            bare = line.strip()
            if not bare or bare.startswith("#"):
                more = bool(joined)
                begun = begun if joined else at
                continue
            more = bare.endswith(escape)
            joined += line.rstrip()[:-1] if more else line
        if not joined.strip():
            continue
        one = instruction(joined.strip(), begun + 1)
        heredocs = []
        if one.word in WITH_HEREDOCS and one.json_words() is None:
            for found in HEREDOC.finditer(one.rest):
                heredoc, at = _heredoc(found, lines, at, begun + 1)
                heredocs.append(heredoc)
        yield Instruction(one.line, one.word, one.rest, one.flags, tuple(heredocs))


def _heredoc(found: re.Match[str], lines: list[str], at: int, begun: int) -> tuple[Heredoc, int]:
    taken: list[str] = []
    while at < len(lines):
        line = lines[at].rstrip("\r")
        line = line.lstrip("\t") if found[1] else line
        at += 1
        if line == found[3]:
            return Heredoc(found[3], "".join(f"{one}\n" for one in taken), bool(found[2])), at
        taken.append(line)
    raise wrong_line(begun, f"the here-document {found[3]} has no end")


def instruction(text: str, line: int) -> Instruction:
    """Of one whole line: also what stands behind ONBUILD."""
    word, _, rest = text.replace("\t", " ", 1).partition(" ") if "\t" in text.split(" ")[0] else text.partition(" ")
    word, rest = word.upper(), rest.strip()
    if word not in WORDS:
        raise wrong_line(line, f"{word[:40]} is not a Dockerfile instruction")
    if not rest:
        raise wrong_line(line, f"{word} needs something to work on" if word != "FROM" else "FROM needs an image")
    flags = []
    while word in WITH_FLAGS and rest.startswith("--"):
        stated, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        name, _, value = stated[2:].partition("=")
        if not name:
            break
        flags.append((name, value))
    return Instruction(line, word, rest, tuple(flags))
