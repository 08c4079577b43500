"""Values that travel as base64 (Secret data, ConfigMap binaryData): their size, and the answer to what is no base64."""

from __future__ import annotations

import re
from typing import Any

from danlu.errors import BadRequest
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid

MAX_BYTES = 1024 * 1024  # of all values of one object together, decoded
FROZEN = "field is immutable when `immutable` is set"

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


def _first_illegal(text: str) -> int | None:
    compact = text.replace("\n", "").replace("\r", "")
    body = compact.rstrip("=") if compact.endswith("=") else compact
    match = _ALPHABET.match(body)
    end = match.end() if match else 0
    if end < len(body):
        return end
    padding = len(compact) - len(body)
    if len(compact) % 4 == 0 and padding <= 2 and len(body) % 4 != 1:
        return None
    return len(compact) - (len(compact) % 4) if len(compact) % 4 else len(body)


def decoded_size(text: str) -> int:
    """Bytes that a base64 text stands for, without decoding it."""
    compact = len(text) - text.count("\n") - text.count("\r")
    return compact // 4 * 3 - (2 if text.endswith("==") else 1 if text.endswith("=") else 0)


def key_errors(path: str, key: str) -> list[FieldError]:
    return [invalid(f"{path}[{key}]", key, text) for text in names.config_key(key)]
