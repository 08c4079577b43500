"""Secrets: bytes by key. Some types promise certain keys, and `stringData` is folded into `data` on the way in."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import orjson

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.embedded.builtin.core.encoded import FROZEN, MAX_BYTES, check_base64, decoded_size, key_errors
from danlu.meta import names
from danlu.meta.fields import IMMUTABLE, FieldError, forbidden, invalid, required, too_long
from danlu.meta.kind import Object
from danlu.meta.nesting import TooDeep, parse_json
from danlu.meta.wellknown import SECRET

TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


def default(obj: Object) -> None:
    if not obj.get("type"):
        obj["type"] = "Opaque"
    check_base64("Secret", obj.get("data"))
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.get("data")
        if data is None:
            data = obj["data"] = {}
        for key, value in plain.items():
            data[key] = b64encode((value or "").encode()).decode()


def validate(obj: Object) -> list[FieldError]:
    data: dict[str, str] = obj.get("data") or {}
    errors: list[FieldError] = []
    for key in data:
        errors += key_errors("data", key)
    if sum(map(decoded_size, data.values())) > MAX_BYTES:
        errors.append(too_long("data", "", MAX_BYTES))
    return errors + _promised_keys(obj, data)


def _promised_keys(obj: Object, data: dict[str, str]) -> list[FieldError]:
    """Each type's own keys; an unknown type promises nothing."""
    sort = obj.get("type") or ""
    if sort == TOKEN:
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        return [] if annotations.get(ACCOUNT_NAME) else [required(f"metadata.annotations[{ACCOUNT_NAME}]")]
    if sort in _JSON_KEYS:
        return _json_value(data, _JSON_KEYS[sort])
    if sort == "kubernetes.io/basic-auth":
        wanted = ("username", "password")
        return [] if any(key in data for key in wanted) else [required(f"data[{key}]") for key in wanted]
    if sort == "kubernetes.io/ssh-auth":
        return [] if data.get("ssh-privatekey") else [required("data[ssh-privatekey]")]
    if sort == "kubernetes.io/tls":
        return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _json_value(data: dict[str, str], key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        value: Any = parse_json(b64decode(data[key]))
    except TooDeep as error:
        return [invalid(f"data[{key}]", "<secret contents redacted>", str(error))]
    except orjson.JSONDecodeError as error:
        return [invalid(f"data[{key}]", "<secret contents redacted>", _go_error(error))]
    if isinstance(value, dict):
        return []
    text = f"json: cannot unmarshal {_go_kind(value)} into Go value of type map[string]interface {{}}"
    return [] if value is None else [invalid(f"data[{key}]", "<secret contents redacted>", text)]


def _go_error(error: orjson.JSONDecodeError) -> str:
    """The same in Go's words, near enough to find the place."""
    if error.pos >= len(error.doc):
        return "unexpected end of JSON input"
    return f"invalid character '{error.doc[error.pos]}' looking for beginning of value"


def _go_kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("type") != old.get("type"):
        errors.append(invalid("type", new.get("type"), IMMUTABLE))
    if old.get("immutable"):
        if not new.get("immutable"):
            errors.append(forbidden("immutable", FROZEN))
        if (new.get("data") or {}) != (old.get("data") or {}):
            errors.append(forbidden("data", FROZEN))
    return errors + validate(new)


SERVED = ServedKind(
    kind=SECRET,
    schema=schema_of("io.k8s.api.core.v1.Secret"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Type", lambda obj: obj.get("type") or "", description="What the secret is for."),
        Column("Data", lambda obj: len(obj.get("data") or {}), description="How many keys it holds."),
        AGE,
    ),
    default=default,
    validate=validate,
    validate_update=validate_update,
    selectable=lambda obj: {"type": obj.get("type") or ""},
    selectable_names=frozenset({"type"}),
)
