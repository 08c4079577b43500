"""The children of a served object: a StatefulSet of one pod and the Service before it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from danlu.kinds._gang import markers
from danlu.kinds._served.observation import Observed
from danlu.meta import owners
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import SERVICE, STATEFUL_SET

OWNER_NAME = "tensorstack.dev/owner-name"
COMPONENT = "tensorstack.dev/component"
COMPONENT_TYPE = "tensorstack.dev/component-type"


def digits(obj: Object) -> str:
    """Five hex digits, the same for the whole life of the object."""
    return hashlib.sha256(str(obj["metadata"]["uid"]).encode()).hexdigest()[:5]


def labels(obj: Object, kind: Kind) -> dict[str, str]:
    return {COMPONENT: kind.kind.lower(), COMPONENT_TYPE: "user", OWNER_NAME: obj["metadata"]["name"]}


def child(obj: Object, owner: Kind, kind: Kind, name: str, body: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": obj["metadata"]["namespace"],
            "labels": labels(obj, owner),
            "ownerReferences": [owners.reference(obj, owner)],
        },
        **body,
    }


def stateful_set(obj: Object, owner: Kind, name: str, service: str, replicas: int, template: Object) -> Object:

    meta = template.get("metadata") or {}
    chosen = labels(obj, owner)
    return child(
        obj,
        owner,
        STATEFUL_SET,
        name,
        {
            "spec": {
                "replicas": replicas,
                "serviceName": service,
                "selector": {"matchLabels": chosen},
                "template": {
                    "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **chosen}},
                    "spec": template["spec"],
                },
            }
        },
    )


def service(obj: Object, owner: Kind, name: str, port_name: str, port: int, type: str = "ClusterIP") -> Object:

    return child(
        obj,
        owner,
        SERVICE,
        name,
        {
            "spec": {
                "type": type,
                "selector": labels(obj, owner),
                "ports": [{"name": port_name, "port": port, "targetPort": port, "protocol": "TCP"}],
            }
        },
    )


def address(observed: Observed, service: str, port: int) -> str:
    """What stands before the path in an address: the console, else the Service itself where the host can reach it."""
    if observed.settings.console_url:
        return observed.settings.console_url.rstrip("/")
    found = observed.child(SERVICE, service)
    own = ((found or {}).get("spec") or {}).get("clusterIP")
    return f"http://{own}:{port}" if own and observed.settings.shared_network else ""


def scheduled(spec: Object, scheduler: Mapping[str, Any] | None, meta: Object, observed: Observed) -> None:
    """Hands the pod to the T9k scheduler when the object asks for a queue and there is one; in place."""
    wanted = (scheduler or {}).get("t9kScheduler")
    if not wanted:
        return
    if observed.settings.gang == "t9k":
        spec["schedulerName"] = markers.SCHEDULER
    meta.setdefault("labels", {})[markers.QUEUE_NAME] = wanted.get("queue") or markers.DEFAULT_QUEUE


def with_env(container: Object, added: list[Object]) -> None:
    """Adds variables that the container does not set itself; in place."""
    own = container.get("env") or []
    names = {entry["name"] for entry in own}
    container["env"] = [*[entry for entry in added if entry["name"] not in names], *own]
