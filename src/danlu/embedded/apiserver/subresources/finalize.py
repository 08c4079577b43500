"""`namespaces/NAME/finalize`: who has emptied the namespace takes its name off `spec.finalizers`."""

from __future__ import annotations

from danlu.embedded.apiserver import answerencoder, bodydecoder, writehandler, writeoptions
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import MethodNotAllowed, NotFound
from danlu.meta.wellknown import NAMESPACE


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "PUT":
        raise MethodNotAllowed()
    writeoptions.check(call, writeoptions.UPDATE)
    sent = bodydecoder.read_object(call, served)
    writehandler.match_name(call, sent["metadata"])
    stored = call.server.store.latest(served.key, "", call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    obj = stored.obj
    version = sent["metadata"].get("resourceVersion") or ""
    writehandler.check_version(served, call.name, version, obj["metadata"]["resourceVersion"])
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": (sent.get("spec") or {}).get("finalizers") or []}
    if not obj["spec"]["finalizers"]:
        del obj["spec"]["finalizers"]
    meta = obj["metadata"]
    if meta.get("deletionTimestamp") and not obj["spec"].get("finalizers") and not meta.get("finalizers"):
        return answerencoder.one(call, served, await call.server.store.delete(served.key, obj))
    return answerencoder.one(call, served, await call.server.store.put(served.key, obj))


FINALIZE = Subresource(("update",), NAMESPACE, handle)
