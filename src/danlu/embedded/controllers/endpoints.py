"""Endpoints and EndpointSlices: which pods a service leads to, kept in both spellings.

A service with a selector gets both from here. For one without, a person writes the Endpoints and this controller
mirrors them into slices. One reconcile looks at one service and at the pods that its selector can match.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from danlu import errors
from danlu.client.informer import Informer
from danlu.embedded.controllers._shared import endpointaddresses
from danlu.meta import clock, conditions, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
BY_LABEL, BY_SELECTOR, BY_SERVICE = "label", "selector", "service"


def make(manager: Manager) -> Controller:
    endpoints = EndpointsController(manager)
    controller = Controller("endpoints", endpoints.reconcile)
    controller.watches(endpoints.services)
    controller.watches(endpoints.endpoints)

    def pod_changed(_event: str, pod: Object, old: Object | None) -> None:
        if old is not None and _event == "MODIFIED" and _seen_by_services(old) == _seen_by_services(pod):
            return
        for state in (pod, old) if old is not None else (pod,):
            for request in endpoints.services_of(state):
                controller.queue.add(request)

    endpoints.pods.add_handler(pod_changed)
    controller.watches(endpoints.slices, _service_of_slice)
    return controller


def _seen_by_services(pod: Object) -> tuple[Any, ...]:
    """All that Endpoints say of a pod; any other change of it is none of ours."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    return (
        status.get("podIP"),
        status.get("phase"),
        conditions.is_true(status.get("conditions"), "Ready"),
        bool(meta.get("deletionTimestamp")),
        meta.get("labels"),
        pod["spec"].get("nodeName"),
    )


def _service_of_slice(found: Object) -> Iterable[Request]:
    service = objects.labels_of(found).get(endpointaddresses.SERVICE_NAME)
    return (Request(objects.namespace(found), service),) if service else ()


def _label_keys(pod: Object) -> Iterable[Hashable]:
    namespace = pod["metadata"]["namespace"]
    return [(namespace, key, value) for key, value in objects.labels_of(pod).items()]


def _selector_key(service: Object) -> Iterable[Hashable]:
    """One pair of the selector stands for all: a pod that lacks it cannot match."""
    selector = service["spec"].get("selector")
    if not selector:
        return ()
    key = min(selector)
    return ((service["metadata"]["namespace"], key, selector[key]),)


def _slice_keys(found: Object) -> Iterable[Hashable]:
    return [(request.namespace, request.name) for request in _service_of_slice(found)]


class EndpointsController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.services = _indexed(manager.informer(SERVICE), BY_SELECTOR, _selector_key)
        self.pods = _indexed(manager.informer(POD), BY_LABEL, _label_keys)
        self.endpoints = manager.informer(ENDPOINTS)
        self.slices = _indexed(manager.informer(ENDPOINT_SLICE), BY_SERVICE, _slice_keys)

    def services_of(self, pod: Object) -> list[Request]:
        labels, namespace = objects.labels_of(pod), objects.namespace(pod)
        found = []
        for key, value in labels.items():
            for service in self.services.by_index(BY_SELECTOR, (namespace, key, value)):
                if service["spec"]["selector"].items() <= labels.items():
                    found.append(Request(namespace, objects.name(service)))
        return found

    def pods_of(self, service: Object) -> list[Object]:
        namespace, selector = objects.namespace(service), service["spec"]["selector"]
        keys = [(namespace, key, value) for key, value in selector.items()]
        narrowest = min(keys, key=lambda key: self.pods.index_size(BY_LABEL, key))
        return [
            pod for pod in self.pods.by_index(BY_LABEL, narrowest) if selector.items() <= objects.labels_of(pod).items()
        ]

    async def reconcile(self, request: Request) -> Outcome | None:
        service = self.services.get(request.namespace, request.name)
        current = self.endpoints.get(request.namespace, request.name)
        have = self.slices.by_index(BY_SERVICE, (request.namespace, request.name))
        if service is None or objects.is_deleting(service):
            await self._service_gone(current, have)
            return None
        if service["spec"].get("type") == "ExternalName":
            return None
        if not service["spec"].get("selector"):
            await self._mirror(current, have)
            return None
        found = endpointaddresses.backends(service, self.pods_of(service))
        await self._write_slices(
            endpointaddresses.slices(service, found), _managed(have, endpointaddresses.SLICE_MANAGER)
        )
        await self._write_endpoints(service, endpointaddresses.subsets(service, found), current)
        return None

    async def _service_gone(self, current: Object | None, have: list[Object]) -> None:
        # Slices are owned by the service and go with it; Endpoints have no owner, as in Kubernetes.
        if current is not None and objects.labels_of(current).get(endpointaddresses.ENDPOINTS_MANAGED_BY):
            await self._delete(ENDPOINTS, current)
        for found in _managed(have, endpointaddresses.SLICE_MANAGER):
            await self._delete(ENDPOINT_SLICE, found)

    async def _mirror(self, current: Object | None, have: list[Object]) -> None:
        wanted: list[Object] = []
        if current is not None and not objects.is_deleting(current):
            marked = objects.labels_of(current).get(SKIP_MIRROR) == "true"
            marked = marked or endpointaddresses.ENDPOINTS_MANAGED_BY in objects.labels_of(current)
            if not marked and LEADER not in objects.annotations_of(current):
                wanted = endpointaddresses.mirrored(current)
        await self._write_slices(wanted, _managed(have, endpointaddresses.MIRROR_MANAGER))

    async def _write_endpoints(self, service: Object, subsets: list[Object], current: Object | None) -> None:
        meta = service["metadata"]
        labels = {
            **endpointaddresses.labels_for(service),
            endpointaddresses.ENDPOINTS_MANAGED_BY: endpointaddresses.ENDPOINTS_MANAGER,
        }
        if current is not None and (current.get("subsets") or []) == subsets and objects.labels_of(current) == labels:
            return
        body: Object = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": meta["name"],
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": {TRIGGER_TIME: clock.now_rfc3339()},
            },
        }
        if subsets:
            body["subsets"] = subsets
        try:
            if current is None:
                await self.client.create(ENDPOINTS, body)
            else:
                body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
                await self.client.update(ENDPOINTS, body)
        except errors.Forbidden:
            return  # the namespace is being deleted

    async def _write_slices(self, wanted: list[Object], have: list[Object]) -> None:
        left = {objects.name(found): found for found in have}
        for body in wanted:
            current = left.pop(body["metadata"]["name"], None)
            if current is not None and _same_slice(current, body):
                continue
            try:
                if current is None:
                    await self.client.create(ENDPOINT_SLICE, body)
                elif current["addressType"] != body["addressType"]:
                    await self._delete(ENDPOINT_SLICE, current)  # it cannot be changed: made anew when it is gone
                else:
                    version = current["metadata"]["resourceVersion"]
                    body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
                    await self.client.update(ENDPOINT_SLICE, body)
            except errors.Forbidden:
                return
        for stale in left.values():
            await self._delete(ENDPOINT_SLICE, stale)

    async def _delete(self, kind: Any, obj: Object) -> None:
        try:
            await self.client.delete(kind, objects.name(obj), objects.namespace(obj), uid=objects.uid(obj))
        except errors.NotFound:
            return


def _managed(have: list[Object], manager: str) -> list[Object]:
    return [found for found in have if objects.labels_of(found).get(endpointaddresses.SLICE_MANAGED_BY) == manager]


def _same_slice(current: Object, wanted: Object) -> bool:
    return bool(
        (current.get("endpoints") or []) == wanted["endpoints"]
        and (current.get("ports") or []) == wanted["ports"]
        and objects.labels_of(current) == wanted["metadata"]["labels"]
        and (current["metadata"].get("ownerReferences") or []) == wanted["metadata"]["ownerReferences"]
        and current["addressType"] == wanted["addressType"]
    )


def _indexed(informer: Informer, name: str, values: Any) -> Informer:
    informer.add_index(name, values)
    return informer
