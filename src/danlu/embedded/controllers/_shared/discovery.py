"""What the API server serves, asked of itself: for controllers that deal with every kind there is, custom ones too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.client.transport import Query, Transport, TransportResponse
from danlu.meta.kind import Kind

METADATA_ONLY = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)


@dataclass(frozen=True, slots=True)
class Resource:
    kind: Kind
    verbs: frozenset[str]
    scalable: bool = False


class MetadataTransport:
    """The same server, answering with metadata only: what an object holds is none of the caller's business."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        wanted = {**headers, "accept": METADATA_ONLY} if method == "GET" else headers
        return await self._inner.request(method, path, query, wanted, body)

    async def close(self) -> None:
        """The inner one belongs to somebody else."""


def metadata_client(client: Client) -> Client:
    return Client(MetadataTransport(client.transport))


async def resources(client: Client) -> list[Resource]:
    """Each kind once, at its group's preferred version. A group that does not answer is left out."""
    groups = await _get(client, "/apis")
    versions = ["/api/v1"]
    more: list[str] = []
    for group in groups.get("groups") or ():
        preferred = group["preferredVersion"]["groupVersion"]
        versions.append(f"/apis/{preferred}")
        more += [f"/apis/{v['groupVersion']}" for v in group["versions"] if v["groupVersion"] != preferred]
    lists = await asyncio.gather(*(_get(client, path) for path in versions + more), return_exceptions=True)
    found: dict[str, Resource] = {}
    for answer in lists:
        if isinstance(answer, errors.ApiError):
            continue
        if isinstance(answer, BaseException):
            raise answer
        for resource in _of_list(answer):
            found.setdefault(resource.kind.resource, resource)
    return [*found.values()]


def _of_list(answer: dict[str, Any]) -> list[Resource]:
    group, _, version = answer["groupVersion"].rpartition("/")
    entries = answer.get("resources") or ()
    names = {entry["name"] for entry in entries}
    return [
        Resource(
            Kind(group, version, entry["kind"], entry["name"], entry["namespaced"]),
            frozenset(entry.get("verbs") or ()),
            f"{entry['name']}/scale" in names,
        )
        for entry in entries
        if "/" not in entry["name"]
    ]


async def _get(client: Client, path: str) -> dict[str, Any]:
    response = await client.request("GET", path)
    raw = response.body if isinstance(response.body, bytes) else b"".join([chunk async for chunk in response.body])
    return cast(dict[str, Any], orjson.loads(raw))
