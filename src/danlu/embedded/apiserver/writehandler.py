"""create and update: from a decoded object to a durable one. Patches end here, too (see `patchhandler.py`).

Between reading the old object (`store.latest`) and `store.put` nothing awaits, so no other write can come between and
no lock is needed. What is awaited is only the disk; and webhooks, where there are any: then the object is looked at
again before it is written (`StaleRead`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

import orjson

from danlu.embedded.apiserver import answerencoder, bodydecoder, writeoptions
from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.negotiation import MEDIA_TYPES
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import AlreadyExists, BadRequest, Conflict, NotAcceptable, NotFound
from danlu.meta import clock
from danlu.meta.fields import FieldError, invalid, invalid_error, quoted
from danlu.meta.kind import Kind, Object
from danlu.meta.metadata import validate_metadata, validate_metadata_update
from danlu.meta.patch import track_update
from danlu.meta.uids import new_uid

# Random suffixes leave out vowels and look-alikes, as Kubernetes' do.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
MAX_GENERATED_PREFIX = 58

Make = Callable[[Object], Object]  # old -> new; the old one is its own to use up


def begin(call: Call, kind: Kind) -> ServedKind:
    """What must be refused before anything is done: an answer that we cannot give, options that we do not know."""
    assert call.served is not None
    answerencoder.wanted(call)
    writeoptions.check(call, kind)
    return call.served


async def create(call: Call) -> Response:
    served = begin(call, writeoptions.CREATE)
    obj = bodydecoder.read_object(call, served)
    if served.answer is not None:
        if answerencoder.wanted(call).kind != "json":  # it has no metadata of its own that a row could be made of
            raise NotAcceptable(f"only the following media types are accepted: {', '.join(MEDIA_TYPES)}")
        answer = served.answer(call, obj)
        return answerencoder.one(call, served, answer if isinstance(answer, dict) else await answer, 201)
    return answerencoder.one(call, served, await create_object(call, served, obj), 201)


async def create_object(
    call: Call, served: ServedKind, obj: Object, applied_fields: list[Object] | None = None
) -> Stored | Object:
    """A new object from here on: names, defaults, admission, validation, storage.

    `applied_fields`: what server-side apply says its manager owns, instead of the whole object.
    """
    if call.verb != "create":  # PUT and apply make what is not there: that is another right than to change what is
        call.server.require(call, "create", call.namespace)
    store = call.server.store
    meta = obj["metadata"]
    match_namespace(call, served, meta)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = _generated_name(call, served, meta["generateName"])
    for field in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        meta.pop(field, None)
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = now = clock.now_rfc3339()
    if served.has_status and served.custom:
        obj.pop("status", None)
    _one_of_each_owner(call, meta)
    served.default(obj)
    # Before the kind and admission add what they add: the client owns only what it sent and what is the default.
    if applied_fields is None:
        track_update(obj, None, writeoptions.manager(call), served.kind.api_version, served.schema(), now)
    else:
        meta["managedFields"] = applied_fields
    served.prepare_create(obj)
    where = (served, call.namespace, meta.get("name", ""), "")
    attributes = Attributes("CREATE", *where, obj, None, call.user, call.dry_run, call.warnings, {})
    call.server.admission.mutate(attributes)
    hooks = call.server.webhooks if call.server.webhooks.concerns(attributes) else None
    if hooks is not None:
        await hooks.mutate(attributes)
    native = not served.free_finalizers
    errors = validate_metadata(meta, served.kind.namespaced, served.name_errors, native=native) + served.validate(obj)
    if errors:
        raise invalid_error(_shown_kind(served), meta.get("name", ""), errors)
    call.warnings.extend(served.warnings(obj))
    if hooks is not None:
        await hooks.validate(attributes)
    call.server.admission.validate(attributes)
    _require_new(call, served, meta)
    if call.dry_run:
        return obj
    return await store.put(served.key, served.to_stored(obj) if served.to_stored else obj)


def _require_new(call: Call, served: ServedKind, meta: Object) -> None:
    there = call.server.store.latest(served.key, meta.get("namespace") or "", meta["name"])
    if there is not None:
        deleting = "deletionTimestamp" in there.obj["metadata"]
        raise AlreadyExists.of(served.kind.plural, meta["name"], served.kind.group, deleting=deleting)
    if meta.get("resourceVersion") and not call.dry_run:
        raise BadRequest("resourceVersion should not be set on objects to be created")


async def update(call: Call) -> Response:
    served = begin(call, writeoptions.UPDATE)
    obj = bodydecoder.read_object(call, served)
    match_name(call, obj["metadata"])
    match_namespace(call, served, obj["metadata"])
    missing = call.server.store.latest(served.key, call.namespace, call.name) is None
    if missing and served.create_on_update and not call.subresource:
        obj["metadata"].pop("resourceVersion", None)
        return answerencoder.one(call, served, await create_object(call, served, obj), 201)
    return answerencoder.one(call, served, await change(call, served, lambda _old: obj), 200)


async def change(call: Call, served: ServedKind, make: Make) -> Stored | Object:
    """Replaces one object by `make(old)`, with all rules of an update."""
    while True:
        try:
            return await _changed_once(call, served, make)
        except StaleRead:
            continue


async def _changed_once(call: Call, served: ServedKind, make: Make) -> Stored | Object:
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    old = answerencoder.object_of(served, stored)
    new = make(answerencoder.object_of(served, stored))
    keep_identity(call, served, new, old)
    return await finish(await update_object(call, served, new, old, writeoptions.manager(call)), stored)


async def finish(pending: asyncio.Future[Stored] | Object | None, stored: Stored) -> Stored | Object:
    """Waits for the disk. `stored` is the answer where nothing was to be written."""
    if pending is None:
        return stored
    return await pending if isinstance(pending, asyncio.Future) else pending


class StaleRead(Exception):
    """While webhooks were asked, somebody else changed the object."""


async def update_object(
    call: Call, served: ServedKind, new: Object, old: Object, by: str, applied: bool = False
) -> asyncio.Future[Stored] | Object | None:
    """The heart of every change. None: nothing would change, so nothing is written.

    It awaits only webhooks. Where there are none to ask, it runs through like a plain function; else it raises
    StaleRead if the object has changed meanwhile.
    """
    store = call.server.store
    prepare, validate = _rules(served, call.subresource)
    schema = served.schema()
    _one_of_each_owner(call, new["metadata"])
    served.default(new)
    prepare(new, old)
    if not applied:
        track_update(new, old, by, served.kind.api_version, schema, clock.now_rfc3339(), call.subresource)
    where = (served, call.namespace, call.name, call.subresource)
    attributes = Attributes("UPDATE", *where, new, old, call.user, call.dry_run, call.warnings, {})
    call.server.admission.mutate(attributes)
    hooks = call.server.webhooks if call.server.webhooks.concerns(attributes) else None
    if hooks is not None:
        await hooks.mutate(attributes)
    errors = validate_metadata_update(new["metadata"], old["metadata"], native=not served.free_finalizers)
    errors += validate(new, old)
    if errors:
        raise invalid_error(_shown_kind(served), call.name, errors)
    call.warnings.extend([] if call.subresource else served.warnings(new))
    if hooks is not None:
        await hooks.validate(attributes)
        newest = store.latest(served.key, call.namespace, call.name)
        if newest is None or str(newest.revision) != old["metadata"]["resourceVersion"]:
            raise StaleRead
    call.server.admission.validate(attributes)
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


def _rules(
    served: ServedKind, subresource: str
) -> tuple[Callable[[Object, Object], None], Callable[[Object, Object], list[FieldError]]]:
    """How a change through this subresource is prepared and checked; scale changes the object itself."""
    if subresource == "status":
        return served.prepare_status, served.validate_status
    part = served.parts.get(subresource)
    return (part.prepare, part.validate) if part is not None else (served.prepare_update, served.validate_update)


def _shown_kind(served: ServedKind) -> Kind:
    """Errors name the group in which an object is stored (events.k8s.io: the core's)."""
    kind = served.kind
    if not served.stored_as:
        return kind
    return Kind(served.stored_as.partition(".")[2], kind.version, kind.kind, kind.plural)


def _one_of_each_owner(call: Call, meta: Object) -> None:
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[bytes, Object] = {}
    twice: dict[str, None] = {}  # in the order in which they were found
    for owner in owners:
        same = orjson.dumps(owner, option=orjson.OPT_SORT_KEYS)
        if same not in kept:
            kept[same] = owner
        else:
            twice[owner.get("uid", "")] = None
    if twice:
        meta["ownerReferences"] = [*kept.values()]
        call.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(twice)
        )


# -- what names an object, and what clients may not change


def match_name(call: Call, meta: Object) -> None:
    name = meta.get("name")
    if not name:
        raise BadRequest(f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided")
    if name != call.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def match_namespace(call: Call, served: ServedKind, meta: Object, *, fill_in: bool = True) -> None:
    if not served.kind.namespaced:
        meta.pop("namespace", None)
    elif not meta.get("namespace"):
        if fill_in:
            meta["namespace"] = call.namespace
    elif meta["namespace"] != call.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _generated_name(call: Call, served: ServedKind, prefix: str) -> str:
    """A name that is free. Eight tries, as Kubernetes; with 27^5 suffixes a second one is already rare."""
    name = ""
    for _ in range(8):
        name = prefix[:MAX_GENERATED_PREFIX] + "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(5))
        if call.server.store.latest(served.key, call.namespace, name) is None:
            break
    return name


def keep_identity(call: Call, served: ServedKind, new: Object, old: Object) -> None:
    """Refuses a change built on another version of the object, and keeps what clients may not set.

    What a client may not *change* (its uid, when it was deleted) is left for validation to refuse.
    """
    meta, before = new["metadata"], old["metadata"]
    kind = served.kind
    if call.method == "PUT" and meta.get("uid") and meta["uid"] != before["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}"
        raise Conflict.of(kind.plural, call.name, kind.group, why)
    check_version(served, call.name, meta.get("resourceVersion") or "", before["resourceVersion"])
    meta["resourceVersion"] = before["resourceVersion"]
    meta["creationTimestamp"] = before.get("creationTimestamp")
    meta.pop("selfLink", None)
    if "generation" in before:
        meta["generation"] = before["generation"]
    else:
        meta.pop("generation", None)
    if not meta.get("uid"):
        meta["uid"] = before["uid"]
    if "deletionTimestamp" in before:
        meta["deletionTimestamp"] = before["deletionTimestamp"]
        meta.setdefault("deletionGracePeriodSeconds", before.get("deletionGracePeriodSeconds"))


def check_version(served: ServedKind, name: str, sent: str, newest: str) -> None:
    """A change names the version it was built on; without one it may go over anything, where the kind allows that."""
    kind = served.kind
    if sent in ("", "0"):
        if not served.unconditional_update:
            resource = Kind(kind.group, kind.version, kind.plural, kind.plural)  # Kubernetes names the resource here
            error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid_error(resource, name, [error])
    elif sent != newest:
        if not (sent.isascii() and sent.isdecimal()):
            raise BadRequest(f"strconv.ParseUint: parsing {quoted(sent)}: invalid syntax")
        raise Conflict.of_version(kind.plural, name, kind.group)
