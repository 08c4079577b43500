"""A plan carried out, and what was chosen remembered for the next time."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from danlu import __version__, errors
from danlu.client.client import Client
from danlu.kinds.registry import established
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SECRET
from danlu.operator.install import manifests
from danlu.operator.install.manifests import CONSOLE, IDENTITY, SESSION_KEY, InstallPart, labels, session_key
from danlu.operator.install.options import InstallOptions
from danlu.operator.install.plan import MANAGED_BY, OURS, InstallPlan, PlannedChange, apply, read

MEMORY = "danlu-install"
CHOSEN = "options.json"
VERSION = "version"
DONE = {"create": "created", "change": "changed", "delete": "deleted"}


async def carry_out(client: Client, plan: InstallPlan, tell: Callable[[str], None]) -> None:
    """In the plan's order; a kind is served before anything that needs it is made. Deletes come last."""
    wanted = plan.wanted
    definitions = [change for change in wanted if change.kind == CUSTOM_RESOURCE_DEFINITION]
    before = wanted.index(definitions[0]) if definitions else 0
    for change in wanted[:before]:
        await _carry_out(client, change, tell)
    await asyncio.gather(*(_carry_out(client, change, tell) for change in definitions))
    await asyncio.gather(*(established(client, change.name) for change in definitions))
    for change in wanted[before:]:
        if change.kind != CUSTOM_RESOURCE_DEFINITION:
            await _carry_out(client, change, tell)


async def _carry_out(client: Client, change: PlannedChange, tell: Callable[[str], None]) -> None:
    if change.action == "delete":
        try:
            await client.delete(change.kind, change.name, change.namespace, propagation="Background")
        except errors.NotFound:
            return  # somebody was quicker
    else:
        await apply(client, change)
    tell(f"{DONE[change.action]} {change.title}")


# ---------------------------------------------------------------- what was chosen


def memory(namespace: str, chosen: Object) -> InstallPart:
    """What was asked for, so that the next `danlu install` does not quietly take it back."""
    return InstallPart(
        "operator",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": MEMORY, "namespace": namespace, "labels": labels("install")},
            "data": {VERSION: __version__, CHOSEN: orjson.dumps(chosen, option=orjson.OPT_SORT_KEYS).decode()},
        },
    )


async def console_key(client: Client, options: InstallOptions) -> InstallPart:
    """The one that is there, so that nobody is signed out by an upgrade; a new one the first time."""
    try:
        found = await read(client, SECRET, CONSOLE, options.namespace)
    except errors.Forbidden:
        found = None  # the checks say what is lacking
    key = ((found or {}).get("data") or {}).get(SESSION_KEY)
    return session_key(options, str(key or base64.b64encode(base64.b64encode(secrets.token_bytes(32))).decode()))


async def identity_provider(client: Client, options: InstallOptions, given: dict[str, str]) -> InstallPart | None:
    """`given` beside what an earlier installation was given. One that somebody made by hand is theirs, and stays."""
    try:
        found = await read(client, SECRET, IDENTITY, options.namespace) or {}
    except errors.Forbidden:
        found = {}
    ours = (found.get("metadata") or {}).get("labels", {}).get(MANAGED_BY) == OURS
    data = {**(found.get("data") or {}), **given}
    return manifests.identity_provider(options, data) if data and (ours or given) else None


@dataclass(frozen=True, slots=True)
class Memory:
    namespace: str
    chosen: Object  # by the names of `danlu install`'s options
    version: str


async def remembered(client: Client) -> list[Memory]:
    """Installations that are here; one, unless somebody made a second by hand."""
    try:
        found = (await client.list(CONFIG_MAP, labels=f"{MANAGED_BY}={OURS}")).items
    except errors.Forbidden:
        return []  # the checks say what is lacking
    return [_memory_of(one) for one in found if one["metadata"]["name"] == MEMORY]


def _memory_of(obj: Object) -> Memory:
    data = obj.get("data") or {}
    try:
        chosen = orjson.loads(data.get(CHOSEN) or "{}")
    except orjson.JSONDecodeError:
        chosen = {}
    return Memory(
        obj["metadata"]["namespace"], chosen if isinstance(chosen, dict) else {}, str(data.get(VERSION) or "")
    )
