"""YAML, read as Kubernetes reads it: into JSON data, safely. The one way in for YAML that others wrote.

Differences from PyYAML's own reading: no timestamps (they stay text), no base-60 numbers, exponents without a point
are numbers; a document whose aliases blow up, or that contains itself, is refused; repeated keys are reported.

libyaml's loader recurses in C, without a limit: a hundred kilobytes of `[` end the process. Its parser does not, so the
document goes through the parser first, which stops where it is too deep or too long.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson
import yaml

from danlu.meta.nesting import MOST_DEPTH, TOO_DEEP

# After aliases are written out. A manifest of a megabyte without aliases stays below both.
MOST_VALUES = 100_000  # a second's work, during which nobody else is answered
MOST_TEXT = 3 * 1024 * 1024  # characters
MOST_REPEATED = 100  # keys that are reported, as for JSON


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


def load(body: bytes | str) -> tuple[Any, list[str]]:
    """The first document, and a text for each key that stands twice in one mapping."""
    try:
        _survey(body)
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
    except (orjson.JSONEncodeError, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise YamlError(str(error)) from None


def _worded(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"yaml: line {mark.line + 1}: {problem}" if mark is not None else f"yaml: {problem}"


_OPENING = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSING = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


def _survey(body: bytes | str) -> None:
    """Raises YamlError for a first document that is too deep or too long as it is written, before any alias."""
    depth = values = 0
    for event in yaml.parse(body, _Loader):
        kind = event.__class__
        if kind in _CLOSING:
            depth -= 1
            continue
        if kind is yaml.DocumentEndEvent:
            return
        values += 1
        if kind in _OPENING:
            depth += 1
            if depth > MOST_DEPTH:
                raise YamlError(f"yaml: {TOO_DEEP}")
        if values > MOST_VALUES:
            raise YamlError(f"yaml: document has more than {MOST_VALUES} values")


class _Extent(NamedTuple):
    """Of a node once its aliases are written out."""

    values: int
    depth: int
    text: int


def _measure(node: yaml.Node, known: dict[int, _Extent], above: set[int], repeated: list[str]) -> _Extent:
    """Its own depth is that of the document as written, which `_survey` has bounded."""
    found = known.get(id(node))
    if found is not None:
        return found
    if id(node) in above:
        raise YamlError("yaml: anchor value contains itself")
    above.add(id(node))
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen and len(repeated) < MOST_REPEATED:
                    repeated.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
            inner += (key, value)
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    scalar = isinstance(node, yaml.ScalarNode)
    values, depth, text = 1, 0, len(node.value) if scalar else 0
    for item in inner:
        below = _measure(item, known, above, repeated)
        values, depth, text = values + below.values, max(depth, below.depth), text + below.text
    depth += not scalar
    above.discard(id(node))
    if depth > MOST_DEPTH:
        raise YamlError(f"yaml: {TOO_DEEP}")
    if values > MOST_VALUES or text > MOST_TEXT:
        raise YamlError("yaml: document contains excessive aliasing")
    known[id(node)] = extent = _Extent(values, depth, text)
    return extent
