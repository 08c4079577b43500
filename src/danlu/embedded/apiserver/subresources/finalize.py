"""`namespaces/NAME/finalize`: who has emptied the namespace takes its name off `spec.finalizers`."""

from __future__ import annotations

from danlu.embedded.apiserver import decoding, encoding
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from danlu.meta.wellknown import NAMESPACE


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "PUT":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    sent = decoding.read_object(call, served)
    if sent["metadata"].get("name", call.name) != call.name:
        raise BadRequest(f"the name of the object ({sent['metadata']['name']}) does not match the name on the URL ({call.name})")
    stored = call.server.store.latest(served.key, "", call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    obj = stored.obj
    version = sent["metadata"].get("resourceVersion")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise Conflict(
            f'Operation cannot be fulfilled on namespaces "{call.name}": the object has been modified; please apply your '
            "changes to the latest version and try again",
            {"name": call.name, "kind": "namespaces"},
        )
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": (sent.get("spec") or {}).get("finalizers") or []}
    if not obj["spec"]["finalizers"]:
        del obj["spec"]["finalizers"]
    meta = obj["metadata"]
    if meta.get("deletionTimestamp") and not obj["spec"].get("finalizers") and not meta.get("finalizers"):
        return encoding.one(call, served, await call.server.store.delete(served.key, obj))
    return encoding.one(call, served, await call.server.store.put(served.key, obj))


FINALIZE = Subresource(("update",), NAMESPACE, handle)
