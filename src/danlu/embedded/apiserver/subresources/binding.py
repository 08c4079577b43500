"""`pods/NAME/binding`, or `bindings`: on which node a pod goes; said once. Nobody owns it in managedFields."""

from __future__ import annotations

from danlu.embedded.apiserver import bodydecoder, writeoptions
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from danlu.meta import clock, conditions
from danlu.meta.fields import invalid_error, not_supported, required
from danlu.meta.kind import Kind, Object
from danlu.meta.schema import native
from danlu.meta.wellknown import POD

BINDING = Kind("", "v1", "Binding", "bindings")


async def handle(call: Call) -> Response:
    if call.method != "POST":
        raise MethodNotAllowed()
    writeoptions.check(call, writeoptions.CREATE)
    binding = bodydecoder.read_as(call, native("io.k8s.api.core.v1.Binding"), BINDING)
    if ((binding.get("metadata") or {}).get("name") or call.name) != call.name:
        raise BadRequest("name in URL does not match name in Binding object")
    return Response.json(await bind(call, call.name, binding), 201)


async def bind(call: Call, name: str, binding: Object) -> Object:
    """Puts the pod on the node; the answer's Status."""
    target = binding.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node"):
        raise invalid_error(BINDING, name, [not_supported("target.kind", target["kind"], ["Node", "<empty>"])])
    if not target.get("name"):
        raise invalid_error(BINDING, name, [required("target.name")])
    stored = call.server.store.latest(POD.resource, call.namespace, name)
    if stored is None:
        raise NotFound.of(POD.plural, name)
    refused = _refusal(stored.obj, binding, target["name"])
    if refused:
        raise Conflict.of("pods/binding", name, "", refused)
    new = stored.obj
    new["spec"]["nodeName"] = target["name"]
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        new["metadata"].setdefault("annotations", {}).update(annotations)
    status = new.setdefault("status", {})
    conditions.set(status.setdefault("conditions", []), "PodScheduled", "True", "", "", clock.now_rfc3339())
    if not call.dry_run:
        await call.server.store.put(POD.resource, new)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


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
