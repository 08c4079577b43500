"""`pods/NAME/eviction`: a delete that asks first. Danlu serves no PodDisruptionBudgets, so the answer is yes."""

from __future__ import annotations

from danlu.embedded.apiserver import deleting, options
from danlu.embedded.apiserver.negotiation import decode_body
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, MethodNotAllowed, NotFound
from danlu.meta.kind import Kind


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "POST":
        raise MethodNotAllowed()
    options.check(call, options.CREATE)
    eviction = decode_body(call.headers.get("content-type", ""), call.body, call.warnings, kind="Eviction")
    name = (eviction.get("metadata") or {}).get("name") or call.name
    if name != call.name:
        raise BadRequest(f"name in URL does not match name in Eviction object: {call.name} != {name}")
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    asked = deleting.Options.of(eviction.get("deleteOptions") or {})
    asked.dry_run = asked.dry_run or call.dry_run
    await deleting.remove(call, served, stored, asked)
    return Response.json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


EVICTION = Subresource(("create",), Kind("policy", "v1", "Eviction", "evictions"), handle)
