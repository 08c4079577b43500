"""delete and deletecollection.

A delete ends in one of three ways: the object is gone; it waits for its grace period (pods: the node removes it); or
it waits for finalizers (the owner of each removes its own, and the update that removes the last one removes the
object, see `writing.update_object`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from danlu.embedded.apiserver import encoding
from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.selecting import matcher
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, Conflict, NotFound
from danlu.meta import clock
from danlu.meta.fields import FieldError, invalid, invalid_error, not_supported
from danlu.meta.kind import Kind, Object

DELETE_OPTIONS = Kind("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions")
POLICIES = ("Background", "Foreground", "Orphan")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(slots=True)
class Options:
    grace: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None  # the deprecated spelling of propagation
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    raw: dict[str, Any] | None = None


def options_of(call: Call) -> Options:
    body: dict[str, Any] = {}
    if call.body.strip():
        body = decode_body(call.headers.get("content-type", "application/json"), call.body, [], "Ignore")
        if body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise BadRequest(f"expected a DeleteOptions in the body of a delete, got {body['kind']}")
    before = body.get("preconditions") or {}
    if not isinstance(before, dict):
        raise BadRequest("json: cannot unmarshal into Go struct field DeleteOptions.preconditions of type v1.Preconditions")
    grace = body.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise BadRequest("json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
    options = Options(
        grace=grace if grace is not None else call.query.integer("gracePeriodSeconds"),
        propagation=body.get("propagationPolicy") or call.query.get("propagationPolicy"),
        orphan_dependents=body.get("orphanDependents"),
        uid=before.get("uid") or "",
        resource_version=before.get("resourceVersion") or "",
        dry_run=call.dry_run or "All" in (body.get("dryRun") or []),
        raw=body,
    )
    if options.orphan_dependents is None and "orphanDependents" in call.query:
        options.orphan_dependents = call.query.flag("orphanDependents")
    _check(options)
    return options


def _check(options: Options) -> None:
    errors: list[FieldError] = []
    if options.propagation and options.orphan_dependents is not None:
        errors.append(invalid("propagationPolicy", options.propagation, "orphanDependents and deletionPropagation cannot be both set"))
    if options.propagation and options.propagation not in POLICIES:
        errors.append(not_supported("propagationPolicy", options.propagation, [*POLICIES, "nil"]))
    if options.grace is not None and options.grace < 0:
        # Kubernetes reads a negative grace period as "now, but not by force".
        options.grace = 1
    if errors:
        raise invalid_error(DELETE_OPTIONS, "", errors)


async def delete(call: Call) -> Response:
    served = call.served
    assert served is not None
    options = options_of(call)
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    gone, result = await remove(call, served, stored, options)
    if not gone:
        return encoding.one(call, served, result)
    details = {"name": call.name, "kind": served.kind.plural, "uid": stored.uid}
    if served.kind.group:
        details["group"] = served.kind.group
    if served.kind.plural == "pods" and not served.kind.group:
        return encoding.one(call, served, result)  # Kubernetes answers a pod's delete with the pod itself
    return Response.json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


async def delete_collection(call: Call) -> Response:
    served = call.served
    assert served is not None
    options = options_of(call)
    matches = matcher(call, served)
    store = call.server.store
    found = [stored for stored in store.scan(served.key, call.namespace or None) if matches is None or matches(stored)]
    removed: list[Stored] = []
    for stored in found:
        newest = store.latest(served.key, stored.namespace, stored.name)
        if newest is None:
            continue
        await remove(call, served, newest, options)
        removed.append(newest)
    return encoding.many(call, served, removed, store.revision)


async def remove(call: Call, served: ServedKind, stored: Stored, options: Options) -> tuple[bool, Stored | Object]:
    """(whether the object is gone now, its last state)."""
    store = call.server.store
    obj = encoding.object_of(served, stored)
    call.server.admission.validate(
        Attributes(
            "DELETE", served, stored.namespace, stored.name, "", None, obj, call.user, options.dry_run, call.warnings,
            options.raw or {},
        )
    )
    _check_preconditions(served, obj, options)
    meta = obj["metadata"]
    grace = served.grace(obj, options.grace)
    finalizers = _finalizers(meta.get("finalizers") or [], served, options)
    already = meta.get("deletionTimestamp")
    if not grace and not finalizers and not served.held(obj):
        if already:
            meta["deletionGracePeriodSeconds"] = 0
        if options.dry_run:
            return True, obj
        meta.pop("finalizers", None)
        return True, await store.delete(served.key, served.to_stored(obj) if served.to_stored else obj)
    before = stored.obj
    if already and (not grace or grace >= (meta.get("deletionGracePeriodSeconds") or 0)):
        grace = meta.get("deletionGracePeriodSeconds") or 0  # a second delete may shorten the wait, never lengthen it
        if options.grace == 0:
            grace = 0
    else:
        meta["deletionTimestamp"] = clock.rfc3339(time.time() + (grace or 0))
        if "generation" in meta:
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace or 0
    served.mark_deleting(obj)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if options.dry_run or obj == before:
        return False, obj
    return False, await store.put(served.key, served.to_stored(obj) if served.to_stored else obj)


def _check_preconditions(served: ServedKind, obj: Object, options: Options) -> None:
    meta = obj["metadata"]
    shown = f'Operation cannot be fulfilled on {served.kind.resource} "{meta["name"]}"'
    details = {"name": meta["name"], "kind": served.kind.plural}
    if served.kind.group:
        details["group"] = served.kind.group
    if options.uid and options.uid != meta["uid"]:
        raise Conflict(
            f"{shown}: Precondition failed: UID in precondition: {options.uid}, UID in object meta: {meta['uid']}", details
        )
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        raise Conflict(
            f"{shown}: Precondition failed: ResourceVersion in precondition: {options.resource_version}, ResourceVersion "
            f"in object meta: {meta['resourceVersion']}",
            details,
        )


def _finalizers(present: list[str], served: ServedKind, options: Options) -> list[str]:
    """The garbage collector's two finalizers are put on or taken off as the propagation policy says."""
    policy = options.propagation
    if not policy and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if not policy:
        if FOREGROUND in present or ORPHAN in present:
            return present
        policy = served.default_propagation
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        kept.append(FOREGROUND)
    elif policy == "Orphan":
        kept.append(ORPHAN)
    return kept
