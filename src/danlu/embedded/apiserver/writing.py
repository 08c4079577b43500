"""create, update and patch: from a decoded object to a durable one.

Between reading the old object (`store.latest`) and `store.put` nothing awaits, so no other write can come between and
no lock is needed. What is awaited is only the disk.
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Callable

from danlu.embedded.apiserver import decoding, encoding
from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import AlreadyExists, BadRequest, Conflict, MethodNotAllowed, NotFound, UnsupportedMediaType
from danlu.meta import clock, objects
from danlu.meta.fields import FieldError, invalid, invalid_error, required, too_long
from danlu.meta.kind import Kind, Object
from danlu.meta.metadata import validate_metadata, validate_metadata_update
from danlu.meta.patch import apply, json_patch, merge_patch, strategic_merge_patch, track_update

# Random suffixes leave out vowels and look-alikes, as Kubernetes' do.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED_PREFIX = 58

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

PATCH_OPTIONS = Kind("meta.k8s.io", "v1", "PatchOptions", "patchoptions")

Make = Callable[[Object], Object]  # old -> new


async def create(call: Call) -> Response:
    served = _served(call)
    if served.answer is not None:
        answer = served.answer(call, decoding.read_object(call, served))
        return encoding.one(call, served, answer, 201)
    obj = decoding.read_object(call, served)
    if call.name and not call.subresource:
        raise MethodNotAllowed("POST to a name is not supported; PUT or PATCH it")
    if obj["metadata"].get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    return encoding.one(call, served, await create_object(call, served, obj), 201)


async def create_object(
    call: Call, served: ServedKind, obj: Object, applied_fields: list[Object] | None = None
) -> Stored | Object:
    """A new object from here on: names, defaults, admission, validation, storage.

    `applied_fields`: what server-side apply says its manager owns, instead of the whole object.
    """
    store = call.server.store
    meta = obj["metadata"]
    _match_namespace(call, served, meta)
    generated = not meta.get("name") and bool(meta.get("generateName"))
    if generated:
        meta["name"] = _generated_name(call, served, meta["generateName"])
    for field in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "generation"):
        meta.pop(field, None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now = clock.now_rfc3339()
    served.default(obj)
    served.prepare_create(obj)
    attributes = Attributes(
        "CREATE", served, call.namespace, meta.get("name", ""), "", obj, None, call.user, call.dry_run, call.warnings, {}
    )
    call.server.admission.mutate(attributes)
    errors = validate_metadata(meta, served.kind.namespaced, served.name_errors) + served.validate(obj)
    if errors:
        raise invalid_error(served.kind, meta.get("name", ""), errors)
    call.warnings.extend(served.warnings(obj))
    call.server.admission.validate(attributes)
    if store.latest(served.key, meta.get("namespace") or "", meta["name"]) is not None:
        raise AlreadyExists.of(served.kind.plural, meta["name"], served.kind.group)
    if applied_fields is not None:
        meta["managedFields"] = applied_fields
    else:
        track_update(obj, None, manager(call), served.kind.api_version, served.schema(), now)
    if call.dry_run:
        return obj
    return await store.put(served.key, served.to_stored(obj) if served.to_stored else obj)


async def update(call: Call) -> Response:
    served = _served(call)
    obj = decoding.read_object(call, served)
    meta = obj["metadata"]
    if meta.setdefault("name", call.name) != call.name:
        raise BadRequest(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({call.name})"
        )
    _match_namespace(call, served, meta)
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None and served.create_on_update and not call.subresource and not meta.get("resourceVersion"):
        return encoding.one(call, served, await create_object(call, served, obj), 201)
    return encoding.one(call, served, await change(call, served, lambda _old: obj), 200)


async def patch(call: Call) -> Response:
    served = _served(call)
    kind = call.headers.get("content-type", "").split(";")[0].strip()
    if kind == APPLY_PATCH:
        return await _server_side_apply(call, served)
    if call.query.flag("force"):
        raise invalid_error(
            PATCH_OPTIONS, "", [FieldError("FieldValueForbidden", "force", None, "may not be specified for non-apply patch")]
        )
    make = patch_maker(call, served, kind)
    return encoding.one(call, served, await change(call, served, make), 200)


def patch_maker(call: Call, served: ServedKind, kind: str) -> Make:
    """The function from the old object to the patched one."""
    native = served.schema().root.go_struct != ""
    body = decode_body("application/json", call.body, call.warnings, decoding.field_validation(call), patch=True)
    if kind == JSON_PATCH:
        return lambda old: json_patch(old, body)
    if not isinstance(body, dict):
        raise BadRequest(f"error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {{}}")
    if kind == MERGE_PATCH:
        return lambda old: merge_patch(old, body)
    if kind == STRATEGIC_PATCH and native:
        return lambda old: strategic_merge_patch(old, body, served.schema())
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if native else []), APPLY_PATCH]
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    )


async def change(call: Call, served: ServedKind, make: Make) -> Stored | Object:
    """Replaces one object by `make(old)`, with all rules of an update."""
    store = call.server.store
    stored = store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    old = served.from_stored(stored.obj) if served.from_stored else stored.obj
    sent = make(objects.copy(old))
    new = sent if call.method == "PUT" else decoding.fit(call, served, sent)
    _keep_identity(call, served, new, old)
    pending = update_object(call, served, new, old, manager(call))
    return stored if pending is None else await pending if isinstance(pending, asyncio.Future) else pending


def update_object(
    call: Call, served: ServedKind, new: Object, old: Object, by: str, applied: bool = False
) -> asyncio.Future[Stored] | Object | None:
    """The synchronous heart of every change. None: nothing would change, so nothing is written."""
    store = call.server.store
    is_status = call.subresource == "status"
    served.default(new)
    (served.prepare_status if is_status else served.prepare_update)(new, old)
    attributes = Attributes(
        "UPDATE", served, call.namespace, call.name, call.subresource, new, old, call.user, call.dry_run, call.warnings, {}
    )
    call.server.admission.mutate(attributes)
    errors = validate_metadata_update(new["metadata"], old["metadata"])
    errors += served.validate_status(new, old) if is_status else served.validate_update(new, old)
    if errors:
        raise invalid_error(served.kind, call.name, errors)
    call.warnings.extend([] if is_status else served.warnings(new))
    call.server.admission.validate(attributes)
    if not applied:
        track_update(
            new, old, by, served.kind.api_version, served.schema(), clock.now_rfc3339(), call.subresource
        )
    if new == old:
        return None
    if call.dry_run:
        return new
    written = served.to_stored(new) if served.to_stored else new
    meta = new["metadata"]
    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds") or served.held(new)
    if meta.get("deletionTimestamp") and not waits:
        return store.delete(served.key, written)
    return store.put(served.key, written)


async def _server_side_apply(call: Call, served: ServedKind) -> Response:
    by = call.query.get("fieldManager")
    if not by:
        raise invalid_error(PATCH_OPTIONS, "", [required("fieldManager", "is required for apply patch")])
    sent = decode_body("application/yaml", call.body, call.warnings, decoding.field_validation(call))
    kind = served.kind
    if sent.get("apiVersion") != kind.api_version or sent.get("kind") != kind.kind:
        raise BadRequest(
            f"the API version in the data ({sent.get('apiVersion', '')}) does not match the expected API version "
            f"({kind.api_version})"
        )
    applied = decoding.fit(call, served, sent)
    meta = applied["metadata"]
    if meta.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    if meta.setdefault("name", call.name) != call.name:
        raise BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({call.name})")
    _match_namespace(call, served, meta)
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    force = call.query.flag("force")
    now = clock.now_rfc3339()
    if stored is None:
        if call.subresource:
            raise NotFound.of(kind.plural, call.name, kind.group)
        if meta.get("resourceVersion"):
            raise Conflict(
                f'Operation cannot be fulfilled on {kind.resource} "{call.name}": uid mismatch: the provided object '
                "specified a resourceVersion, and no existing object was found"
            )
        obj = apply(None, applied, by, force, served.schema(), kind.api_version, now)
        fields = obj["metadata"].get("managedFields") or []
        return encoding.one(call, served, await create_object(call, served, obj, fields), 201)
    old = served.from_stored(stored.obj) if served.from_stored else stored.obj
    new = apply(old, applied, by, force, served.schema(), kind.api_version, now, call.subresource)
    _keep_identity(call, served, new, old)
    if _same_but_times(new, old):
        return encoding.one(call, served, stored, 200)
    pending = update_object(call, served, new, old, by, applied=True)
    result = stored if pending is None else await pending if isinstance(pending, asyncio.Future) else pending
    return encoding.one(call, served, result, 200)




def manager(call: Call) -> str:
    """Who this change is put down to in managedFields: the name given, or the program's."""
    given = call.query.get("fieldManager")
    if len(given) > 128:
        raise invalid_error(PATCH_OPTIONS, "", [too_long("fieldManager", given, 128)])
    if given and not given.isprintable():
        raise invalid_error(PATCH_OPTIONS, "", [invalid("fieldManager", given, "should only contain printable characters")])
    return given or call.headers.get("user-agent", "").split("/")[0] or "unknown"


def _served(call: Call) -> ServedKind:
    assert call.served is not None
    return call.served


def _match_namespace(call: Call, served: ServedKind, meta: Object) -> None:
    if not served.kind.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", call.namespace) != call.namespace:
        if meta["namespace"]:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = call.namespace


def _generated_name(call: Call, served: ServedKind, prefix: str) -> str:
    """A name that is free. Eight tries, as Kubernetes; with 27^5 suffixes a second one is already rare."""
    name = ""
    for _ in range(8):
        name = prefix[:MAX_GENERATED_PREFIX] + "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(5))
        if call.server.store.latest(served.key, call.namespace, name) is None:
            break
    return name


# Set by the system; what a client sends for them in an update is not heard.
KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation")


def _keep_identity(call: Call, served: ServedKind, new: Object, old: Object) -> None:
    """Refuses a change built on another version of the object, and keeps what clients may not set."""
    meta, before = new["metadata"], old["metadata"]
    if meta.get("name") != before["name"]:
        raise BadRequest(
            f"the name of the object ({meta.get('name', '')}) does not match the name on the URL ({before['name']})"
        )
    shown = f'Operation cannot be fulfilled on {served.kind.resource} "{call.name}"'
    details = {"name": call.name, "kind": served.kind.plural}
    if served.kind.group:
        details["group"] = served.kind.group
    if meta.get("uid") and meta["uid"] != before["uid"]:
        raise Conflict(
            f"{shown}: Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}",
            details,
        )
    sent = meta.get("resourceVersion") or ""
    if not sent and call.method == "PUT" and not served.unconditional_update:
        raise invalid_error(
            served.kind, call.name, [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
        )
    if sent not in ("", "0", before["resourceVersion"]):
        raise Conflict(
            f"{shown}: the object has been modified; please apply your changes to the latest version and try again",
            details,
        )
    for field in KEPT:
        if field in before:
            meta[field] = before[field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = before["resourceVersion"]
    if served.kind.namespaced:
        meta["namespace"] = before["namespace"]
    # Only server-side apply sets these itself; an explicit empty list means: forget who owns what.
    if call.headers.get("content-type", "").split(";")[0].strip() != APPLY_PATCH and meta.get("managedFields") != []:
        if before.get("managedFields"):
            meta["managedFields"] = before["managedFields"]
        else:
            meta.pop("managedFields", None)


def _same_but_times(new: Object, old: Object) -> bool:
    """Whether an apply changes nothing but the time stamps of its own bookkeeping."""

    def bare(obj: Object) -> Object:
        meta = dict(obj["metadata"])
        meta["managedFields"] = [
            {name: value for name, value in entry.items() if name != "time"} for entry in meta.get("managedFields") or []
        ]
        return {**obj, "metadata": meta}

    return bare(new) == bare(old)
