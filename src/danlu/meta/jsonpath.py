"""JSONPath as Kubernetes has it: `.spec.ports[0].name`, `['a.b']`, `[*]`, `[1:3]`, `..name`, `[?(@.type=="Ready")]`.

Used for printer columns, scale paths and selectable fields of custom kinds. A missing key yields nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"(?:\\.|[^.\[\]{}\\])+")
_SLICE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?)?\s*\Z")
_OPERATOR = re.compile(r"(?<![=!<>])(==|!=|<=|>=|<|>)")


class JsonPathError(ValueError):
    pass


class JsonPath:
    """A compiled path. `find` gives every match in document order."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        inner = text.strip()
        if inner.startswith("{") and inner.endswith("}"):
            inner = inner[1:-1].strip()
        self._steps = _parse(inner.removeprefix("$"), text)

    def find(self, data: Any) -> list[Any]:
        found = [data]
        for step in self._steps:
            found = [result for value in found for result in step(value)]
        return found

    def first(self, data: Any) -> Any:
        found = self.find(data)
        return found[0] if found else None


def printed(value: Any) -> str:
    """A value as kubectl's jsonpath prints it."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _parse(text: str, whole: str) -> list[Step]:
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
            steps.append(_bracket(text[index + 1 : end].strip(), whole))
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


def _bracket(inside: str, whole: str) -> Step:
    if inside == "*":
        return _every
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1].strip(), whole)
    if inside[:1] in ("'", '"') and inside[-1:] == inside[:1] and len(inside) > 1 and "," not in inside:
        return _field(inside[1:-1].replace("\\" + inside[0], inside[0]))
    if "," in inside:
        parts = [_bracket(part.strip(), whole) for part in inside.split(",")]
        return lambda value: (result for part in parts for result in part(value))
    found = _SLICE.match(inside)
    if found is not None:
        start, stop, step = (int(group) if group else None for group in found.groups())
        return lambda value: iter(value[slice(start, stop, step)]) if isinstance(value, list) else iter(())
    try:
        return _index(int(inside))
    except ValueError:
        raise JsonPathError(f"invalid array index {inside} in {whole}") from None


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for child in _every(value):
        yield from _descend(child)


def _filter(condition: str, whole: str) -> Step:
    found = _OPERATOR.search(condition)
    if found is None:
        present = _operand(condition, whole)
        return lambda value: (item for item in _every(value) if present(item))
    left, right = _operand(condition[: found.start()], whole), _operand(condition[found.end() :], whole)
    compare = _COMPARISONS[found[1]]

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            for one, other in zip(left(item), right(item), strict=False):
                if compare(one, other):
                    yield item

    return step


def _operand(text: str, whole: str) -> Callable[[Any], list[Any]]:
    text = text.strip()
    if text.startswith("@"):
        return JsonPath(text[1:] or ".").find
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        literal: Any = text[1:-1]
    else:
        try:
            literal = json.loads(text)
        except ValueError:
            raise JsonPathError(f"unrecognized value {text} in {whole}") from None
    return lambda _: [literal]


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
