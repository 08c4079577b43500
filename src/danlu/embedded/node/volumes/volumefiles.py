"""What the files of configMap, secret, downwardAPI and projected volumes hold, read through the API."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from danlu.embedded.node.pods.environment import EnvironmentContext, node_allocatable
from danlu.embedded.node.pods.fieldrefs import FieldRefError, container_named, field_value, resource_value
from danlu.embedded.node.volumes.atomicfiles import File
from danlu.errors import ApiError, NotFound
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, SECRET, SERVICE_ACCOUNT

DEFAULT_MODE = 0o644
KINDS = ("configMap", "secret", "downwardAPI", "projected")
LONGEST_TOKEN_AGE_S = 24 * 3600.0
CLOCKS_DIFFER_S = 30.0  # a clock that was put back further than this makes the token one of the future
TOKEN_LIFETIME_USED = 0.8  # of a token's life, after which a new one is fetched


class SourceError(Exception):
    """A source that is not there, in kubelet's words."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A token of ours. Its life is counted on both clocks: the one that the server reads may be set at any time."""

    token: str
    issued: float  # time.time()
    since: float  # time.monotonic()
    life: float  # seconds until another is asked for

    def is_fresh(self) -> bool:
        age = time.time() - self.issued
        return -CLOCKS_DIFFER_S < age < self.life and time.monotonic() - self.since < self.life


class PodTokens:
    """Service-account tokens of one pod, each asked for again well before it expires."""

    def __init__(self, pod: Object, context: EnvironmentContext) -> None:
        self._pod = pod
        self._context = context
        self._held: dict[tuple[str, int], _Held] = {}

    async def token(self, audience: str, seconds: int) -> str:
        held = self._held.get((audience, seconds))
        if held and held.is_fresh():
            return held.token
        meta, spec = self._pod["metadata"], self._pod["spec"]
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [audience] if audience else [],
                "expirationSeconds": seconds,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]},
            },
        }
        account = spec.get("serviceAccountName") or "default"
        try:
            answer = await self._context.client.create_subresource(
                SERVICE_ACCOUNT, account, meta["namespace"], "token", asked
            )
        except ApiError as error:
            if held:  # still valid for a while: kubelet, too, goes on with what it has
                return held.token
            raise SourceError(f"failed to fetch token: {error.message}") from error
        token = str(answer["status"]["token"])
        life = min(seconds * TOKEN_LIFETIME_USED, LONGEST_TOKEN_AGE_S)
        self._held[(audience, seconds)] = _Held(token, time.time(), time.monotonic(), life - random.uniform(0, 10))
        return token


async def payload(volume: Object, pod: Object, context: EnvironmentContext, tokens: PodTokens) -> dict[str, File]:
    """The files of one volume. Raises SourceError; several problems of a projected volume are told together."""
    for kind in KINDS[:3]:
        if kind in volume:
            source = volume[kind] or {}
            return await _source(kind, source, source.get("defaultMode", DEFAULT_MODE), pod, context, tokens)
    projected = volume["projected"]
    mode = projected.get("defaultMode", DEFAULT_MODE)
    files: dict[str, File] = {}
    problems: list[str] = []
    for sources in projected.get("sources") or []:
        for kind, source in sources.items():
            try:
                files.update(await _source(kind, source or {}, mode, pod, context, tokens))
            except SourceError as error:
                problems.append(str(error))
    if problems:
        raise SourceError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return files


async def _source(
    kind: str, source: Mapping[str, Any], mode: int, pod: Object, context: EnvironmentContext, tokens: PodTokens
) -> dict[str, File]:
    match kind:
        case "configMap":
            return _chosen(source, await _config_map(source, pod, context), mode, "configmap references", "config")
        case "secret":
            return _chosen(source, await _secret(source, pod, context), mode, "references", "secret")
        case "downwardAPI":
            return await _downward(source.get("items") or [], mode, pod, context)
        case "serviceAccountToken":
            token = await tokens.token(source.get("audience") or "", int(source.get("expirationSeconds") or 3600))
            return {source["path"]: File(token.encode(), mode)}
    raise SourceError(f"projected source {kind} is not supported by this node")


async def _config_map(source: Mapping[str, Any], pod: Object, context: EnvironmentContext) -> dict[str, bytes] | None:
    try:
        found = await context.client.get(CONFIG_MAP, source.get("name", ""), pod["metadata"]["namespace"])
    except NotFound:
        if source.get("optional"):
            return None
        raise SourceError(f'configmap "{source.get("name", "")}" not found') from None
    data = {key: value.encode() for key, value in (found.get("data") or {}).items()}
    return data | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}


async def _secret(source: Mapping[str, Any], pod: Object, context: EnvironmentContext) -> dict[str, bytes] | None:
    name = source.get("secretName") or source.get("name") or ""  # `name` in a projected source
    try:
        found = await context.client.get(SECRET, name, pod["metadata"]["namespace"])
    except NotFound:
        if source.get("optional"):
            return None
        raise SourceError(f'secret "{name}" not found') from None
    return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}


def _chosen(
    source: Mapping[str, Any], data: Mapping[str, bytes] | None, mode: int, words: str, what: str
) -> dict[str, File]:
    if data is None:
        return {}
    items = source.get("items")
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            files[item["path"]] = File(data[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise SourceError(f"{words} non-existent {what} key: {item['key']}")
    return files


async def _downward(
    items: Iterable[Mapping[str, Any]], mode: int, pod: Object, context: EnvironmentContext
) -> dict[str, File]:
    files = {}
    for item in items:
        try:
            if "fieldRef" in item:
                text = field_value(pod, item["fieldRef"]["fieldPath"])
            else:
                ref = item["resourceFieldRef"]
                container = container_named(pod, ref["containerName"])
                text = resource_value(ref, pod, container, await node_allocatable(context))
        except FieldRefError as error:
            raise SourceError(str(error)) from error
        files[item["path"]] = File(text.encode(), item.get("mode", mode))
    return files
