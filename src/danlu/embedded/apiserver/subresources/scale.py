"""`scale`: the number of replicas of any kind that has one, in one shape (autoscaling/v1 Scale)."""

from __future__ import annotations

import asyncio

from danlu.embedded.apiserver import decoding, encoding, options, patching, writing
from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ScalePaths, ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, InternalError, MethodNotAllowed, NotFound
from danlu.meta import labels, objects
from danlu.meta.fields import invalid, invalid_error
from danlu.meta.kind import Kind, Object
from danlu.meta.patch import json_patch, merge_patch
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
        selector = str(labels.from_label_selector(selector))
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
    obj = encoding.object_of(served, stored)
    scale = scale_of(obj, served.scale)
    if served.custom and call.method != "PUT" and objects.get(obj, served.scale.spec_replicas) is None:
        path = f".{served.scale.spec_replicas}"
        raise InternalError(f'Internal error occurred: the spec replicas field "{path}" does not exist')
    if call.method in ("GET", "HEAD"):
        return Response.json(scale)
    if call.method not in ("PUT", "PATCH"):
        raise MethodNotAllowed()
    wanted = _wanted(call, served, scale)
    sent = (wanted.get("metadata") or {}).get("resourceVersion") or ""
    if sent:
        writing.check_version(served, call.name, sent, obj["metadata"]["resourceVersion"])
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and served.custom:
        text = "should be a non-negative integer"
        raise invalid_error(served.kind, call.name, [invalid(f".{served.scale.spec_replicas}", replicas, text)])
    if replicas < 0:
        raise invalid_error(
            SCALE, call.name, [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        )
    return Response.json(scale_of(await _set(call, served, obj, replicas), served.scale))


def _wanted(call: Call, served: ServedKind, scale: Object) -> Object:
    if call.method == "PUT":
        options.check(call, options.UPDATE)
        wanted = decode_body(call.headers.get("content-type", ""), call.body, call.warnings, kind=SCALE.kind)
    else:
        kind = patching.patch_type(call, native=not served.custom)
        patching.check_options(call, kind)
        body = patching.patch_body(call, kind)
        # A Scale has no lists: strategic and merge patches are the same.
        wanted = json_patch(scale, body) if kind == patching.JSON_PATCH else merge_patch(scale, body)
    if not isinstance(wanted, dict):
        raise BadRequest("a Scale is expected")
    return decoding.fit_to(call, native("io.k8s.api.autoscaling.v1.Scale"), SCALE, wanted)


async def _set(call: Call, served: ServedKind, obj: Object, replicas: int) -> Object:
    assert served.scale is not None
    new = objects.copy(obj)
    objects.put(new, served.scale.spec_replicas, replicas)
    pending = writing.update_object(call, served, new, obj, options.manager(call))
    if pending is None:
        return obj
    result = await pending if isinstance(pending, asyncio.Future) else pending
    return encoding.object_of(served, result) if isinstance(result, Stored) else result
