"""JSONPath as Kubernetes has it: `.spec.ports[0].name`, `['a.b']`, `[*]`, `[1:3]`, `..name`, `[?(@.type=="Ready")]`.

Used for printer columns, scale paths and selectable fields of custom kinds. A missing key yields nothing.

A path is written by whoever may define a kind and run on every list of it, so it is bounded: its length, and how many
values one search may look at. `[*,*][*,*]…` and `..…` look at exponentially many; beyond the bound nothing is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from danlu.meta.nesting import parse_json

LONGEST = 2048  # characters of a path
MOST_NESTED = 8  # filters within filters
MOST_VALUES = 50_000  # values that one search goes through; a megabyte of data has fewer

_NAME = re.compile(r"(?:\\.|[^.\[\]{}\\])+")
_SLICE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?)?\s*\Z")
_OPERATOR = re.compile(r"(?<![=!<>])(==|!=|<=|>=|<|>)")


class JsonPathError(ValueError):
    pass


class _TooMuch(Exception):
    pass


class _Budget:
    """Of values that one search may still go through."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooMuch


Step = Callable[[Any, _Budget], Iterator[Any]]
Operand = Callable[[Any, _Budget], list[Any]]


class JsonPath:
    """A compiled path. `find` gives every match in document order."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, nested: int = 0) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise JsonPathError(f"a path may have at most {LONGEST} characters")
        if nested > MOST_NESTED:
            raise JsonPathError(f"filters are nested too deeply in {text}")
        inner = text.strip()
        if inner.startswith("{") and inner.endswith("}"):
            inner = inner[1:-1].strip()
        self._steps = _parse(inner.removeprefix("$"), text, nested)

    def find(self, data: Any) -> list[Any]:
        try:
            return self.search(data, _Budget())
        except _TooMuch:
            return []

    def search(self, data: Any, budget: _Budget) -> list[Any]:
        found = [data]
        for step in self._steps:
            found = [result for value in found for result in _counted(step(value, budget), budget)]
        return found

    def first(self, data: Any) -> Any:
        found = self.find(data)
        return found[0] if found else None


def _counted(results: Iterator[Any], budget: _Budget) -> Iterator[Any]:
    for result in results:
        budget.spend()
        yield result


def printed(value: Any) -> str:
    """A value as kubectl's jsonpath prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _parse(text: str, whole: str, nested: int) -> list[Step]:
    steps: list[Step] = []
    index = 0
    while index < len(text):
        if text.startswith("..", index):
            steps.append(_descend)
            index += 2
            if index < len(text) and text[index] != "[":
                index = _name(text, index, whole, steps)
        elif text[index] == ".":
            index += 1
            if index < len(text) and text[index] not in "[.":
                index = _name(text, index, whole, steps)
        elif text[index] == "[":
            end = _closing(text, index, whole)
            steps.append(_bracket(text[index + 1 : end].strip(), whole, nested))
            index = end + 1
        elif index == 0:
            index = _name(text, index, whole, steps)
        else:
            raise JsonPathError(f"unexpected {text[index]!r} in {whole}")
    return steps


def _name(text: str, index: int, whole: str, steps: list[Step]) -> int:
    found = _NAME.match(text, index)
    if found is None:
        raise JsonPathError(f"a name is missing in {whole}")
    name = re.sub(r"\\(.)", r"\1", found[0])
    steps.append(_every if name == "*" else _field(name))
    return found.end()


def _closing(text: str, start: int, whole: str) -> int:
    depth, quote = 0, ""
    for index in range(start, len(text)):
        letter = text[index]
        if quote:
            if letter == quote and text[index - 1] != "\\":
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                return index
    raise JsonPathError(f"unterminated array in {whole}")


def _bracket(inside: str, whole: str, nested: int) -> Step:
    if inside == "*":
        return _every
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1].strip(), whole, nested)
    if inside[:1] in ("'", '"') and inside[-1:] == inside[:1] and len(inside) > 1 and "," not in inside:
        return _field(inside[1:-1].replace("\\" + inside[0], inside[0]))
    if "," in inside:
        parts = [_bracket(part.strip(), whole, nested) for part in inside.split(",")]
        return lambda value, budget: (result for part in parts for result in part(value, budget))
    found = _SLICE.match(inside)
    if found is not None:
        start, stop, step = (_number(group, whole) if group else None for group in found.groups())
        if step == 0:
            raise JsonPathError(f"the step of a slice cannot be 0 in {whole}")
        part = slice(start, stop, step)
        return lambda value, _: iter(value[part]) if isinstance(value, list) else iter(())
    return _index(_number(inside, whole))


def _number(text: str, whole: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise JsonPathError(f"invalid array index {text} in {whole}") from None


def _field(name: str) -> Step:
    def step(value: Any, _: _Budget) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Any, _: _Budget) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any, budget: _Budget) -> Iterator[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return
    for item in value:
        budget.spend()
        yield item


def _descend(value: Any, budget: _Budget) -> Iterator[Any]:
    yield value
    for child in _every(value, budget):
        yield from _descend(child, budget)


def _filter(condition: str, whole: str, nested: int) -> Step:
    found = _OPERATOR.search(condition)
    if found is None:
        present = _operand(condition, whole, nested)
        return lambda value, budget: (item for item in _every(value, budget) if present(item, budget))
    left = _operand(condition[: found.start()], whole, nested)
    right = _operand(condition[found.end() :], whole, nested)
    compare = _COMPARISONS[found[1]]

    def step(value: Any, budget: _Budget) -> Iterator[Any]:
        for item in _every(value, budget) if isinstance(value, list) else ():
            for one, other in zip(left(item, budget), right(item, budget), strict=False):
                if compare(one, other):
                    yield item

    return step


def _operand(text: str, whole: str, nested: int) -> Operand:
    text = text.strip()
    if text.startswith("@"):
        return JsonPath(text[1:] or ".", nested + 1).search
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        literal: Any = text[1:-1]
    else:
        try:
            literal = parse_json(text)
        except ValueError:
            raise JsonPathError(f"unrecognized value {text} in {whole}") from None
    return lambda _value, _budget: [literal]


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def apply(one: Any, other: Any) -> bool:
        try:
            return compare(one, other)
        except TypeError:
            return False

    return apply


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<": _ordered(lambda one, other: bool(one < other)),
    "<=": _ordered(lambda one, other: bool(one <= other)),
    ">": _ordered(lambda one, other: bool(one > other)),
    ">=": _ordered(lambda one, other: bool(one >= other)),
}
