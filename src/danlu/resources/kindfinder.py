"""`KindFinder`: which kinds a server serves, and which of them somebody means by a word."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.meta import wellknown
from danlu.meta.kind import Kind

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = {"accept": ",".join((_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"))}
# Every cluster has these, so that `danlu get pods` need not ask what there is first.
EVERYWHERE = tuple(
    kind
    for kind in vars(wellknown).values()
    if isinstance(kind, Kind) and (kind.group == "" or (kind.group in ("apps", "batch") and kind.version == "v1"))
)


class UnknownKind(Exception):
    """Nothing that is served is called so; `served` is."""

    def __init__(self, word: str, served: list[str]) -> None:
        super().__init__(word)
        self.word = word
        self.served = served


class KindFinder:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: list[Kind] | None = None

    async def called(self, word: str) -> list[Kind]:
        """What is meant by `pods`, `po`, `Pod`, `deployments.apps`, `jobs.v1.batch`; several for a category (`all`).

        Where two groups have a kind of one name, the first that the server names wins, as with kubectl.
        """
        wanted = word.lower()
        if found := [kind for kind in EVERYWHERE if wanted in _spellings(kind)]:
            return found[:1]
        served = await self.served()
        if found := [kind for kind in served if wanted in _spellings(kind)]:
            return found[:1]
        if found := [kind for kind in served if wanted in kind.categories]:
            return found
        raise UnknownKind(word, sorted({kind.plural for kind in served}))

    async def of_type(self, api_version: str, kind: str) -> Kind:
        """What a manifest means."""
        for one in (*EVERYWHERE, *await self.served()):
            if one.kind == kind and one.api_version == api_version:
                return one
        raise UnknownKind(f"{kind} ({api_version})", sorted({one.kind for one in await self.served()}))

    async def served(self) -> list[Kind]:
        if self._served is None:
            found = await asyncio.gather(*(self._ask(path) for path in ("/api", "/apis")))
            self._served = [kind for body in found for kind in _kinds(body)]
        return self._served

    async def _ask(self, path: str) -> dict[str, Any]:
        response = await self._client.request("GET", path, headers=ACCEPT)
        body = orjson.loads(response.body)  # type: ignore[arg-type]  # no stream was asked for
        if body.get("kind") != "APIGroupDiscoveryList":
            raise errors.NotAcceptable("the server has no aggregated discovery: Kubernetes 1.26 or newer is needed")
        return dict(body)


def _kinds(discovery: dict[str, Any]) -> Iterator[Kind]:
    """Of each kind the version that the server prefers comes first."""
    for group in discovery["items"]:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            for found in version.get("resources") or ():
                if "list" in found.get("verbs", ()):
                    yield _kind(name, version["version"], found)


def _kind(group: str, version: str, found: dict[str, Any]) -> Kind:
    names, categories = tuple(found.get("shortNames") or ()), tuple(found.get("categories") or ())
    return Kind(
        group, version, found["responseKind"]["kind"], found["resource"], found.get("scope") == "Namespaced",
        names, categories, found.get("singularResource") or "",
    )  # fmt: skip


def _spellings(kind: Kind) -> set[str]:
    names = {kind.plural, kind.singular_name, kind.kind.lower()}
    longer = {f"{name}.{suffix}" for name in names for suffix in (kind.group, f"{kind.version}.{kind.group}")}
    return names | set(kind.short_names) | (longer if kind.group else set())
