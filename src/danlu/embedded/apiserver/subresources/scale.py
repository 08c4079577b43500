"""`scale`: the number of replicas of any kind that has one, in one shape (autoscaling/v1 Scale)."""

from __future__ import annotations

import asyncio

from danlu.embedded.apiserver import decoding, encoding, writing
from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ScalePaths, ServedKind
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
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
    if call.method in ("GET", "HEAD"):
        return Response.json(scale)
    if call.method not in ("PUT", "PATCH"):
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    wanted = _wanted(call, scale)
    sent = wanted.get("metadata", {}).get("resourceVersion")
    if sent and sent != stored.obj["metadata"]["resourceVersion"]:
        raise Conflict(
            f'Operation cannot be fulfilled on {served.kind.resource} "{call.name}": the object has been modified; '
            "please apply your changes to the latest version and try again",
            {"name": call.name, "kind": served.kind.plural},
        )
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        raise invalid_error(
            SCALE, call.name, [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        )
    return Response.json(scale_of(await _set(call, served, obj, replicas), served.scale))


def _wanted(call: Call, scale: Object) -> Object:
    kind = call.headers.get("content-type", "").split(";")[0].strip()
    body = decode_body("application/json", call.body, call.warnings, decoding.field_validation(call), patch=True)
    if call.method == "PUT":
        wanted = body
    elif kind == writing.JSON_PATCH:
        wanted = json_patch(scale, body)
    else:
        wanted = merge_patch(scale, body)  # a Scale has no lists: strategic and merge patches are the same
    if not isinstance(wanted, dict):
        raise BadRequest("a Scale is expected")
    problem = native("io.k8s.api.autoscaling.v1.Scale").decode(wanted).problem
    if problem is not None:
        raise BadRequest(f'Scale in version "v1" cannot be handled as a Scale: {problem.message}')
    return wanted


async def _set(call: Call, served: ServedKind, obj: Object, replicas: int) -> Object:
    assert served.scale is not None
    new = objects.copy(obj)
    objects.put(new, served.scale.spec_replicas, replicas)
    pending = writing.update_object(call, served, new, obj, writing.manager(call))
    if pending is None:
        return obj
    result: Stored | Object = await pending if isinstance(pending, asyncio.Future) else pending
    return encoding.object_of(served, result) if isinstance(result, Stored) else result
