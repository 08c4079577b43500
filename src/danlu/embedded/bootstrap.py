"""What a new cluster has in it before anyone asks: namespaces, default rights, classes, the `kubernetes` service."""

from __future__ import annotations

import asyncio
import contextlib

from danlu.client.client import Client
from danlu.embedded.apiserver.admission.namespace_users import BASELINE, ENFORCE
from danlu.embedded.apiserver.auth import defaultroles as rights
from danlu.embedded.clusteraddresses import CLUSTER_RANGE, DEFAULT_RANGE
from danlu.embedded.storage import Store
from danlu.errors import AlreadyExists
from danlu.meta import wellknown
from danlu.meta.kind import Kind, Object

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PROVISIONER = "danlu.io/local"
INGRESS_CONTROLLER = "danlu.io/ingress"


def _priority_class(name: str, value: int, description: str) -> Object:
    return {"metadata": {"name": name}, "value": value, "globalDefault": False, "description": description}


def _storage_class() -> Object:
    return {
        "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": True,
    }


def _ingress_class() -> Object:
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    return {"metadata": {"name": "danlu", "annotations": annotations}, "spec": {"controller": INGRESS_CONTROLLER}}


def _kubernetes_service() -> Object:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "127.96.0.1",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443, "protocol": "TCP"}],
            "sessionAffinity": "None",
        },
    }


def wanted() -> list[tuple[Kind, Object]]:
    by_kind = {
        kind.kind: kind
        for kind in (
            wellknown.ROLE, wellknown.ROLE_BINDING, wellknown.CLUSTER_ROLE, wellknown.CLUSTER_ROLE_BINDING,
        )
    }  # fmt: skip
    return [
        *((by_kind[obj["kind"]], obj) for obj in rights.objects()),
        (wellknown.STORAGE_CLASS, _storage_class()),
        (
            wellknown.PRIORITY_CLASS,
            _priority_class(
                "system-cluster-critical", 2_000_000_000, "For parts without which the cluster does not work."
            ),
        ),
        (
            wellknown.PRIORITY_CLASS,
            _priority_class("system-node-critical", 2_000_001_000, "For parts without which a node does not work."),
        ),
        (wellknown.INGRESS_CLASS, _ingress_class()),
        (wellknown.SERVICE_CIDR, {"metadata": {"name": DEFAULT_RANGE}, "spec": {"cidrs": [CLUSTER_RANGE]}}),
        (wellknown.SERVICE, _kubernetes_service()),
    ]


async def ensure(client: Client, store: Store) -> None:
    """Makes what is missing and leaves alone what is there: users may have changed it."""
    await _create_missing(client, store, [(wellknown.NAMESPACE, {"metadata": {"name": name}}) for name in NAMESPACES])
    await _create_missing(client, store, wanted())


async def ensure_baseline(client: Client, store: Store, system: frozenset[str]) -> None:
    """For several people: namespaces of before, of which nobody said what their pods may, are as new ones are."""
    for stored in store.scan(wellknown.NAMESPACE.resource):
        if stored.name not in system and ENFORCE not in stored.labels:
            labels = {"metadata": {"labels": {ENFORCE: BASELINE}}}
            await client.patch(wellknown.NAMESPACE, stored.name, None, labels, type="merge")


async def _create_missing(client: Client, store: Store, objects: list[tuple[Kind, Object]]) -> None:
    async def create(kind: Kind, obj: Object) -> None:
        meta = obj["metadata"]
        with contextlib.suppress(AlreadyExists):
            await client.create(kind, obj, meta.get("namespace"))

    missing = [
        create(kind, obj)
        for kind, obj in objects
        if store.latest(kind.resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) is None
    ]
    # All at once: they share a few commits instead of waiting for one each.
    await asyncio.gather(*missing)
