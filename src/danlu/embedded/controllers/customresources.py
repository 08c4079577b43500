"""The end of a CustomResourceDefinition: its instances are deleted first, then it is let go."""

from __future__ import annotations

from danlu.client.client import Client
from danlu.errors import Conflict, NotFound
from danlu.meta import objects
from danlu.meta.customkinds import CLEANUP_FINALIZER, is_established, kinds_of
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

LOOK_AGAIN_S = 0.2  # instances that wait for their own finalizers: nothing tells us when the last one goes


def make(manager: Manager) -> Controller:
    informer = manager.informer(CUSTOM_RESOURCE_DEFINITION)

    async def reconcile(request: Request) -> Outcome | None:
        crd = informer.get(None, request.name)
        if crd is None or await clean_up(manager.client, crd):
            return None
        return Outcome(requeue_after=LOOK_AGAIN_S)

    controller = Controller("customresources", reconcile)
    controller.watches(informer)
    return controller


async def clean_up(client: Client, crd: Object) -> bool:
    """Deletes the instances of a definition that is being deleted, then takes its finalizer off.

    Returns whether it is done; False means that instances wait for their own finalizers, so call it again. Safe to
    call at any time and any number of times.
    """
    if not objects.is_deleting(crd) or CLEANUP_FINALIZER not in (crd["metadata"].get("finalizers") or ()):
        return True
    kinds = kinds_of(crd) if is_established(crd) else []
    if kinds and await _instances_left(client, kinds[0]):
        return False
    try:
        live = await client.get(CUSTOM_RESOURCE_DEFINITION, crd["metadata"]["name"])
        kept = [finalizer for finalizer in live["metadata"].get("finalizers") or () if finalizer != CLEANUP_FINALIZER]
        await client.update(CUSTOM_RESOURCE_DEFINITION, {**live, "metadata": {**live["metadata"], "finalizers": kept}})
    except NotFound:
        return True
    except Conflict:
        return False
    return True


async def _instances_left(client: Client, kind: Kind) -> bool:
    """Deletes what is there, in every namespace; whether something remains."""
    try:
        found = (await client.list(kind)).items
        for obj in found:
            if not objects.is_deleting(obj):
                await _delete(client, kind, obj)
        return bool(found) and bool((await client.list(kind)).items)
    except NotFound:
        return False  # no longer served: what is left, if anything, nobody can reach


async def _delete(client: Client, kind: Kind, obj: Object) -> None:
    try:
        await client.delete(kind, obj["metadata"]["name"], obj["metadata"].get("namespace"), propagation="Background")
    except NotFound:
        return
