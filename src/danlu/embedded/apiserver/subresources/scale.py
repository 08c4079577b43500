"""`scale`: the number of replicas of any kind that has one, in one shape (autoscaling/v1 Scale)."""

from __future__ import annotations

from danlu.embedded.apiserver import answerencoder, bodydecoder, patchhandler, writehandler, writeoptions
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ScalePaths, ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, Conflict, InternalError, MethodNotAllowed, NotFound
from danlu.meta import clock, labels, objects
from danlu.meta.fields import invalid, invalid_error
from danlu.meta.kind import Kind, Object
from danlu.meta.patch import apply, json_patch, merge_patch
from danlu.meta.schema import native

SCALE = Kind("autoscaling", "v1", "Scale", "scales")


def scale_of(obj: Object, paths: ScalePaths) -> Object:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": objects.get(obj, paths.spec_replicas, 0)},
        "status": {"replicas": objects.get(obj, paths.status_replicas, 0)},
    }
    selector = objects.get(obj, paths.selector) if paths.selector else None
    if isinstance(selector, dict):
        selector = str(labels.from_map(selector) if paths.plain_selector else labels.from_label_selector(selector))
    if selector:
        scale["status"]["selector"] = selector
    return scale


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    assert served.scale is not None
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    obj = answerencoder.object_of(served, stored)
    scale = scale_of(obj, served.scale)
    if served.custom and call.method != "PUT" and objects.get(obj, served.scale.spec_replicas) is None:
        path = f".{served.scale.spec_replicas}"
        raise InternalError(f'Internal error occurred: the spec replicas field "{path}" does not exist')
    if call.method in ("GET", "HEAD"):
        return Response.json(scale)
    if call.method not in ("PUT", "PATCH"):
        raise MethodNotAllowed()
    wanted = _wanted(call, served, scale)
    writehandler.match_name(call, wanted["metadata"])
    sent = wanted["metadata"].get("resourceVersion") or ""
    if sent:
        writehandler.check_version(served, call.name, sent, obj["metadata"]["resourceVersion"])
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and served.custom:
        text = "should be a non-negative integer"
        raise invalid_error(served.kind, call.name, [invalid(f".{served.scale.spec_replicas}", replicas, text)])
    if replicas < 0:
        error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_error(SCALE, call.name, [error])
    new = _scaled(call, served, obj, replicas)
    applied = _patch_type(call, served) == patchhandler.APPLY_PATCH
    try:
        pending = await writehandler.update_object(call, served, new, obj, writeoptions.manager(call), applied)
    except writehandler.StaleRead:
        raise Conflict.of_version(served.kind.plural, call.name, served.kind.group) from None
    result = await writehandler.finish(pending, stored)
    return Response.json(
        scale_of(answerencoder.object_of(served, result) if isinstance(result, Stored) else result, served.scale)
    )


def _patch_type(call: Call, served: ServedKind) -> str:
    return patchhandler.patch_type(call, native=not served.custom) if call.method == "PATCH" else ""


def _wanted(call: Call, served: ServedKind, scale: Object) -> Object:
    schema = native("io.k8s.api.autoscaling.v1.Scale")
    kind = _patch_type(call, served)
    if not kind:
        writeoptions.check(call, writeoptions.UPDATE)
        return bodydecoder.read_as(call, schema, SCALE)
    patchhandler.check_options(call, kind)
    if kind == patchhandler.APPLY_PATCH:
        wanted = merge_patch(scale, bodydecoder.read_applied(call))
    else:
        body = patchhandler.patch_body(call, kind)
        # A Scale has no lists: strategic and merge patches are the same.
        wanted = json_patch(scale, body) if kind == patchhandler.JSON_PATCH else merge_patch(scale, body)
    if not isinstance(wanted, dict):
        raise BadRequest("a Scale is expected")
    return bodydecoder.fit_patched(call, schema, SCALE, wanted)


def _scaled(call: Call, served: ServedKind, obj: Object, replicas: int) -> Object:
    """The object with another number of replicas; where that is applied, with its new owner, or a conflict."""
    assert served.scale is not None
    if _patch_type(call, served) != patchhandler.APPLY_PATCH:
        new: Object = objects.copy(obj)
        objects.put(new, served.scale.spec_replicas, replicas)
        return new
    kind = served.kind
    applied: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": call.name}}
    objects.put(applied, served.scale.spec_replicas, replicas)
    by, force = writeoptions.manager(call), call.query.flag("force")
    schema, now = served.schema(), clock.now_rfc3339()
    return apply(obj, applied, by, force, schema, kind.api_version, now, call.subresource)
