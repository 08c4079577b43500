"""From a request's body to an object that fits its schema."""

from __future__ import annotations

from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call
from danlu.embedded.apiserver.served import ServedKind
from danlu.errors import BadRequest
from danlu.meta.kind import Object

FIELD_VALIDATION = ("Strict", "Warn", "Ignore")


def field_validation(call: Call) -> str:
    asked = call.query.get("fieldValidation")
    if asked and asked not in FIELD_VALIDATION:
        supported = ", ".join(f'"{value}"' for value in sorted(FIELD_VALIDATION))
        raise BadRequest(f'fieldValidation: Unsupported value: "{asked}": supported values: {supported}')
    return asked or "Warn"


def read_object(call: Call, served: ServedKind) -> Object:
    """The object in the body of a create or an update."""
    body = decode_body(call.headers.get("content-type", ""), call.body, call.warnings, field_validation(call))
    kind = served.kind
    if body.get("apiVersion", kind.api_version) != kind.api_version or body.get("kind", kind.kind) != kind.kind:
        if body.get("apiVersion") and body.get("kind"):
            sent = f"{body['apiVersion']}, Kind={body['kind']}"
            raise BadRequest(
                f"{body['kind']} in version {str(body['apiVersion']).rsplit('/', 1)[-1]!r} cannot be handled as a "
                f"{kind.kind}: the object provided is unrecognized: {sent} does not match {kind.api_version}, "
                f"Kind={kind.kind}".replace("'", '"')
            )
        raise BadRequest(
            f"the API version in the data ({body.get('apiVersion', '')}) does not match the expected API version "
            f"({kind.api_version})"
        )
    return fit(call, served, body)


def fit(call: Call, served: ServedKind, obj: Object) -> Object:
    """Puts `obj` in the normal form of its schema, dropping fields that it does not have, loudly or quietly."""
    kind = served.kind
    decoded = served.schema().decode(obj)
    if decoded.problem is not None:
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {decoded.problem.message}'
        )
    if decoded.unknown:
        complain(call, [f'unknown field "{path}"' for path in decoded.unknown], kind.kind, kind.version)
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return obj


def complain(call: Call, texts: list[str], kind: str, version: str) -> None:
    mode = field_validation(call)
    if mode == "Strict":
        raise BadRequest(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: ' + ", ".join(texts)
        )
    if mode == "Warn":
        call.warnings.extend(texts)
