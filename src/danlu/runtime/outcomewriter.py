"""Carries out an `Outcome`, writing only what differs: a write costs a sync to disk and wakes every watcher."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import Informer
from danlu.client.transport import may_wait
from danlu.diagnose import stated
from danlu.meta import owners, wellknown
from danlu.meta.kind import Kind, Object
from danlu.meta.said import Said, carried
from danlu.runtime.reconcile import CreatedNote, Creation, Outcome, Refusal
from danlu.runtime.recorder import EventRecorder

Result = TypeVar("Result")
MADE = object()
AT_ONCE = 100  # creations under way at the same time
NAMED = 16  # names in one event
Observed = Mapping[tuple[str, str], Informer]
"""Informers by (apiVersion, kind): where the live state of children is looked up."""


class Applier:
    """Writes children by server-side apply under one manager's name, and the status of their parent."""

    def __init__(
        self,
        client: Client,
        manager: str,
        recorder: EventRecorder,
        informers: Iterable[Informer] = (),
        kinds: Iterable[Kind] = (),
        explain: Callable[[str], str] = str,
    ) -> None:
        """`explain` adds to a server's words what mends it."""
        self.client = client
        self.manager = manager
        self.recorder = recorder
        self.explain = explain
        self._informers: Observed = {(i.kind.api_version, i.kind.kind): i for i in informers}
        self._kinds = {(k.api_version, k.kind): k for k in (*BUILT_IN, *kinds)}
        self._kinds.update({key: informer.kind for key, informer in self._informers.items()})

    async def carry_out(self, kind: Kind, parent: Object, outcome: Outcome) -> None:
        """Children first, status last: a status never tells of what has not been written."""
        await self.carry_out_children(parent, outcome)
        await self.tell(kind, parent, outcome)
        await self.create_all(parent, outcome.create_last)

    async def carry_out_children(self, parent: Object, outcome: Outcome) -> list[Refusal]:
        """What the server would not take is told as a warning about the parent, and answered."""
        # Applied before deleted: what is to be remembered of a child must be written down before the child goes.
        await _all(self.apply(child) for child in outcome.apply)
        await _all(self._delete(child) for child in outcome.delete)
        return await self.create_all(parent, outcome.create)

    async def create_all(self, parent: Object, creations: Iterable[Creation]) -> list[Refusal]:
        """One kind after the other; those of one kind at the same time, a hundred at the most."""
        refusals: list[Refusal] = []
        for _, wave in itertools.groupby(creations, key=lambda creation: str(creation.obj["kind"])):
            while tried := [*itertools.islice(wave, AT_ONCE)]:
                found = await _all(self._create(parent, creation) for creation in tried)
                self._tell_made(parent, [one for one, result in zip(tried, found, strict=True) if result is MADE])
                refused = [result for result in found if isinstance(result, Refusal)]
                refusals += refused
                if refused:
                    break  # what is refused for a hundred (a quota, say) is not asked for by the next hundred
        return refusals

    def _tell_made(self, parent: Object, made: Iterable[Creation]) -> None:
        names: dict[CreatedNote, list[str]] = {}
        for creation in made:
            if creation.made is not None:
                names.setdefault(creation.made, []).append(creation.obj["metadata"]["name"])
        for note, found in names.items():
            told = {**dict(note.params), "names": ", ".join(found[:NAMED]), "others": len(found[NAMED:]) or ""}
            self.recorder.normal(parent, note.reason, stated(note.code, **told))

    async def tell(self, kind: Kind, parent: Object, outcome: Outcome) -> None:
        if outcome.status is not None:
            await write_status(self.client, kind, parent, outcome.status)
        for note in outcome.events:
            self.recorder.event(note.about or parent, note.type, note.reason, note.message)

    async def _create(self, parent: Object, creation: Creation) -> Refusal | object | None:
        """`MADE`, or None where it was there already."""
        obj = creation.obj
        kind = self.kind_of(obj)
        try:
            with may_wait(creation.max_wait_s):
                await self.client.create(kind, obj, obj["metadata"].get("namespace"))
        except errors.AlreadyExists as error:
            live = await self.client.get(kind, obj["metadata"]["name"], obj["metadata"].get("namespace"))
            if owners.is_controlled_by(live, parent):
                return None  # ours, and the cache was behind
            return self._refused(parent, creation, error)
        except (errors.Forbidden, errors.Invalid, errors.BadRequest) as error:
            return self._refused(parent, creation, error)
        return MADE

    def _refused(self, parent: Object, creation: Creation, error: errors.ApiError) -> Refusal:
        words = self.explain(error.message)
        self.recorder.warning(parent, creation.refused, Said(f"Error creating: {words}", carried(words)))
        return Refusal(creation.obj, error.message)

    async def apply(self, wanted: Object) -> Object:
        kind = self.kind_of(wanted)
        meta = wanted["metadata"]
        live = await self._live(kind, meta.get("namespace"), meta["name"])
        if live is not None and not differs(wanted, live, self.manager):
            return live
        return await self.client.patch(
            kind, meta["name"], meta.get("namespace"), wanted, type="apply", manager=self.manager, force=True
        )

    def is_seen(self, obj: Object) -> bool:
        """Whether a cache has an object of this kind and name."""
        informer = self._informers.get((obj["apiVersion"], obj["kind"]))
        meta = obj["metadata"]
        return informer is not None and informer.get(meta.get("namespace"), meta["name"]) is not None

    def kind_of(self, obj: Object) -> Kind:
        return self._kinds[obj["apiVersion"], obj["kind"]]

    async def _live(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        informer = self._informers.get((kind.api_version, kind.kind))
        if informer is not None:
            return informer.get(namespace, name)
        try:
            return await self.client.get(kind, name, namespace)
        except errors.NotFound:
            return None

    async def _delete(self, child: Object) -> None:
        meta = child["metadata"]
        if meta.get("deletionTimestamp"):
            return
        # Not found, or another of the same name: the one that was meant is no more.
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self.client.delete(
                self.kind_of(child), meta["name"], meta.get("namespace"), propagation="Background", uid=meta.get("uid")
            )


async def _all(tasks: Iterable[Awaitable[Result]]) -> list[Result]:
    """At the same time, so that their writes share a sync to disk; the first failure is raised when all have ended."""
    waiting = list(tasks)
    if len(waiting) == 1:
        return [await waiting[0]]
    done = await asyncio.gather(*waiting, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return [one for one in done if not isinstance(one, BaseException)]


async def write_status(client: Client, kind: Kind, obj: Object, status: Mapping[str, Any]) -> Object:
    """The object with this status; no write when it has it already."""
    if (obj.get("status") or {}) == status:
        return obj
    return await client.update_status(kind, {**obj, "status": dict(status)})


def differs(wanted: Object, live: Object, manager: str) -> bool:
    """Whether applying `wanted` would change `live`: a value that is not so, or a field we own and no longer want."""
    if not _covers(live, wanted):
        return True
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return _owns_more(entry.get("fieldsV1") or {}, wanted)
    return True  # never applied by us


def _covers(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            name in live and _covers(live[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(live, list) or len(live) != len(wanted):
            return False
        return all(_covers(have, want) for have, want in zip(live, wanted, strict=True))
    return bool(live == wanted)


def _owns_more(fields: Mapping[str, Any], wanted: Any) -> bool:
    """Only named fields are looked at: elements of lists are compared by `_covers`."""
    if not isinstance(wanted, dict):
        return False
    for name, inner in fields.items():
        if name.startswith("f:") and (name[2:] not in wanted or _owns_more(inner, wanted[name[2:]])):
            return True
    return False


BUILT_IN: tuple[Kind, ...] = tuple(value for value in vars(wellknown).values() if isinstance(value, Kind))
