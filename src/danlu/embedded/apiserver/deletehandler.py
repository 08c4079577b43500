"""delete and deletecollection.

A delete ends in one of three ways: the object is gone; it waits for its grace period (pods: the node removes it); or
it waits for finalizers (the owner of each removes its own, and the update that removes the last one removes the
object, see `writing.update_object`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from danlu.embedded.apiserver import answerencoder, writeoptions
from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.listselectors import matcher
from danlu.embedded.apiserver.negotiation import OPTIONS, DuplicateKeys, decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, Conflict, NotFound, details_of
from danlu.meta import clock
from danlu.meta.fields import FieldError, invalid, invalid_error, not_supported, quoted
from danlu.meta.kind import Object
from danlu.meta.schema import native

POLICIES = ("Foreground", "Background", "Orphan")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
SUBMITTED_TOGETHER = 200  # objects of a collection in one commit, some milliseconds; then others have their turn


@dataclass(slots=True)
class Options:
    grace: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None  # the deprecated spelling of propagation
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    raw: dict[str, Any] | None = None

    @classmethod
    def of(cls, sent: Object) -> Options:
        """From DeleteOptions as sent. Raises BadRequest or Invalid."""
        problem = native("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").decode(sent).problem
        if problem is not None:
            raise BadRequest(problem.message)
        before = sent.get("preconditions") or {}
        grace = sent.get("gracePeriodSeconds")
        made = cls(
            # Kubernetes reads a negative grace period as "now, but not by force".
            grace=1 if grace is not None and grace < 0 else grace,
            propagation=sent.get("propagationPolicy") or "",
            orphan_dependents=sent.get("orphanDependents"),
            uid=before.get("uid") or "",
            resource_version=before.get("resourceVersion") or "",
            dry_run=bool(sent.get("dryRun")),
            raw=sent,
        )
        errors = _errors(made) + writeoptions.dry_run_errors(sent.get("dryRun") or ())
        if errors:
            raise invalid_error(writeoptions.DELETE, "", errors)
        return made

    @property
    def policy(self) -> str:
        """What is to become of dependents; empty where nothing was said."""
        if self.propagation or self.orphan_dependents is None:
            return self.propagation
        return "Orphan" if self.orphan_dependents else "Background"


def _errors(options: Options) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.propagation and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", options.propagation, text))
    if options.propagation and options.propagation not in POLICIES:
        errors.append(not_supported("propagationPolicy", options.propagation, [*POLICIES, "nil"]))
    return errors


def options_of(call: Call) -> Options:
    """From the body, or where there is none, from the query; never from both."""
    query = call.query
    if call.body.strip():
        media = call.headers.get("content-type", "")
        sent = decode_body(media, call.body, DuplicateKeys([], "Ignore"), kind=OPTIONS)
        kind = sent.get("kind") or OPTIONS
        if kind != OPTIONS:
            version = quoted(str(sent.get("apiVersion", "")))
            raise BadRequest(
                f'no kind {quoted(str(kind))} is registered for version {version} in scheme "pkg/runtime/scheme.go:111"'
            )
        return Options.of(sent)
    if not query:
        return Options(raw={})
    given: Object = {"gracePeriodSeconds": query.integer("gracePeriodSeconds"), "dryRun": query.getall("dryRun")}
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query.get("propagationPolicy")
    if "orphanDependents" in query:
        given["orphanDependents"] = query.flag("orphanDependents")
    return Options.of(given)


async def delete(call: Call) -> Response:
    served = call.served
    assert served is not None
    answerencoder.wanted(call)
    options = options_of(call)
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    _warn(call, served, options)
    gone, result = await remove(call, served, stored, options)
    if not gone or served.returns_deleted:
        return answerencoder.one(call, served, result)
    details = details_of(served.kind.plural, call.name, served.kind.group, uid=stored.uid)
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Response.json(status)


def _warn(call: Call, served: ServedKind, options: Options) -> None:
    if served.orphan_warning and not options.policy:
        call.warnings.append(served.orphan_warning)


async def delete_collection(call: Call) -> Response:
    served = call.served
    assert served is not None
    answerencoder.wanted(call)
    options = options_of(call)
    matches = matcher(call, served)
    _warn(call, served, options)
    store = call.server.store
    found = [stored for stored in store.scan(served.key, call.namespace or None) if matches is None or matches(stored)]
    removed: list[Stored] = []
    written: list[asyncio.Future[Stored]] = []
    try:
        for stored in found:
            newest = store.latest(served.key, stored.namespace, stored.name)
            if newest is None:
                continue
            _, pending = await _submit_removal(call, served, newest, options)
            removed.append(newest)
            if isinstance(pending, asyncio.Future):
                written.append(pending)
            if len(removed) % SUBMITTED_TOGETHER == 0:
                await asyncio.sleep(0)
    finally:
        # The disk is waited for once for all of them; also where one was refused: those before it go all the same.
        outcomes = await asyncio.gather(*written, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return answerencoder.many(call, served, removed, store.revision)


async def remove(call: Call, served: ServedKind, stored: Stored, options: Options) -> tuple[bool, Stored | Object]:
    """(whether the object is gone now, its last state)."""
    gone, pending = await _submit_removal(call, served, stored, options)
    return gone, await pending if isinstance(pending, asyncio.Future) else pending


async def _submit_removal(
    call: Call, served: ServedKind, stored: Stored, options: Options
) -> tuple[bool, asyncio.Future[Stored] | Object]:
    """(whether the object is gone then, its last state). It awaits webhooks, where there are any, and not the disk."""
    store = call.server.store
    obj = answerencoder.object_of(served, stored)
    where = (served, stored.namespace, stored.name, "")
    attributes = Attributes("DELETE", *where, None, obj, call.user, options.dry_run, call.warnings, options.raw or {})
    if call.server.webhooks.concerns(attributes):
        await call.server.webhooks.mutate(attributes)
        await call.server.webhooks.validate(attributes)
        newest = store.latest(served.key, stored.namespace, stored.name)
        if newest is None:
            raise NotFound.of(served.kind.plural, stored.name, served.kind.group)
        stored, obj = newest, answerencoder.object_of(served, newest)
        attributes.old = obj
    call.server.admission.validate(attributes)
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
        return True, store.delete(served.key, served.to_stored(obj) if served.to_stored else obj)
    before = stored.obj
    if already and (not grace or grace >= (meta.get("deletionGracePeriodSeconds") or 0)):
        grace = meta.get("deletionGracePeriodSeconds") or 0  # a second delete may shorten the wait, never lengthen it
        if options.grace == 0:
            grace = 0
    else:
        meta["deletionTimestamp"] = clock.rfc3339(time.time() + (grace or 0))
        if "generation" in meta and not already:
            meta["generation"] += 1
    meta["deletionGracePeriodSeconds"] = grace or 0
    served.mark_deleting(obj)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if options.dry_run or obj == before:
        return False, obj
    return False, store.put(served.key, served.to_stored(obj) if served.to_stored else obj)


def _check_preconditions(served: ServedKind, obj: Object, options: Options) -> None:
    meta, kind = obj["metadata"], served.kind
    why = ""
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
    elif options.resource_version and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified"
        )
    if why:
        raise Conflict.of(kind.kind, meta["name"], kind.group, why)  # the kind, not the resource: as Kubernetes has it


def _finalizers(present: list[str], served: ServedKind, options: Options) -> list[str]:
    """The garbage collector's two finalizers are put on or taken off as the propagation policy says."""
    policy = options.policy
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
