"""The tables of tables/*.json, read when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from danlu.diagnose.phrases import Phrase, phrase
from danlu.meta.goregex import Pattern, compile_once

FOLDER = Path(__file__).with_name("tables")
LANGUAGES = ("en", "zh")
MORE = "more"  # the parameter that says how many others have the same cause


@dataclass(frozen=True, slots=True)
class Template:
    severity: str
    sentence: Mapping[str, Phrase]  # by language
    remedy: Mapping[str, Phrase]  # empty: there is none
    names: frozenset[str]  # of the parameters


@dataclass(frozen=True, slots=True)
class Sign:
    """By what a cause is known in the words of a component of Kubernetes."""

    code: str
    pattern: Pattern
    params: tuple[str, ...]  # names of the groups, in order


@cache
def _read(name: str) -> Any:
    return orjson.loads((FOLDER / f"{name}.json").read_bytes())


@cache
def templates() -> Mapping[str, Template]:
    return {code: _template(entry) for code, entry in _read("causes")["causes"].items()}


def _template(entry: dict[str, Any]) -> Template:
    sentence = {one: phrase(entry[one]) for one in LANGUAGES}
    remedy = {one: phrase(text) for one, text in (entry.get("remedy") or {}).items()}
    names = (text.names for text in (*sentence.values(), *remedy.values()))
    return Template(entry["severity"], sentence, remedy, frozenset({MORE}.union(*names)))


@cache
def signs() -> tuple[Sign, ...]:
    found = _read("causes")["signs"]
    return tuple(Sign(one["code"], compile_once(one["pattern"]), tuple(one["params"])) for one in found)


@cache
def more() -> Mapping[str, Phrase]:
    return {language: phrase(text) for language, text in _read("causes")["more"].items()}


@cache
def sentences() -> tuple[tuple[Pattern, str], ...]:
    """What is said, and how that is said in Chinese; tried in order."""
    return tuple((compile_once(pattern), words) for pattern, words in _read("chinese")["sentences"])


@cache
def reasons() -> Mapping[str, str]:
    return _read("chinese")["reasons"]  # type: ignore[no-any-return]
