"""patch: JSON, merge and strategic merge patches, and server-side apply."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver import answerencoder, bodydecoder, writehandler, writeoptions
from danlu.embedded.apiserver.negotiation import DuplicateKeys, decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.errors import BadRequest, Conflict, NotFound, UnsupportedMediaType
from danlu.meta import clock
from danlu.meta.fields import forbidden, required
from danlu.meta.kind import Object
from danlu.meta.patch import apply, json_patch, merge_patch, strategic_merge_patch

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def patch_type(call: Call, *, native: bool) -> str:
    """Raises UnsupportedMediaType: the words depend on which part of Kubernetes serves the kind."""
    kind = call.headers.get("content-type", "").split(";")[0].strip()
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if native else []), APPLY_PATCH]
    if kind in accepted:
        return kind
    if native:
        raise UnsupportedMediaType("415: Unsupported Media Type", {})
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    )


def check_options(call: Call, kind: str) -> None:
    errors = []
    if kind == APPLY_PATCH:
        if not call.query.get("fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
    elif "force" in call.query:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    writeoptions.check(call, writeoptions.PATCH, errors)


async def patch(call: Call) -> Response:
    served = call.served
    assert served is not None
    answerencoder.wanted(call)
    kind = patch_type(call, native=not served.custom)
    check_options(call, kind)
    if kind == APPLY_PATCH:
        return await _server_side_apply(call, served)
    return answerencoder.one(call, served, await writehandler.change(call, served, _maker(call, served, kind)), 200)


def patch_body(call: Call, kind: str) -> Any:
    """The patch: a list of operations, or an object."""
    duplicates = DuplicateKeys(call.warnings, bodydecoder.field_validation(call))
    body = decode_body("application/json", call.body, duplicates, patch=True)
    if kind != JSON_PATCH and not isinstance(body, dict):
        problem = "json: cannot unmarshal array into Go value of type map[string]interface {}"
        raise BadRequest(problem if kind == STRATEGIC_PATCH else f"error decoding patch: {problem}")
    return body


def _maker(call: Call, served: ServedKind, kind: str) -> writehandler.Make:
    """The function from the old object to the patched one."""
    body = patch_body(call, kind)

    def make(old: Object) -> Object:
        if kind == JSON_PATCH:
            new = json_patch(old, body)
        elif kind == MERGE_PATCH:
            new = merge_patch(old, body)
        else:
            # The patched fields go straight into the typed object, which has no say in what kind it is.
            identity = {"apiVersion": old["apiVersion"], "kind": old["kind"]}
            new = strategic_merge_patch(old, body, served.schema(), use_up=True) | identity
        new = bodydecoder.fit_patched(call, served.schema(), served.kind, new, custom=served.custom)
        writehandler.match_name(call, new["metadata"])
        writehandler.match_namespace(call, served, new["metadata"])
        return new

    return make


# -- server-side apply


async def _server_side_apply(call: Call, served: ServedKind) -> Response:
    by = call.query.get("fieldManager")
    applied = _applied(call, served)
    meta = applied["metadata"]
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    force = call.query.flag("force")
    kind, now = served.kind, clock.now_rfc3339()
    if stored is None:
        if call.subresource:
            raise NotFound.of(kind.plural, call.name, kind.group)
        writehandler.match_name(call, meta)
        meta.pop("resourceVersion", None)
        obj = apply(None, applied, by, force, served.schema(), kind.api_version, now)
        fields = obj["metadata"].get("managedFields") or []
        return answerencoder.one(call, served, await writehandler.create_object(call, served, obj, fields), 201)
    meta.setdefault("name", call.name)
    writehandler.match_name(call, meta)
    old = answerencoder.object_of(served, stored)
    new = apply(old, applied, by, force, served.schema(), kind.api_version, now, call.subresource)
    writehandler.keep_identity(call, served, new, old)
    if _same_but_times(new, old):
        return answerencoder.one(call, served, stored, 200)
    try:
        pending = await writehandler.update_object(call, served, new, old, by, applied=True)
    except writehandler.StaleRead:
        raise Conflict.of_version(kind.plural, call.name, kind.group) from None
    return answerencoder.one(call, served, await writehandler.finish(pending, stored), 200)


def _applied(call: Call, served: ServedKind) -> Object:
    """The object in the body, fit for its schema. Nothing is dropped quietly: what is applied is what is owned."""
    sent = bodydecoder.read_applied(call)
    kind = served.kind
    if sent.get("apiVersion") != kind.api_version or sent.get("kind") != kind.kind:
        group, _, version = str(sent.get("apiVersion", "")).rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={sent.get('kind', '')}")
    if served.has_status and served.custom and not call.subresource:
        sent.pop("status", None)
    meta = sent.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    applied = bodydecoder.fit_applied(call, served, sent)
    # Not filled in: errors name the object as it was sent, and the live object has its namespace.
    writehandler.match_namespace(call, served, applied["metadata"], fill_in=False)
    return applied


def _same_but_times(new: Object, old: Object) -> bool:
    """Whether an apply changes nothing but the time stamps of its own bookkeeping."""

    def bare(obj: Object) -> Object:
        meta = dict(obj["metadata"])
        entries = meta.get("managedFields") or []
        meta["managedFields"] = [{name: entry[name] for name in entry if name != "time"} for entry in entries]
        return {**obj, "metadata": meta}

    return bare(new) == bare(old)
