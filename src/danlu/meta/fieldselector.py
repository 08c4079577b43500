"""Field selectors: `status.phase=Running,spec.nodeName!=a`, matched on a flat map of field to text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from danlu.meta.textcache import cached


class FieldSelectorError(ValueError):
    """The text is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class FieldTerm:
    field: str
    value: str
    equal: bool = True

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is self.equal

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.equal else '!='}{value}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(term.matches(fields) for term in self.terms)

    @property
    def empty(self) -> bool:
        return not self.terms

    @property
    def names(self) -> frozenset[str]:
        """The fields asked about: the server refuses one that the kind cannot select on."""
        return frozenset(term.field for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The one value the field must have, where the selector says so."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


EVERYTHING = FieldSelector()
MOST_TERMS = 256  # as of label selectors


@cached(512)
def parse(text: str) -> FieldSelector:
    """Raises FieldSelectorError."""
    parts = [part for part in sorted(_split(text)) if part]
    if len(parts) > MOST_TERMS:
        raise FieldSelectorError(f"a selector may have at most {MOST_TERMS} requirements")
    return FieldSelector(tuple(_term(part, text) for part in parts))


def _split(text: str) -> list[str]:
    parts, start, escaped = [], 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _term(part: str, whole: str) -> FieldTerm:
    for position in range(len(part)):
        for operator in ("!=", "==", "="):
            if part.startswith(operator, position):
                value = _unescape(part[position + len(operator) :])
                return FieldTerm(part[:position], value, operator != "!=")
    raise FieldSelectorError(f"invalid selector: '{whole}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    if not any(character in value for character in "\\,="):
        return value
    found, escaped = [], False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise FieldSelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
            found.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            found.append(character)
    if escaped:
        raise FieldSelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(found)
