"""Field errors in Kubernetes' words, and the `Invalid` answer that carries them.

Paths are plain strings (`spec.containers[0].name`). Values are printed as Go prints them: strings quoted, numbers
and booleans bare, all else as compact JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from danlu.errors import Invalid
from danlu.meta.kind import Kind

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"

_TITLES = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTooFew": "Too few",
    "FieldValueTooShort": "Too short",
    "FieldValueTypeInvalid": "Invalid value",
    "InternalError": "Internal error",
}
_WITHOUT_VALUE = frozenset(
    {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "FieldValueTooShort", "InternalError"}
)
_QUOTE = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


LONGEST_KEY = 256  # characters of a map's key in a path
MOST_TOLD = 1024 * 1024  # characters of all errors of one answer


class Omitted:
    """Stands for a value that is not shown at all."""


OMITTED = Omitted()


@dataclass(frozen=True, slots=True)
class FieldError:
    type: str
    field: str
    value: Any = None
    detail: str = ""

    def body(self) -> str:
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text = f"{text}: {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def message(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.type, "message": self.body(), "field": self.field}


def key_in_path(key: str) -> str:
    """Of a map: users choose it, and it stands in the path of everything below it."""
    return key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}..."


def quoted(text: str) -> str:
    """As Go's %q."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    known = _QUOTE.get(character)
    if known is not None:
        return known
    code = ord(character)
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(value: Any) -> str:
    """A value as Go prints it in a field error."""
    if isinstance(value, str):
        return quoted(value)
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    return go_json(value)


def go_json(value: Any) -> str:
    text = json.dumps(_in_go_order(value), separators=(",", ":"), ensure_ascii=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def go_text(value: Any) -> str:
    """As Go's %v prints JSON data: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_go_order(value: Any) -> Any:
    """Go sorts the keys of maps and leaves structs as declared; a dict of texts alone is taken for a map."""
    if isinstance(value, dict):
        if all(isinstance(item, str) for item in value.values()):
            return dict(sorted(value.items()))
        return {key: _in_go_order(item) for key, item in value.items()}
    return [_in_go_order(item) for item in value] if isinstance(value, list) else value


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, "", detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """`supported` is shown in the order given."""
    names = ", ".join(quoted(name) for name in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {names}" if names else "")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, "", detail)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", field, value)


def too_long(field: str, value: Any, max: int) -> FieldError:
    """`max` counts bytes; the value itself is never shown."""
    return FieldError("FieldValueTooLong", field, OMITTED, f"may not be more than {max} byte{'' if max == 1 else 's'}")


def too_long_characters(field: str, value: Any, max: int) -> FieldError:
    unit = "character" if max == 1 else "characters"
    return FieldError("FieldValueTooLong", field, OMITTED, f"may not be more than {max} {unit}")


def too_many(field: str, actual: int, max: int) -> FieldError:
    detail = f"must have at most {max} item{'' if max == 1 else 's'}" if max >= 0 else "has too many items"
    return FieldError("FieldValueTooMany", field, actual if actual >= 0 else OMITTED, detail)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", field, value, detail)


def immutable(field: str, new: Any, old: Any) -> list[FieldError]:
    return [] if new == old else [invalid(field, new, IMMUTABLE)]


def not_negative(field: str, value: int | None) -> list[FieldError]:
    return [invalid(field, value, NOT_NEGATIVE)] if value is not None and value < 0 else []


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one, as apimachinery joins them: repeated ones are shown once."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def invalid_error(kind: Kind, name: str, errors: list[FieldError]) -> Invalid:
    shown_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    message = f"{shown_kind} {quoted(name)} is invalid"
    told = _told(errors)
    if told:
        message = f"{message}: {aggregate(error.message() for error in told)}"
    if len(told) < len(errors):
        message = f"{message} and {len(errors) - len(told)} more"
    details: dict[str, Any] = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.kind
    details["causes"] = [error.cause() for error in told]
    return Invalid(message, details)


def _told(errors: list[FieldError]) -> list[FieldError]:
    """As many as the answer has room for: each may show a value of a megabyte, and every item may have one."""
    if len(errors) <= 1:
        return errors
    room = MOST_TOLD
    for index, error in enumerate(errors):
        room -= len(error.message())
        if room < 0:
            return errors[: max(1, index)]
    return errors
