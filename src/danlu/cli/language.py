"""Which language whoever types reads, and texts that stand in both.

A `Text` is written where it is said, in every language at once, so none can be forgotten: the type asks for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

VARIABLES = ("DANLU_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
_chosen: list[str] = []


def language(environment: Mapping[str, str] = os.environ) -> str:
    """What the shell says, as gettext reads it: the first of these that is set."""
    if _chosen:
        return _chosen[-1]
    found = next((environment[name] for name in VARIABLES if environment.get(name)), "")
    return "zh" if found.lower().startswith("zh") else "en"


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """For the reference pages, which are written in all languages, and for a command's own --language."""
    _chosen.append(language)
    try:
        yield
    finally:
        _chosen.pop()


class Text(NamedTuple):
    """`{name}` stands for a parameter; `{count:object|objects}` for a `Count` and the word that goes with it."""

    en: str
    zh: str

    def __call__(self, **parameters: Any) -> str:
        text: str = getattr(self, language())
        return text.format(**parameters) if parameters else text


class Count(int):
    """A number of things: in English it chooses between their singular and plural."""

    def __format__(self, words: str) -> str:
        if "|" not in words:
            return format(int(self), words or ",")
        one, many = words.split("|")
        return f"{int(self):,} {one if self == 1 else many}"


def translated(message: object) -> str:
    """What a part below says, an exception or a text, in the language of whoever types: by the code that it carries."""
    text = message.args[0] if isinstance(message, Exception) and message.args else message
    text = text if isinstance(text, str) else str(message)
    if language() == "en":
        return text
    from danlu.diagnose import render
    from danlu.meta.said import carried

    return render(carried(text), text, language())
