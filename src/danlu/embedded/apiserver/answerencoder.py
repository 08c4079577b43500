"""From stored objects to what the client asked for: JSON, a Table, only the metadata, YAML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from danlu.embedded.apiserver import representations
from danlu.embedded.apiserver.negotiation import Wanted, parse_accept
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Stored
from danlu.meta.kind import Object

# People read these programs' output: what they get is indented, unless they say otherwise.
READ_BY_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


def wanted(call: Call) -> Wanted:
    accept = call.headers.get("accept", "")
    want = parse_accept(accept)
    if "pretty" in call.query:
        return replace(want, pretty=call.query.flag("pretty"))
    if accept in ("", "*/*") and call.headers.get("user-agent", "").startswith(READ_BY_PEOPLE):
        return replace(want, pretty=True)
    return want


def object_of(served: ServedKind, stored: Stored) -> Object:
    obj = stored.obj
    return served.from_stored(obj) if served.from_stored else obj


def raw_of(served: ServedKind, stored: Stored) -> bytes:
    return orjson.dumps(served.from_stored(stored.obj)) if served.from_stored else stored.raw


def one(call: Call, served: ServedKind, found: Stored | Object, status: int = 200) -> Response:
    want = wanted(call)
    if want.plain:
        return Response(status, raw_of(served, found) if isinstance(found, Stored) else orjson.dumps(found))
    obj = object_of(served, found) if isinstance(found, Stored) else found
    return representations.render_one(want, served, obj, call.query.get("includeObject"), status)


def many(
    call: Call,
    served: ServedKind,
    found: Sequence[Stored],
    revision: int,
    go_on: str = "",
    remaining: int | None = None,
) -> Response:
    """A list. The plain form splices the stored bytes: nothing is decoded or encoded."""
    want = wanted(call)
    meta: Object = {"resourceVersion": str(revision)}
    if go_on:
        meta["continue"] = go_on
        if remaining is not None:
            meta["remainingItemCount"] = remaining
    if not want.plain:
        listed = [object_of(served, stored) for stored in found]
        return representations.render_many(want, served, listed, meta, call.query.get("includeObject"))
    head = orjson.dumps({"kind": served.kind.list_kind, "apiVersion": served.kind.api_version, "metadata": meta})
    if served.from_stored:
        items = [raw_of(served, stored) for stored in found]
    else:
        items = [stored.raw for stored in found]
    return Response(200, head[:-1] + b',"items":[' + b",".join(items) + b"]}")


def many_made(call: Call, served: ServedKind, made: Sequence[Object]) -> Response:
    """A list of objects that are not stored, and have no version therefore."""
    return representations.render_many(wanted(call), served, made, {}, call.query.get("includeObject"))
