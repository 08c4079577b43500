"""What is known around an object, for `danlu.diagnose`: read as whoever asks, so what they may not see is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from danlu import errors
from danlu.client.client import Client
from danlu.diagnose.evidence import Evidence, involved
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    EVENT,
    JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    STORAGE_CLASS,
)

BETWEEN = (STATEFUL_SET, REPLICA_SET, JOB)  # what may stand between an object and its pods
PAGE = 500


async def gather(client: Client, obj: Object) -> Evidence:
    namespace = obj["metadata"].get("namespace")
    if not namespace:
        return Evidence(events=await _list(client, EVENT, None, f"involvedObject.name={obj['metadata']['name']}") or ())
    wanted = (POD, EVENT, PERSISTENT_VOLUME_CLAIM, RESOURCE_QUOTA, *BETWEEN)
    listed = await asyncio.gather(
        *(_list(client, kind, namespace) for kind in wanted), *(_list(client, kind) for kind in (STORAGE_CLASS, NODE))
    )
    pods, events, claims, quotas, *between, classes, nodes = listed
    uids = _family(obj, [one for found in between for one in found or ()])
    own = [pod for pod in pods or () if _owners(pod) & uids]
    uids |= {pod["metadata"]["uid"] for pod in own} | {claim["metadata"]["uid"] for claim in claims or ()}
    told = [event for event in events or () if involved(event).get("uid") in uids]
    counted = () if pods is None else quotas or ()
    return Evidence(own, told, claims or (), classes, nodes or (), counted)


def _family(obj: Object, between: Iterable[Object]) -> set[str]:
    """The object and what it owns, however far down."""
    uids, rest = {obj["metadata"]["uid"]}, [*between]
    while found := [one for one in rest if _owners(one) & uids]:
        uids |= {one["metadata"]["uid"] for one in found}
        rest = [one for one in rest if one["metadata"]["uid"] not in uids]
    return uids


def _owners(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


async def _list(client: Client, kind: Kind, namespace: str | None = None, fields: str = "") -> list[Object] | None:
    """None: they may not be seen, or there is no such kind."""
    try:
        return (await client.list(kind, namespace, fields=fields, limit=PAGE)).items
    except (errors.Forbidden, errors.NotFound):
        return None
