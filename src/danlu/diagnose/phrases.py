"""`Phrase`: a sentence with holes for parameters, taken apart once: statuses of all jobs are made of these.

{name}      a parameter
{name!}     the remedy of the cause that the parameter is
[[ … ]]     left out when a parameter in it is not known
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_HOLE = re.compile(r"\{(\w+)(!?)\}")
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]")

UNKNOWN = (None, "")


@dataclass(frozen=True, slots=True)
class Hole:
    name: str
    is_remedy: bool


@dataclass(frozen=True, slots=True)
class Phrase:
    parts: tuple[str | Hole | Phrase, ...]  # a phrase in a phrase is optional
    names: frozenset[str]  # of all its parameters

    def filled(self, params: Mapping[str, Any], value: Callable[[Hole], str]) -> str:
        found = []
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
            elif isinstance(part, Hole):
                found.append(value(part))
            elif not any(params.get(name) in UNKNOWN for name in part.names):
                found.append(part.filled(params, value))
        return "".join(found)


def phrase(text: str) -> Phrase:
    parts: list[str | Hole | Phrase] = []
    end = 0
    for optional in _OPTIONAL.finditer(text):
        parts += [*_holes(text[end : optional.start()]), _flat(optional[1])]
        end = optional.end()
    parts += _holes(text[end:])
    return Phrase(tuple(parts), frozenset(name for name, _ in _HOLE.findall(text)))


def _flat(text: str) -> Phrase:
    return Phrase(tuple(_holes(text)), frozenset(name for name, _ in _HOLE.findall(text)))


def _holes(text: str) -> list[str | Hole | Phrase]:
    parts: list[str | Hole | Phrase] = []
    end = 0
    for found in _HOLE.finditer(text):
        parts += [text[end : found.start()], Hole(found[1], bool(found[2]))]
        end = found.end()
    return [part for part in (*parts, text[end:]) if part != ""]
