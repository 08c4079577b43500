"""/openapi/v2 and /openapi/v3: what the server serves, for kubectl explain, apply and diff, and for anyone's tools.

A document is built when first asked for, in a thread, and kept compressed until the registry changes: uncompressed
they are megabytes. The index names each v3 document with a hash, so a client fetches only those that changed.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from danlu.embedded.apiserver import discovery
from danlu.embedded.apiserver.openapi import definitions
from danlu.embedded.apiserver.openapi.definitions import META, V2, V3, Document
from danlu.embedded.apiserver.openapi.paths import Paths, as_v2
from danlu.embedded.apiserver.openapi.protobuf import encode_v2
from danlu.embedded.apiserver.registry import MadeOfKinds, Registry
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.errors import NotAcceptable
from danlu.meta.schema.definitions import described_definitions, release

# What client-go asks for is no valid media type (RFC 6838 has no "@"), so the answer names it in another spelling.
V2_PROTOBUF_ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_INFO = {"title": "Kubernetes", "version": "v1.36.0"}
_BEARER = {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
_ALWAYS = (f"{META}Status", f"{META}DeleteOptions", f"{META}Patch", f"{META}APIResourceList", f"{META}WatchEvent")


@dataclass(slots=True)
class Packed:
    data: bytes  # gzip
    tag: str


class OpenApiDocuments:
    """The OpenAPI documents of one state of the registry."""

    def __init__(self, registry: Registry) -> None:
        groups = discovery.documents(registry).groups
        self.kinds: dict[str, list[ServedKind]] = {
            (f"apis/{group}/{version}" if group else f"api/{version}"): kinds
            for group, versions in groups.items()
            for version, kinds in versions.items()
        }
        self._hashes: dict[str, str] = {}
        self._packed: dict[str, Packed] = {}

    def hash(self, path: str) -> str:
        """Changes whenever the document would, and is had without building it."""
        known = self._hashes.get(path)
        if known is None:
            digest = hashlib.sha512(release().encode())
            for served in self.kinds[path]:
                digest.update(repr((served.kind, served.verbs, sorted(served.subresources))).encode())
                digest.update(repr((served.has_status, served.scale is not None)).encode())
                if not definitions.is_native(served.kind):
                    digest.update(orjson.dumps(dict(served.schema().root.schema), option=orjson.OPT_SORT_KEYS))
            known = self._hashes[path] = digest.hexdigest().upper()
        return known

    def index(self) -> Document:
        return {
            "paths": {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self.hash(path)}"} for path in sorted(self.kinds)
            }
        }

    async def packed(self, key: str, build: Callable[[], bytes]) -> Packed:
        known = self._packed.get(key)
        if known is None:
            known = self._packed[key] = await asyncio.to_thread(_pack, build)
        return known

    def v3(self, path: str) -> Document:
        kinds = self.kinds[path]
        paths: dict[str, Document] = {}
        schemas: dict[str, Document] = {}
        for served in kinds:
            paths.update(Paths(served).build())
            if not definitions.is_native(served.kind):
                schemas.update(definitions.custom(served, V3))
        wanted = [*_ALWAYS, *definitions.references(paths), *definitions.references(schemas)]
        wanted += [definitions.name_of(served.kind) for served in kinds]
        definitions.closure(wanted, described_definitions(), V3, schemas)
        components = {"schemas": dict(sorted(schemas.items())), "securitySchemes": {"BearerToken": _BEARER}}
        return {"openapi": "3.0.0", "info": _INFO, "paths": dict(sorted(paths.items())), "components": components}

    def v2(self) -> Document:
        paths: dict[str, Document] = {}
        schemas: dict[str, Document] = {}
        wanted: list[str] = list(_ALWAYS)
        for kinds in self.kinds.values():
            for served in kinds:
                paths.update(as_v2(Paths(served).build()))
                if not definitions.is_native(served.kind):
                    schemas.update(definitions.custom(served, V2))
                wanted.append(definitions.name_of(served.kind))
        wanted += [*definitions.references(paths), *definitions.references(schemas)]
        definitions.closure(wanted, described_definitions(), V2, schemas)
        return {
            "swagger": "2.0",
            "info": _INFO,
            "paths": dict(sorted(paths.items())),
            "definitions": dict(sorted(schemas.items())),
            "securityDefinitions": {"BearerToken": _BEARER},
            "security": [{"BearerToken": []}],
        }


def _pack(build: Callable[[], bytes]) -> Packed:
    data = build()
    return Packed(gzip.compress(data, 4, mtime=0), f'"{hashlib.sha512(data).hexdigest().upper()}"')


documents = MadeOfKinds(OpenApiDocuments)


def _answer(call: Call, packed: Packed, content_type: str, headers: dict[str, str] | None = None) -> Response:
    sent = {"etag": packed.tag, "vary": "Accept-Encoding, Accept", **(headers or {})}
    if call.headers.get("if-none-match") == packed.tag:
        return Response(304, b"", content_type, sent)
    if "gzip" in call.headers.get("accept-encoding", ""):
        return Response(200, packed.data, content_type, {**sent, "content-encoding": "gzip"})
    return Response(200, gzip.decompress(packed.data), content_type, sent)


def _accepts(call: Call, *media: str) -> str:
    """The first of `media` that the client takes."""
    accept = call.headers.get("accept", "") or "*/*"
    asked = [clause.split(";")[0].strip() for clause in accept.split(",")]
    for one in asked:
        for offered in media:
            if one in (offered, "*/*") or (one.endswith("/*") and offered.startswith(one[:-1])):
                return offered
    raise NotAcceptable(f"only the following media types are accepted: {', '.join(media)}")


async def v2(call: Call) -> Response:
    """/openapi/v2, as JSON or, as client-go asks for it, as protobuf."""
    form = _accepts(call, "application/json", V2_PROTOBUF_ASKED, V2_PROTOBUF)
    current = documents(call.server.registry)
    if form != "application/json":
        return _answer(call, await current.packed("v2.pb", lambda: encode_v2(current.v2())), V2_PROTOBUF)
    return _answer(call, await current.packed("v2", lambda: orjson.dumps(current.v2())), form)


async def v3_index(call: Call) -> Response:
    _accepts(call, "application/json")
    body = orjson.dumps(documents(call.server.registry).index())
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    if call.headers.get("if-none-match") == tag:
        return Response(304, b"", headers={"etag": tag})
    return Response(200, body, headers={"etag": tag})


async def v3_document(call: Call) -> Response:
    """/openapi/v3/api/v1, /openapi/v3/apis/GROUP/VERSION"""
    current = documents(call.server.registry)
    path = call.target.path.strip("/").removeprefix("openapi/v3").strip("/")
    if path not in current.kinds:
        return Response.text("404 page not found\n", 404)
    _accepts(call, "application/json")
    asked, actual = call.query.get("hash"), current.hash(path)
    if asked and asked != actual:
        # The client's index is old; it is sent on, so that it does not keep today's document under yesterday's name.
        return Response(301, b"", headers={"location": f"/openapi/v3/{path}?hash={actual}"})
    headers = {"cache-control": "public, immutable" if asked else "no-cache"}
    packed = await current.packed(path, lambda: orjson.dumps(current.v3(path)))
    return _answer(call, packed, "application/json", headers)


PAGES = {"/openapi/v2": v2, "/openapi/v3": v3_index, "/openapi/v3/*": v3_document}
