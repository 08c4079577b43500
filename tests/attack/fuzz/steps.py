"""One step of an attack, as data: it is written to a file, and played again elsewhere."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

import yaml

PROTOBUF_MAGIC = b"k8s\0"
OPENING = {"list": "[", "map": '{"a":', "block": "- ", "pairs": "[{", "blockmap": "? "}
CLOSING = {"list": "]", "map": "}", "pairs": "}]"}

Value = str | dict[str, Any]  # a text, or a reference to what came back earlier


@dataclass(slots=True)
class Step:
    person: str
    method: str = "GET"
    path: str = "/"  # sent as it stands
    query: list[tuple[str, Value]] = field(default_factory=list)
    body: dict[str, Any] | None = None  # a recipe, see `render`: a million brackets fit on one line
    headers: dict[str, str] = field(default_factory=dict)
    action: str = "request"  # or "restart": kill -9 and `danlu up` again
    family: str = ""  # what the generator had in mind,
    about: str = ""  # and within it

    @property
    def mutates(self) -> bool:
        return self.action == "request" and self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def shape(self) -> str:
        """The same for steps that try the same thing with other names: what was found once is not looked for again."""
        if self.about:
            return f"{self.family}: {self.about}"
        path = re.sub(r"(?<=/|f)[abcd](?=[/;%]|$)|canary-[abcd]\d?|fuzz-\d+|kube-system", "X", self.path)
        return f"{self.family}: {self.method} {path}".strip()

    def written(self) -> dict[str, Any]:
        """Without what is as usual."""
        return {name: value for name, value in asdict(self).items() if value not in ({}, [], None, "")}

    @classmethod
    def read(cls, data: dict[str, Any]) -> Step:
        pairs = [(str(name), value) for name, value in data.get("query", [])]
        return cls(**{**data, "query": pairs})


# -- bodies


def render(recipe: dict[str, Any] | None) -> bytes | None:
    """The bytes of a body.

    `json`/`yaml`: an object, in which texts of the form @NAME are replaced by what `deep` says of NAME; `text`; `hex`;
    `nest`: brackets alone; `protobuf`: messages in messages.
    """
    if recipe is None:
        return None
    if "json" in recipe or "yaml" in recipe:
        text = json.dumps(recipe["json"]) if "json" in recipe else yaml.safe_dump(recipe["yaml"])
        for name, nested in recipe.get("deep", {}).items():
            text = text.replace(f'"@{name}"', nest(nested)).replace(f"'@{name}'", nest(nested))
        return text.encode()
    if "nest" in recipe:
        return (str(recipe.get("before", "")) + nest(recipe["nest"]) + str(recipe.get("after", ""))).encode()
    if "protobuf" in recipe:
        return _protobuf(recipe["protobuf"])
    if "hex" in recipe:
        return bytes.fromhex(recipe["hex"])
    return str(recipe.get("text", "")).encode("utf-8", "surrogatepass")


def nest(how: dict[str, Any]) -> str:
    shape, depth = str(how["shape"]), int(how["depth"])
    if shape == "text":
        return json.dumps("x" * depth)
    if shape == "blockmap":  # each level one column further in: the only way for block mappings
        return "\n".join(" " * level + "a:" for level in range(depth))
    closing = CLOSING.get(shape, "") * depth if how.get("closed", True) else ""
    return OPENING[shape] * depth + ("1" if how.get("closed", True) else "") + closing


def _protobuf(how: dict[str, Any]) -> bytes:
    """The envelope of a kind around `depth` messages, each the field `number` of the one around it."""
    inner = b""
    for _ in range(int(how["depth"])):
        inner = _bytes_field(int(how["number"]), inner)
        if len(inner) > 2_000_000:
            break
    kind = _bytes_field(1, str(how["apiVersion"]).encode()) + _bytes_field(2, str(how["kind"]).encode())
    return PROTOBUF_MAGIC + _bytes_field(1, kind) + _bytes_field(2, inner)


def _bytes_field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


# -- what came back, and references to it


@dataclass(slots=True)
class Harvest:
    """What the people of an episode were given, and may hand on to each other or forge from."""

    tokens: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (person, resource)
    revisions: dict[str, int] = field(default_factory=dict)

    def gather(self, person: str, path: str, body: Any) -> None:
        meta = body.get("metadata") if isinstance(body, dict) else None
        if not isinstance(meta, dict):
            return
        if isinstance(token := meta.get("continue"), str) and token:
            self.tokens.setdefault((person, resource_of(path)), []).append(token)
        if str(meta.get("resourceVersion", "")).isdecimal():
            self.revisions[person] = int(meta["resourceVersion"])

    def resolve(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        if value["ref"] == "revision":
            return str(self.revisions.get(value["of"], 1) + int(value.get("offset", 0)))
        if value["ref"] == "forged":
            revision = self.revisions.get(value["of"], 1) + int(value.get("offset", 0))
            return _coded({"v": "meta.k8s.io/v1", "rv": revision, "start": value["start"] + "\0"})
        token = (self.tokens.get((value["of"], value["resource"])) or [""])[-1]
        return bend(token, value["bend"]) if "bend" in value else token


def resource_of(path: str) -> str:
    """The last plural in a path, by the fuzzer's own reading."""
    parts = [part for part in path.split("?")[0].split("/") if part]
    rest = parts[3:] if parts[:1] == ["apis"] else parts[2:]
    if rest[:1] == ["watch"]:
        rest = rest[1:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return rest[0] if rest else ""


def _coded(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data, separators=(",", ":")).encode()).rstrip(b"=").decode()


def bend(token: str, how: dict[str, Any]) -> str:
    """A token with something in it changed: one letter, or one value where it can be read."""
    if not token:
        return token
    if "letter" in how:
        place = int(how["letter"]) % len(token)
        other = "A" if token[place] != "A" else "B"
        return token[:place] + other + token[place + 1 :]
    if "cut" in how:
        return token[: -(int(how["cut"]) % len(token)) or None]
    head, dot, tail = token.partition(".")
    try:
        data = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        data.update({name: value for name, value in how["set"].items() if name in data or how.get("add")})
    except (ValueError, AttributeError):
        return token
    return _coded(data) + dot + tail
