"""What a client wants back (Accept) and what it sent (Content-Type)."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from danlu.errors import BadRequest, NotAcceptable, UnsupportedMediaType
from danlu.meta import protobuf
from danlu.meta.fields import quoted
from danlu.meta.nesting import TOO_DEEP, TooDeep, parse_json

JSON = "application/json"
YAML = "application/yaml"
MEDIA_TYPES = (JSON, YAML)
LONGEST_ACCEPT = 4096  # characters; what is asked for is remembered
_CONVERSIONS = {
    "Table": ("table", "meta.k8s.io", ("v1", "v1beta1")),
    "PartialObjectMetadata": ("partial", "meta.k8s.io", ("v1", "v1beta1")),
    "PartialObjectMetadataList": ("partial", "meta.k8s.io", ("v1", "v1beta1")),
    "APIGroupDiscoveryList": ("discovery", "apidiscovery.k8s.io", ("v2", "v2beta1")),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    kind: str = "json"  # json (the objects themselves), table, partial (their metadata) or discovery (aggregated)
    version: str = ""  # of the form asked for: v1, v1beta1; v2 for discovery
    encoding: str = "json"  # json or yaml
    pretty: bool = False

    @property
    def plain(self) -> bool:
        """Stored bytes can be sent as they are."""
        return self.kind == "json" and self.encoding == "json" and not self.pretty

    @property
    def content_type(self) -> str:
        return JSON if self.encoding == "json" else YAML


_PLAIN = Wanted()


def parse_accept(header: str) -> Wanted:
    """The first thing in the client's order that we can make. Raises NotAcceptable."""
    if not header or header == JSON or header == "*/*":
        return _PLAIN
    found = _parse(header) if len(header) <= LONGEST_ACCEPT else None
    if found is None:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(MEDIA_TYPES)}")
    return found


@functools.lru_cache(maxsize=256)
def _parse(header: str) -> Wanted | None:
    clauses = []
    for clause in header.split(","):
        media, *parts = (part.strip() for part in clause.split(";"))
        given = dict(part.split("=", 1) for part in parts if "=" in part)
        parameters = {name.strip(): value.strip().strip('"') for name, value in given.items()}
        try:
            weight = float(parameters.get("q", "1"))
        except ValueError:
            weight = 1.0
        clauses.append((-weight, media.count("*"), media, parameters))
    for _, _, media, parameters in sorted(clauses, key=lambda clause: clause[:2]):
        if media in (JSON, "*/*", "application/*"):
            encoding = "json"
        elif media == YAML:
            encoding = "yaml"
        else:
            continue
        wanted = _converted(parameters, encoding)
        if wanted is not None:
            return wanted
    return None


def _converted(parameters: dict[str, str], encoding: str) -> Wanted | None:
    pretty = parameters.get("pretty") == "1"
    if not any(name in parameters for name in ("as", "g", "v")):
        return Wanted(encoding=encoding, pretty=pretty)
    kind, group, versions = _CONVERSIONS.get(parameters.get("as", ""), ("", "", ()))
    version = parameters.get("v", "")
    if not kind or parameters.get("g") != group or version not in versions:
        return None
    return Wanted(kind, version, encoding, pretty)


def encode(obj: Any, wanted: Wanted) -> bytes:
    if wanted.encoding == "yaml":
        import yaml

        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        text: str = yaml.dump(obj, Dumper=dumper, default_flow_style=False, allow_unicode=True, sort_keys=True)
        return text.encode()
    return orjson.dumps(obj, option=orjson.OPT_INDENT_2) if wanted.pretty else orjson.dumps(obj)


class DuplicateKeys(NamedTuple):
    """What becomes of keys that a body has twice."""

    warnings: list[str]
    field_validation: str = "Warn"  # or Strict: they are refused; Ignore: nobody looks
    repeated: list[str] | None = None  # takes what would be refused, for a caller who will find more to refuse


def decode_body(
    content_type: str, body: bytes, duplicates: DuplicateKeys, *, patch: bool = False, kind: str = ""
) -> Any:
    """The JSON data in a body; an object, or with `patch` also a list. `kind`: what is expected, for errors."""
    warnings, field_validation, repeated = duplicates
    media = content_type.split(";", 1)[0].strip().lower()
    if media in ("", JSON):
        data, strict = _from_json(body, patch=patch, look_twice=field_validation != "Ignore", kind=kind)
    elif media == YAML:
        data, strict = _from_yaml(body, patch=patch, kind=kind)
    elif media == protobuf.MEDIA_TYPE and (data := _from_protobuf(body)) is not None:
        strict = []
    else:
        accepted = ", ".join((*MEDIA_TYPES, protobuf.MEDIA_TYPE))
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    if data is None and not patch:
        data = {}
    if not isinstance(data, dict) and not (patch and isinstance(data, list)):
        expected = "map[string]interface {}" if patch else _FIND_KIND
        problem = f"json: cannot unmarshal {_go_name(data)} into Go value of type {expected}"
        raise _unrecognized(problem, body, patch, kind)
    if strict and field_validation == "Strict" and repeated is not None:
        repeated.extend(strict)
    elif strict and field_validation == "Strict":
        raise BadRequest(f"{_subject(data)}strict decoding error: {', '.join(strict)}")
    if strict and field_validation == "Warn":
        warnings.extend(strict)
    return data


def _from_protobuf(body: bytes) -> Any:
    try:
        return protobuf.decode(body)
    except protobuf.ProtobufError as error:
        raise BadRequest(f"unable to decode the body as protobuf: {error}") from None


_NO_KIND = "couldn't get version/kind; json parse error: "
_FIND_KIND = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def _subject(data: Any) -> str:
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str):
        return ""
    version = str(data.get("apiVersion", "")).rsplit("/", 1)[-1]
    return f"{kind} in version {quoted(version)} cannot be handled as a {kind}: "


def _go_name(data: Any) -> str:
    if isinstance(data, bool):
        return "bool"
    return {str: "string", int: "number", float: "number", list: "array", type(None): "null"}.get(type(data), "object")


OPTIONS = "DeleteOptions"  # their decoding errors come without a frame


def _unrecognized(reason: str, body: bytes, patch: bool, kind: str, found_by: str = _NO_KIND) -> BadRequest:
    if patch:
        return BadRequest(f"error decoding patch: {reason}")
    if kind == OPTIONS:
        return BadRequest(f"{found_by}{reason}")
    if not body:
        shown = "<empty>"
    elif body[:1] == b"{":
        shown = body[:30].decode("utf-8", "replace")
    else:
        shown = body[:30].hex()
    shown += " ..." if len(body) > 30 else ""
    expected = f" (must be of type {kind})" if kind else ""
    return BadRequest(f"the object provided is unrecognized{expected}: {found_by}{reason} ({shown})")


def _from_json(body: bytes, *, patch: bool, look_twice: bool, kind: str) -> tuple[Any, list[str]]:
    try:
        data = parse_json(body)
    except orjson.JSONDecodeError as error:
        raise _unrecognized(_go_syntax_error(body, error), body, patch, kind) from None
    except TooDeep:
        raise _unrecognized(TOO_DEEP, body, patch, kind) from None
    if not look_twice or _has_no_key_twice(body, data):
        return data, []
    return data, [f"duplicate field {quoted(path)}" for path in _duplicates(body)]


def plain_json(body: bytes) -> Any:
    """The data of a body that is JSON with nothing odd about it; else None. JSON is also YAML, and quicker to read."""
    try:
        data = parse_json(body)
    except ValueError:
        return None
    return data if _has_no_key_twice(body, data) else None


def _has_no_key_twice(body: bytes, data: Any) -> bool:
    if orjson.dumps(data) == body.strip():  # as most clients write it; a repeated key would be missing
        return True
    keys = _STRINGS.findall(body)
    return _count_keys(data) == len(keys) - keys.count(b"")


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)


def _count_keys(data: Any) -> int:
    total = 0
    pending = [data]
    while pending:
        value = pending.pop()
        if value.__class__ is dict:
            total += len(value)
            pending.extend(value.values())
        elif value.__class__ is list:
            pending.extend(value)
    return total


class _Pairs(list[tuple[str, Any]]):
    """An object with all its keys, as they stand in the text."""


def _duplicates(body: bytes) -> list[str]:
    try:
        tree = json.loads(body, object_pairs_hook=_Pairs)
    except ValueError:
        return []
    found: dict[str, None] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, item in value:
                place = f"{path}.{key}" if path else key
                if key in seen:
                    found[place] = None
                seen.add(key)
                walk(item, place)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(item, f"{path}[{index}]")

    walk(tree, "")
    return list(found)[:100]


def _go_syntax_error(body: bytes, error: orjson.JSONDecodeError) -> str:
    if error.pos >= len(body.rstrip()) or "end of" in str(error) or "EOF" in str(error):
        return "unexpected end of JSON input"
    letter = body[error.pos : error.pos + 1].decode("latin-1")
    shown = {"'": r"'\''", '"': "'\"'"}.get(letter, f"'{letter}'" if letter.isprintable() else repr(letter))
    where = next((go for ours, go in _GO_PLACES.items() if ours in str(error)), "looking for beginning of value")
    return f"invalid character {shown} {where}"


_GO_PLACES = {
    "expected a string key": "looking for beginning of object key string",
    "expected ':'": "after object key",
    "',' or '}'": "after object key:value pair",
    "',' or ']'": "after array element",
    "after document": "after top-level value",
}


def _from_yaml(body: bytes, *, patch: bool, kind: str) -> tuple[Any, list[str]]:
    from danlu.meta import yamlreader

    try:
        return yamlreader.load(body)
    except yamlreader.YamlError as error:
        raise _unrecognized(str(error), body, patch, kind, found_by="") from None
