"""The downward API: a pod's own fields and resources as text, for environment variables and for files.

Pure: everything needed is passed in. Error texts are kubelet's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from danlu.meta import quantity
from danlu.meta.fields import quoted
from danlu.meta.kind import Object

LOOPBACK = "127.0.0.1"


class FieldRefError(Exception):
    """A reference that cannot be resolved; the text is what a user sees."""


def format_map(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values))


def field_value(pod: Object, path: str) -> str:
    metadata, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    if path.endswith("']") and "['" in path:
        return _subscripted(metadata, path)
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(metadata.get(path.partition(".")[2], ""))
        case "metadata.labels" | "metadata.annotations":
            return format_map(metadata.get(path.partition(".")[2]) or {})
        case "spec.nodeName" | "spec.serviceAccountName":
            return str(spec.get(path.partition(".")[2]) or "")
        case "status.podIP":
            return str(status.get("podIP") or LOOPBACK)
        case "status.hostIP":
            return str(status.get("hostIP") or LOOPBACK)
        case "status.podIPs":
            return ",".join(ip["ip"] for ip in status.get("podIPs") or []) or field_value(pod, "status.podIP")
        case "status.hostIPs":
            return ",".join(ip["ip"] for ip in status.get("hostIPs") or []) or field_value(pod, "status.hostIP")
    raise FieldRefError(f"unsupported fieldPath: {path}")


def _subscripted(metadata: Mapping[str, Any], path: str) -> str:
    base, _, key = path[:-2].partition("['")
    if base not in ("metadata.labels", "metadata.annotations"):
        raise FieldRefError(f'fieldPath "{path}" does not support subscript')
    return str((metadata.get(base.partition(".")[2]) or {}).get(key, ""))


def container_named(pod: Object, name: str) -> Object:
    spec = pod["spec"]
    for container in [*spec.get("containers", []), *(spec.get("initContainers") or [])]:
        if container["name"] == name:
            return dict(container)
    raise FieldRefError(f"container {name} not found")


def resource_value(
    ref: Mapping[str, Any], pod: Object, container: Object | None, allocatable: Mapping[str, str]
) -> str:
    """A limit that is not set counts as what the node has (`allocatable`), as kubelet has it."""
    if ref.get("containerName"):
        container = container_named(pod, ref["containerName"])
    if container is None:
        raise FieldRefError("containerName is required")
    kind, _, name = str(ref["resource"]).partition(".")
    if kind not in ("limits", "requests") or not (
        name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-")
    ):
        raise FieldRefError(f"unsupported container resource : {ref['resource']}")
    amount = quantity.parse(str(((container.get("resources") or {}).get(kind) or {}).get(name, "0")))
    if kind == "limits" and amount.milli() == 0 and not name.startswith("hugepages-"):
        amount = quantity.parse(str(allocatable.get(name, "0")))
    divisor = quantity.parse(str(ref.get("divisor") or "0"))
    if divisor.milli() == 0:
        divisor = quantity.parse("1")
    if name == "cpu":
        return str(math.ceil(amount.milli() / divisor.milli()))
    return str(-(-amount.value() // divisor.value()))
