"""Objects as YAML and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from danlu.meta.kind import Object


def dumped(value: Any, form: str) -> str:
    """Without managedFields, which only servers read."""
    clean = _without_managed_fields(value)
    if form == "json":
        return json.dumps(clean, ensure_ascii=False, indent=2)
    return yaml_text(clean).rstrip("\n")


def yaml_text(value: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120))


def as_list(items: Sequence[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": [*items], "metadata": {"resourceVersion": ""}}


def _without_managed_fields(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "List":
        return {**value, "items": [_without_managed_fields(one) for one in value["items"]]}
    metadata = {key: inner for key, inner in (value.get("metadata") or {}).items() if key != "managedFields"}
    return {**value, "metadata": metadata}
