"""ControllerRevisions: the templates that a stateful set or a daemon set has had, to compare with and to go back to.

`data` is a strategic merge patch that restores the template: it is what `kubectl rollout undo` applies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.hashes import short_hash
from danlu.meta import objects, owners
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONTROLLER_REVISION

LONGEST_PREFIX = 223
STATEFUL_SET_HASH = "controller.kubernetes.io/hash"
DAEMON_SET_HASH = "controller-revision-hash"


@dataclass(slots=True)
class Revisions:
    """All revisions of one owner, oldest first, with the one of its present template picked out."""

    present: Object
    everything: list[Object]
    collisions: int


def data_of(owner: Object) -> Object:
    """In the order of the alphabet: clients compare it with what they make of the owner, byte for byte."""
    template = {name: value for name, value in owner["spec"]["template"].items() if value is not None}
    patch = {"spec": {"template": {**template, "$patch": "replace"}}}
    ordered: Object = orjson.loads(orjson.dumps(patch, option=orjson.OPT_SORT_KEYS))
    return ordered


def template_of(revision: Object) -> Object:
    template = revision["data"]["spec"]["template"]
    return {name: value for name, value in template.items() if name != "$patch"}


class History:
    def __init__(self, client: Client, informer: Informer, kind: Kind, hash_label: str) -> None:
        self.client = client
        self.informer = states.index_by_owner(informer)
        self.kind = kind
        self.hash_label = hash_label
        self._claims = states.ChildClaims(client, self.informer, kind)

    async def sync(self, owner: Object) -> Revisions:
        """The revision of the present template exists afterwards, and is the newest."""
        selector = states.selector_of(owner)
        owned = await states.claim(self._claims, owner, selector)
        owned.sort(key=_age)
        collisions: int = (owner.get("status") or {}).get("collisionCount") or 0
        newest = owned[-1]["revision"] if owned else 0
        data = data_of(owner)
        equal = [revision for revision in owned if revision.get("data") == data]
        if not equal:
            present, collisions = await self._create(owner, data, newest + 1, collisions)
            return Revisions(present, [*owned, present], collisions)
        present = equal[-1]
        if present["revision"] < newest:
            # The template of an older revision came back: the same revision, now the newest.
            present = await self.client.update(CONTROLLER_REVISION, {**present, "revision": newest + 1})
            owned = [one for one in owned if one["metadata"]["uid"] != present["metadata"]["uid"]] + [present]
        return Revisions(present, owned, collisions)

    async def _create(self, owner: Object, data: Object, number: int, collisions: int) -> tuple[Object, int]:
        while True:
            made = self._new(owner, data, number, collisions)
            try:
                return await self.client.create(CONTROLLER_REVISION, made), collisions
            except errors.AlreadyExists:
                meta = made["metadata"]
                live = await self.client.get(CONTROLLER_REVISION, meta["name"], meta["namespace"])
                if live.get("data") == data and owners.is_controlled_by(live, owner):
                    return live, collisions
                collisions += 1

    def _new(self, owner: Object, data: Object, number: int, collisions: int) -> Object:
        meta = owner["metadata"]
        hashed = short_hash(data, collisions)
        labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        made: Object = {
            "apiVersion": CONTROLLER_REVISION.api_version,
            "kind": CONTROLLER_REVISION.kind,
            "metadata": {
                "name": f"{meta['name'][:LONGEST_PREFIX]}-{hashed}",
                "namespace": meta["namespace"],
                "labels": {**labels, self.hash_label: hashed},
                "ownerReferences": [owners.reference(owner, self.kind)],
            },
            "data": data,
            "revision": number,
        }
        if objects.annotations_of(owner):
            made["metadata"]["annotations"] = dict(objects.annotations_of(owner))
        return made

    async def truncate(self, revisions: Iterable[Object], live: set[str], limit: int) -> None:
        """Deletes the oldest of those that nothing uses any more (`live` names those in use), down to `limit`."""
        spare = [one for one in revisions if one["metadata"]["name"] not in live]
        for one in spare[: max(0, len(spare) - limit)]:
            meta = one["metadata"]
            try:
                await self.client.delete(CONTROLLER_REVISION, meta["name"], meta["namespace"], uid=meta["uid"])
            except errors.NotFound:
                continue


def _age(revision: Object) -> tuple[int, str, str]:
    meta = revision["metadata"]
    return revision["revision"], meta["creationTimestamp"], meta["name"]
