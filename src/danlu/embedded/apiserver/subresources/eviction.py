"""`pods/NAME/eviction`: a delete that asks first. Danlu serves no PodDisruptionBudgets, so the answer is yes."""

from __future__ import annotations

from danlu.embedded.apiserver import decoding, deleting, options
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, MethodNotAllowed, NotFound
from danlu.meta.kind import Kind
from danlu.meta.schema import native

KIND = Kind("policy", "v1", "Eviction", "evictions")


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "POST":
        raise MethodNotAllowed()
    options.check(call, options.CREATE)
    eviction = decoding.read_as(call, native("io.k8s.api.policy.v1.Eviction"), KIND)
    name = (eviction.get("metadata") or {}).get("name") or call.name
    if name != call.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    asked = deleting.Options.of(eviction.get("deleteOptions") or {})
    asked.dry_run = asked.dry_run or call.dry_run
    await deleting.remove(call, served, stored, asked)
    return Response.json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


EVICTION = Subresource(("create",), KIND, handle)
