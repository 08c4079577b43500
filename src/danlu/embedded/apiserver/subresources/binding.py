"""`pods/NAME/binding`: the scheduler's word on which node a pod goes to; said once. Nobody owns it in managedFields."""

from __future__ import annotations

from danlu.embedded.apiserver import decoding, encoding, options
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from danlu.meta import clock, conditions
from danlu.meta.fields import invalid_error, not_supported, required
from danlu.meta.kind import Kind
from danlu.meta.schema import native

BINDING = Kind("", "v1", "Binding", "bindings")


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "POST":
        raise MethodNotAllowed()
    options.check(call, options.CREATE)
    binding = decoding.read_as(call, native("io.k8s.api.core.v1.Binding"), BINDING)
    if ((binding.get("metadata") or {}).get("name") or call.name) != call.name:
        raise BadRequest("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node"):
        raise invalid_error(BINDING, call.name, [not_supported("target.kind", target["kind"], ["Node", "<empty>"])])
    if not target.get("name"):
        raise invalid_error(BINDING, call.name, [required("target.name")])
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    old = stored.obj
    refused = _refusal(old, binding, target["name"])
    if refused:
        raise Conflict.of("pods/binding", call.name, "", refused)
    new = encoding.object_of(served, stored)
    new["spec"]["nodeName"] = target["name"]
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        new["metadata"].setdefault("annotations", {}).update(annotations)
    status = new.setdefault("status", {})
    conditions.set(status.setdefault("conditions", []), "PodScheduled", "True", "", "", clock.now_rfc3339())
    if not call.dry_run:
        await call.server.store.put(served.key, new)
    return Response.json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _refusal(pod: dict[str, object], binding: dict[str, object], node: str) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    assert isinstance(meta, dict)
    assert isinstance(spec, dict)
    sent = binding.get("metadata")
    uid = sent.get("uid") if isinstance(sent, dict) else None
    if uid and uid != meta["uid"]:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
    if meta.get("deletionTimestamp"):
        return f"pod {meta['name']} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {meta["name"]} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {meta['name']} has non-empty .spec.schedulingGates"
    return ""


BINDING_OF_POD = Subresource(("create",), BINDING, handle)
