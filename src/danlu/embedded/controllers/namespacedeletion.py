"""Namespace deletion: everything inside goes first, pods before all else, and then the namespace itself.

The namespace's own finalizer (`spec.finalizers: [kubernetes]`) keeps it until nothing is left; what still stands in
the way is told in its conditions.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from danlu import errors
from danlu.embedded.controllers._shared import discovery
from danlu.embedded.controllers._shared.discovery import Resource
from danlu.meta import clock, conditions, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE, POD
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

FINALIZER = "kubernetes"
FIRST_LOOK_S, LONGEST_LOOK_S = 0.1, 5.0

FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def make(manager: Manager) -> Controller:
    namespaces = NamespaceController(manager)
    controller = Controller("namespaces", namespaces.reconcile)
    controller.watches(namespaces.informer)
    return controller


class NamespaceController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.informer = manager.informer(NAMESPACE)
        self._metadata = discovery.metadata_client(manager.client)
        self._looks: Counter[str] = Counter()  # uid → how often we have looked

    async def reconcile(self, request: Request) -> Outcome | None:
        namespace = self.informer.get(None, request.name)
        if namespace is None or not objects.is_deleting(namespace):
            return None
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            return None
        uid = namespace["metadata"]["uid"]
        try:
            remaining, problems = await self._empty(request.name)
            await self._tell(request.name, remaining, problems)
            if not remaining and not problems:
                await self._finalize(request.name)
                del self._looks[uid]
                return None
        except errors.NotFound:
            return None  # gone while we looked
        self._looks[uid] += 1
        return Outcome(requeue_after=min(FIRST_LOOK_S * 1.5 ** self._looks[uid], LONGEST_LOOK_S))

    async def _empty(self, namespace: str) -> tuple[dict[str, list[Object]], list[str]]:
        """Deletes all there is; what remains, by resource, and what went wrong."""
        found = await discovery.resources(self.client)
        inside = [r for r in found if r.kind.namespaced and {"list", "delete"} <= r.verbs]
        inside = [r for r in inside if r.kind.resource != "events.events.k8s.io"]  # the same objects as events
        pods = [r for r in inside if r.kind.resource == POD.resource]
        remaining: dict[str, list[Object]] = {}
        problems: list[str] = []
        await self._empty_kinds(namespace, pods, remaining, problems)
        if not remaining and not problems:
            others = [r for r in inside if r.kind.resource != POD.resource]
            await self._empty_kinds(namespace, others, remaining, problems)
        return remaining, problems

    async def _empty_kinds(
        self, namespace: str, kinds: list[Resource], remaining: dict[str, list[Object]], problems: list[str]
    ) -> None:
        async def one(resource: Resource) -> None:
            try:
                left = (await self._metadata.list(resource.kind, namespace)).items
                if left:
                    left = await self._delete(namespace, resource, left)
            except errors.NotFound:
                return
            except errors.ApiError as error:
                problems.append(str(error))
                return
            if left:
                remaining[resource.kind.resource] = left

        await asyncio.gather(*(one(resource) for resource in kinds))

    async def _delete(self, namespace: str, resource: Resource, left: list[Object]) -> list[Object]:
        if any(not objects.is_deleting(obj) for obj in left):
            if "deletecollection" in resource.verbs:
                await self.client.delete_collection(resource.kind, namespace, propagation="Background")
            else:
                for obj in left:
                    await self.client.delete(resource.kind, objects.name(obj), namespace, propagation="Background")
        return (await self._metadata.list(resource.kind, namespace)).items

    async def _tell(self, name: str, remaining: dict[str, list[Object]], problems: list[str]) -> None:
        bad: dict[str, tuple[str, str]] = {}
        if problems:
            text = f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(sorted(problems))}"
            bad["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if remaining:
            shown = [
                f"{resource if '.' in resource else resource + '.'} has {len(left)} resource instances"
                for resource, left in sorted(remaining.items())
            ]
            bad["NamespaceContentRemaining"] = (
                "SomeResourcesRemain",
                f"Some resources are remaining: {', '.join(shown)}",
            )
            everything = [obj for left in remaining.values() for obj in left]
            holders = Counter(held for obj in everything for held in obj["metadata"].get("finalizers") or ())
            if holders:
                shown = [f"{name} in {count} resource instances" for name, count in sorted(holders.items())]
                bad["NamespaceFinalizersRemaining"] = (
                    "SomeFinalizersRemain",
                    f"Some content in the namespace has finalizers remaining: {', '.join(shown)}",
                )
        live = self.informer.get(None, name)
        if live is None or not (bad or (live.get("status") or {}).get("conditions")):
            return
        status = objects.copy(live.get("status") or {})
        told = status.setdefault("conditions", [])
        now, changed = clock.now_rfc3339(), False
        for type, fine in FINE.items():
            reason, message = bad.get(type, fine)
            changed |= conditions.set(told, type, "True" if type in bad else "False", reason, message, now)
        if changed:
            await self.client.update_status(NAMESPACE, {**live, "status": status})

    async def _finalize(self, name: str) -> None:
        live = await self.client.get(NAMESPACE, name)
        kept = [finalizer for finalizer in live["spec"].get("finalizers") or () if finalizer != FINALIZER]
        body = {**live, "spec": {**live["spec"], "finalizers": kept}}
        try:
            await self.client.update(NAMESPACE, body, subresource="finalize")
        except errors.NotFound:
            return
