"""YAML bodies, read as Kubernetes reads them: into JSON data, safely.

Differences from PyYAML's own reading: no timestamps (they stay text), no base-60 numbers, exponents without a point
are numbers; a document whose aliases blow up, or that contains itself, is refused; repeated keys are reported.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
import yaml

MOST_VALUES = 400_000  # after aliases are written out; a 3 MiB body without aliases stays below
MOST_DEPTH = 200  # as for JSON bodies


class YamlError(ValueError):
    pass


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads scalars as Go's YAML does."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), [*_first.replace("\0", ""), ""]
        if "\0" in _first
        else list(_first)
    )  # fmt: skip


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    text = str(node.value).replace("_", "").lower()
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits.startswith("0o"):
        return sign * int(digits[2:], 8)
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _float(loader: Any, node: yaml.ScalarNode) -> float:
    text = str(node.value).replace("_", "").lower()
    if "inf" in text or "nan" in text:
        raise YamlError("json: unsupported value: " + {"n": "NaN", "-": "-Inf"}.get(text.lstrip(".")[0], "+Inf"))
    return float(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def load(body: bytes) -> tuple[Any, list[str]]:
    """The first document, and a text for each key that stands twice in one mapping."""
    try:
        loader = _Loader(body)
        try:
            node = loader.get_node() if loader.check_node() else None
            if node is None:
                return None, []
            repeated: list[str] = []
            _measure(node, {}, set(), repeated)
            data = loader.construct_document(node)
        finally:
            loader.dispose()
        # Aliases share one value in memory; writing it out and reading it back gives each place its own.
        return orjson.loads(orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS)), repeated
    except yaml.YAMLError as error:
        raise YamlError(_worded(error)) from None
    except RecursionError:
        raise YamlError("yaml: exceeded max depth") from None
    except (orjson.JSONEncodeError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise YamlError(str(error)) from None


def _worded(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"yaml: line {mark.line + 1}: {problem}" if mark is not None else f"yaml: {problem}"


def _measure(node: yaml.Node, known: dict[int, int], above: set[int], repeated: list[str]) -> int:
    """How many values the node stands for once its aliases are written out."""
    size = known.get(id(node))
    if size is not None:
        return size
    if id(node) in above:
        raise YamlError("yaml: anchor value contains itself")
    if len(above) > MOST_DEPTH:
        raise YamlError("yaml: exceeded max depth")
    above.add(id(node))
    size = 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    repeated.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
            size += _measure(key, known, above, repeated) + _measure(value, known, above, repeated)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_measure(item, known, above, repeated) for item in node.value)
    above.discard(id(node))
    if size > MOST_VALUES:
        raise YamlError("yaml: document contains excessive aliasing")
    known[id(node)] = size
    return size
