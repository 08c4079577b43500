"""How Kubernetes prints what may not change (a unified diff of both as indented JSON), and its internal structs."""

from __future__ import annotations

import difflib
import json
from typing import Any


def diff_of(old: Any, new: Any) -> str:
    before, after = (
        json.dumps(_go_names(value), indent=1, ensure_ascii=False, sort_keys=True).splitlines() for value in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]  # without the names of two files
    return "".join(f"{line}\n" for line in lines)


def as_struct(value: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """`value` as Kubernetes prints its internal struct: each field in order, those not set with their zero value."""
    return {name[:1].upper() + name[1:]: _go_names(value.get(name, zero)) for name, zero in fields.items()}


def _go_names(value: Any) -> Any:
    """Kubernetes prints its internal structs, whose fields start with a capital."""
    if isinstance(value, dict):
        return {key[:1].upper() + key[1:]: _go_names(inner) for key, inner in value.items()}
    return [_go_names(inner) for inner in value] if isinstance(value, list) else value
