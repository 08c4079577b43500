"""Labels and the selectors over them: parsing, matching, printing, validating."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from danlu.meta.fields import FieldError, aggregate, forbidden, invalid, required
from danlu.meta.names import label_value, qualified_name
from danlu.meta.textcache import cached

_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")  # a label has 63 characters at most
_OPERATORS = "in, notin, =, ==, !=, gt, lt"
_SYMBOLS = {"in": " in ", "notin": " notin ", "gt": ">", "lt": "<"}
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+)|$)")
# Of one selector in a request, which is held against every object of a list: more than people write, far fewer than a
# URL has room for.
MOST_REQUIREMENTS = 256
_OF_LABEL_SELECTOR = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class SelectorError(ValueError):
    """The text is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    key: str
    operator: str  # "=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"
    values: tuple[str, ...] = ()
    # The same for looking one up: a list may have as many values as a URL has room for, and is held against every
    # object.
    _wanted: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wanted", frozenset(self.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator, value = self.operator, labels.get(self.key)
        if operator in ("=", "==", "in"):
            return value is not None and value in self._wanted
        if operator in ("!=", "notin"):
            return value is None or value not in self._wanted
        if operator == "exists":
            return value is not None
        if operator == "!":
            return value is None
        number, bound = _number(value), _number(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if operator == "gt" else number < bound

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            values = f"({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


def _number(text: str | None) -> int | None:
    """As Go reads an integer of 64 bits: Python would read 1_000, and numbers of any length."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must hold; none selects everything. `selects_nothing` is what a missing LabelSelector means."""

    requirements: tuple[LabelRequirement, ...] = ()
    selects_nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.selects_nothing:
            return False
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def empty(self) -> bool:
        """Selects everything."""
        return not self.requirements and not self.selects_nothing

    def exact(self, key: str) -> str | None:
        """The one value the label must have, where the selector says so."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator in ("=", "==", "in") and len(requirement.values) == 1:
                return requirement.values[0]
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()
NOTHING = Selector(selects_nothing=True)


@cached(512)
def parse_selector(text: str) -> Selector:
    """`a=b,c in (d,e),!f`; raises SelectorError in Kubernetes' words."""
    return _Parser(text).parse() if text.strip() else EVERYTHING


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """A LabelSelector object; None selects nothing, an empty one everything. Raises SelectorError."""
    if selector is None:
        return NOTHING
    found = [requirement(key, "=", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _OF_LABEL_SELECTOR.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
        found.append(requirement(expression.get("key", ""), operator, expression.get("values") or ()))
    return Selector(tuple(sorted(found, key=lambda one: one.key)))


def from_map(labels: Mapping[str, str]) -> Selector:
    """Every label must be equal; no label selects everything."""
    return Selector(tuple(LabelRequirement(key, "=", (labels[key],)) for key in sorted(labels)))


def format_labels(labels: Mapping[str, str] | None) -> str:
    """As kubectl prints a set of labels; `<none>` for none."""
    if not labels:
        return "<none>"
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def requirement(key: str, operator: str, values: Sequence[str] = ()) -> LabelRequirement:
    """Checked; raises SelectorError."""
    errors: list[FieldError] = []
    if texts := qualified_name(key):
        errors.append(invalid("key", key, "; ".join(texts)))
    if operator in ("in", "notin") and not values:
        errors.append(invalid("values", list(values), "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in ("exists", "!") and values:
        errors.append(invalid("values", list(values), "values set must be empty for exists and does not exist"))
    elif operator in ("gt", "lt"):
        for index, value in enumerate(values):
            if not re.fullmatch(r"[+-]?[0-9]+", value):
                words = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(invalid(f"values[{index}]", value, words))
    for index, value in enumerate(values):
        if texts := label_value(value):
            errors.append(invalid(f"values[{index}][{key}]", value, "; ".join(texts)))
    if errors:
        raise SelectorError(aggregate(error.message() for error in errors))
    return LabelRequirement(key, operator, tuple(values))


class _Parser:
    """Tokens are (kind, text): a symbol is its own kind, "word" an identifier, "end" the end."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        position = 0
        while match := _TOKEN.match(text, position):
            symbol, word = match.groups()
            if symbol is None and word is None:
                break
            self.tokens.append((symbol, symbol) if symbol else ("word", word))
            position = match.end()
        self.tokens.append(("end", ""))

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def take(self) -> tuple[str, str]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def parse(self) -> Selector:
        found: list[LabelRequirement] = []
        while True:
            kind, text = self.peek()
            if kind == "end":
                break
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            if len(found) == MOST_REQUIREMENTS:
                raise SelectorError(f"a selector may have at most {MOST_REQUIREMENTS} requirements")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self.take()
            if kind == "end":
                break
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self.peek()
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")
        return Selector(tuple(sorted(found, key=lambda one: one.key)))

    def _requirement(self) -> LabelRequirement:
        kind, key = self.take()
        absent = kind == "!"
        if absent:
            kind, key = self.take()
        if kind != "word":
            raise SelectorError(f"found '{key}', expected: identifier")
        if texts := qualified_name(key):
            raise SelectorError(invalid("<nil>", key, "; ".join(texts)).message())
        if self.peek()[0] in ("end", ","):
            return requirement(key, "!" if absent else "exists")
        if absent:
            return requirement(key, "!")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else self._value()
        return requirement(key, operator, sorted(values))

    def _operator(self) -> str:
        kind, text = self.take()
        if kind in ("=", "==", "!="):
            return kind
        if kind in ("<", ">"):
            return "lt" if kind == "<" else "gt"
        if kind == "word" and text in ("in", "notin"):
            return text
        raise SelectorError(f"found '{text}', expected: {_OPERATORS}")

    def _value(self) -> set[str]:
        if self.peek()[0] in ("end", ","):
            return {""}
        kind, text = self.take()
        if kind != "word":
            raise SelectorError(f"found '{text}', expected: identifier")
        return {text}

    def _set(self) -> set[str]:
        kind, text = self.take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self.peek()
        if kind == ")":
            self.take()
            return {""}
        if kind not in ("word", ","):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        wants_value = True
        while True:
            kind, text = self.take()
            if kind == "word" and wants_value:
                values.add(text)
                wants_value = False
                if self.peek()[0] not in (",", ")"):
                    raise SelectorError(f"found '{self.peek()[1]}', expected: ',' or ')'")
            elif kind == ",":
                if wants_value:
                    values.add("")
                wants_value = True
            elif kind == ")":
                if wants_value:
                    values.add("")
                return values
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")


# -- validation


def validate_labels(labels: Mapping[str, str] | None, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        errors += validate_label_key(key, field)
        errors += [invalid(field, value, text) for text in label_value(value)]
    return errors


def validate_label_key(key: str, field: str) -> list[FieldError]:
    return [invalid(field, key, text) for text in qualified_name(key)]


def validate_label_selector(selector: Mapping[str, Any] | None, field: str) -> list[FieldError]:
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        errors += _validate_expression(expression, f"{field}.matchExpressions[{index}]")
    return errors


def _validate_expression(expression: Mapping[str, Any], field: str) -> Iterable[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{field}.operator", operator, "not a valid selector operator")
    yield from validate_label_key(expression.get("key", ""), f"{field}.key")
    for index, value in enumerate(values):
        yield from (invalid(f"{field}.values[{index}]", value, text) for text in label_value(value))
