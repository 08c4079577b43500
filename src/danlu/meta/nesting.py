"""How deeply data may be nested, and the one way in for JSON that others wrote.

Much of what reads, compares or writes an object goes down into it level by level, and some of that is C code that ends
the process when the stack does. So depth is bounded before anything of the kind sees the data: for JSON here, for YAML
in `yamlreader`, for protobuf in `protobuf`.
"""

from __future__ import annotations

from typing import Any

import orjson

# Of nested objects and lists. The JSON encoder stops at 254, events and lists wrap objects, and managedFields tells of
# an object's fields once more, four levels further down. Go stops at 10,000; nothing that people write comes near 200.
MOST_DEPTH = 200
TOO_DEEP = "exceeded max depth"  # Go's words


class TooDeep(ValueError):
    def __init__(self) -> None:
        super().__init__(TOO_DEEP)


def parse_json(text: bytes | str) -> Any:
    """Raises ValueError: orjson's for what is no JSON, TooDeep for what is nested too deeply."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if any(word in error.msg for word in ("depth", "ecursion")):  # of orjson's own limit, a thousand
            raise TooDeep from None
        raise
    if may_be_deep(text) and is_too_deep(data):
        raise TooDeep
    return data


def may_be_deep(text: bytes | str) -> bool:
    """JSON with fewer brackets than that cannot be: the walk through the data is saved for nearly all of it."""
    if isinstance(text, str):
        return text.count("{") + text.count("[") > MOST_DEPTH
    return text.count(b"{") + text.count(b"[") > MOST_DEPTH


def is_too_deep(data: Any) -> bool:
    """Goes level by level, so that its own depth is none."""
    level = [data]
    for _ in range(MOST_DEPTH):
        below: list[Any] = []
        for value in level:
            if value.__class__ is dict:
                below.extend(value.values())
            elif value.__class__ is list:
                below.extend(value)
        level = [value for value in below if value.__class__ in (dict, list)]
        if not level:
            return False
    return True
