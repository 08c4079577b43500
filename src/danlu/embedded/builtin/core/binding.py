"""`bindings`: the older way to say which node a pod goes to; `pods/NAME/binding` is what schedulers use."""

from __future__ import annotations

from danlu.embedded.apiserver.request import Call
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.apiserver.subresources.binding import BINDING, bind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.errors import BadRequest
from danlu.meta import names
from danlu.meta.kind import Object


async def answer(call: Call, binding: Object) -> Object:
    name = binding["metadata"].get("name")
    if not name:
        raise BadRequest("name is required")
    return await bind(call, name, binding)


SERVED = ServedKind(
    kind=BINDING,
    schema=schema_of("io.k8s.api.core.v1.Binding"),
    name_errors=names.as_dns_subdomain,
    verbs=("create",),
    answer=answer,
)
