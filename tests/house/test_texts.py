"""What the command line says to people stands in both languages: no sentence is printed that is no `Text`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT

CLI = ROOT / "src/danlu/cli"
SPEAKS = {"print", "CommandError", "UsageError", "echo", "input", "agreed"}
IN_LATIN_LETTERS = {"kubeconfig", "pods", "to do:"}

_WORD = re.compile(r"(?<![-\w{])(?!danlu|Namespace)[A-Za-z]{2,}")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_HOLE = re.compile(r"\{(\w+)")


def _calls() -> Iterator[tuple[Path, ast.Call, str]]:
    for path in sorted(CLI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield path, node, getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _literal(value: ast.expr) -> str:
    """What is written in a string, without what is put into it."""
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return " ".join(_literal(part) for part in parts)
        case ast.BinOp(left=left, right=right):
            return _literal(left) + _literal(right)
        case ast.IfExp(body=body, orelse=orelse):
            return _literal(body) + _literal(orelse)
    return ""


def test_every_text_is_in_both_languages_and_says_the_same_things() -> None:
    texts = [(path, call) for path, call, name in _calls() if name == "Text"]
    assert len(texts) > 200, "texts are no longer found"
    for path, call in texts:
        where = f"{path.relative_to(ROOT)}:{call.lineno}"
        english, chinese = map(_literal, call.args)
        assert english, f"{where}: no English"
        assert _HAN.search(chinese) or english in IN_LATIN_LETTERS or not _WORD.search(english), (
            f"{where}: no Chinese: {chinese!r}"
        )
        assert not _HAN.search(english.replace("丹炉", "")), f"{where}: Chinese in the English text"
        assert {*_HOLE.findall(english)} == {*_HOLE.findall(chinese)}, f"{where}: they tell different things"


def test_nothing_is_said_in_english_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {_literal(argument)!r}"
        for path, call, name in _calls()
        if name in SPEAKS
        for argument in call.args[:1]
        if _WORD.search(_literal(argument))
    ]
    assert not found, "make a danlu.cli.language.Text of it:\n" + "\n".join(found)
