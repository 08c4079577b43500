"""Names that a Kubernetes engineer has to guess at are replaced by the words of the field, and stay replaced."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.tree import text_of, tracked

RIDDLES = {
    "mending": "remedies",
    "silence": "what is not heard of: lost, neverAnswers",
    "news": "what is new, or has changed",
    "standing": "phase",
    "overtaken": "concurrent write",
    "patient": "status_delay_s, background",
    "patience": "max_wait_s, timeout_s",
    "denominate": "clear_nomination",
    "surroundings": "services, parts",
}
"""No part of any name in the code is one of these; beside each, what is meant."""

OF_CLASSES_AND_MODULES = {"look": "reconciliation, sync, renderer", "looks": "renderers", "quality": "qos"}
"""Good verbs, and nouns that say nothing."""

WHOLE = {"other_name": "TENSORFLOWJOB_ALIAS", "took_off": "_record_started"}

SAME_MODULE = {
    "a part of every kind's folder, or of every dialect": "controller dialect kind reconcile report schema",
    "a command, and what lies below it": "backup encryption kubeconfig list repair status",
    "named by the API": "binding cronjob endpoints eviction job replicaset resourcequota",
    "the same thing, once for each program or package": "app errors metrics settings registry",
    "a command, and what a server or another command has of the same": "events exec get logs portforward",
    "the same thing at two levels": "conditions definitions discovery environment explanation labels observation",
    "facts about it, and what is made of them": "owners warnings",
}
"""Names that modules in several packages share, and why nobody takes one for the other."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DECLARED = re.compile(r"\b(class|interface|type|const|let|function)\s+\{?\s*(\w+)")


def test_no_name_is_a_riddle() -> None:
    found = []
    for path in tracked(".py", ".ts", ".tsx"):
        names = [*_declared(path), ("module", path.name.partition(".")[0])]
        for what, name in names:
            found += [f"{path}: {what} {name}; say {plain}" for plain in _riddles(what, name)]
    assert not found, "\n".join(sorted(set(found)))


@pytest.mark.parametrize("name", ["_silence", "isNews", "NEWS", "podStanding", "_took_off"])
def test_a_riddle_is_found(name: str) -> None:
    assert _riddles("variable", name)


def test_other_words_are_left_alone() -> None:
    assert _riddles("class", "JobLook")
    assert not _riddles("function", "look_again")
    assert not _riddles("function", "outstanding")


def test_modules_of_one_name_are_about_one_thing() -> None:
    """Who has opened the wrong one of two opens both each time."""
    count = Counter(path.name.removesuffix(".py") for path in tracked(".py") if path.parts[:2] == ("src", "danlu"))
    shared = {name for name, times in count.items() if times > 1} - {"__init__", "__main__"}
    known = {name for names in SAME_MODULE.values() for name in names.split()}
    assert not shared - known, "name them by what they are about, or say in SAME_MODULE why they are called alike"
    assert not known - shared, "no longer shared: strike them out"


def _riddles(what: str, name: str) -> list[str]:
    parts = [part.lower() for part in _PARTS.findall(name)]
    known = {**RIDDLES, **OF_CLASSES_AND_MODULES} if what in ("class", "module", "interface", "type") else RIDDLES
    whole = WHOLE.get(name.strip("_").lower())
    return [*(known[part] for part in parts if part in known), *([whole] if whole else [])]


def _declared(path: Path) -> Iterator[tuple[str, str]]:
    """What is declared: ("class", its name), …"""
    if path.suffix != ".py":
        yield from _DECLARED.findall(text_of(path))
        return
    for node in ast.walk(ast.parse(text_of(path))):
        match node:
            case ast.ClassDef(name=name):
                yield "class", name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield "function", name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield "variable", name
