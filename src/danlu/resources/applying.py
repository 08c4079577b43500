"""Server-side apply, as `kubectl apply --server-side` does it, and deletion that can be waited for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import orjson

from danlu import errors
from danlu.client.client import PATCH_TYPES, Client
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION, NAMESPACE

FIELD_MANAGER = "kubectl"
"""What `kubectl apply --server-side` writes: whoever uses both has one owner of their fields, not two that collide."""
CLIENT_SIDE = "kubectl-client-side-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
FIRST = (NAMESPACE.kind, CUSTOM_RESOURCE_DEFINITION.kind)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    manager: str = FIELD_MANAGER
    force: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    object: Object
    before: Object | None  # None: there was none

    @property
    def outcome(self) -> str:
        """created, configured or unchanged."""
        if self.before is None:
            return "created"
        return "unchanged" if _content(self.before) == _content(self.object) else "configured"


def in_order(kinds: list[str]) -> list[int]:
    """Places of objects of these kinds in the order to apply them: what others need to be there comes first."""
    return sorted(range(len(kinds)), key=lambda place: kinds[place] not in FIRST)


async def apply(client: Client, kind: Kind, obj: Object, namespace: str | None, options: ApplyOptions) -> Applied:
    """Raises Conflict where somebody else owns a field that would change, unless forced."""
    name = obj["metadata"]["name"]
    try:
        before: Object | None = await client.get(kind, name, namespace)
    except errors.NotFound:
        before = None
    if before is not None and _applied_by_client(before):
        # Those fields are the same person's: without this, the two ways of kubectl apply would own each field twice,
        # and what leaves the manifest would never leave the object. kubectl does the same.
        options = replace(options, force=True)
    # Strict: a misspelt field would be left out silently, and the object would be something else than was written.
    query = [("fieldManager", options.manager), ("fieldValidation", "Strict")]
    query += [("force", "true")] if options.force else []
    query += [("dryRun", "All")] if options.dry_run else []
    headers = {"accept": "application/json", "content-type": PATCH_TYPES["apply"]}
    path = kind.path(namespace if kind.namespaced else None, name)
    response = await client.request("PATCH", path, query, orjson.dumps(obj), headers)
    return Applied(orjson.loads(response.body), before)  # type: ignore[arg-type]  # no stream was asked for


def _applied_by_client(obj: Object) -> bool:
    return any(
        one.get("manager") == CLIENT_SIDE and one.get("operation") == "Update"
        for one in obj["metadata"].get("managedFields") or ()
    )


def _content(obj: Object) -> Object:
    """Without what the server counts."""
    counted = ("managedFields", "resourceVersion")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in counted}}


async def until_gone(client: Client, kind: Kind, name: str, namespace: str | None, uid: str, timeout_s: float) -> bool:
    """Whether the object (this one, not a later one of its name) is gone within this time; 0: for ever."""
    deadline = asyncio.get_running_loop().time() + timeout_s if timeout_s else float("inf")
    pause = FIRST_WAIT_S
    while True:
        try:
            found = await client.get(kind, name, namespace)
        except errors.NotFound:
            return True
        if uid and found["metadata"].get("uid") != uid:
            return True
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_WAIT_S)
