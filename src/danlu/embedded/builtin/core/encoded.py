"""Values that travel as base64 (Secret data, ConfigMap binaryData): their size, and the answer to what is no base64."""

from __future__ import annotations

import re
from typing import Any

from danlu.errors import BadRequest
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid

MAX_BYTES = 1024 * 1024  # of all values of one object together, decoded
FROZEN = "field is immutable when `immutable` is set"

_WELL_FORMED = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ALPHABET = re.compile(r"[A-Za-z0-9+/]*")


def check_base64(kind: str, values: dict[str, Any] | None) -> None:
    """Answer 400 as Go's decoder does; absent values become empty ones."""
    for key, value in (values or {}).items():
        if value is None:
            values[key] = ""  # type: ignore[index]
            continue
        offset = _first_illegal(value)
        if offset is not None:
            raise BadRequest(
                f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data at input byte {offset}'
            )
        if "\n" in value or "\r" in value:
            values[key] = value.replace("\n", "").replace("\r", "")  # type: ignore[index]


def _first_illegal(text: str) -> int | None:
    """Where Go's decoder stops, or None: groups of four, padded at the very end, line breaks anywhere."""
    compact = text.replace("\n", "").replace("\r", "")
    if _WELL_FORMED.fullmatch(compact):
        return None
    matched = _ALPHABET.match(compact)
    end = matched.end() if matched else 0
    if end == len(compact):
        return end if end % 4 == 0 else end - end % 4
    if compact[end] != "=" or end % 4 < 2:
        return end
    padded = end + 4 - end % 4
    if padded > len(compact):
        return len(compact)
    return end if compact[end:padded].strip("=") else padded


def decoded_size(text: str) -> int:
    """Bytes that a base64 text stands for, without decoding it."""
    compact = len(text) - text.count("\n") - text.count("\r")
    return compact // 4 * 3 - (2 if text.endswith("==") else 1 if text.endswith("=") else 0)


def key_errors(path: str, key: str) -> list[FieldError]:
    return [invalid(f"{path}[{key}]", key, text) for text in names.config_key(key)]
