"""Whether a pod can ever have a node, in numbers: what it asks for beside what the nodes have when they are empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from danlu.diagnose.cause import Cause
from danlu.meta import nodeselection, quantity
from danlu.meta.kind import Object
from danlu.meta.quantity import Quantity
from danlu.meta.resourcesums import pod_requests

NAMED = 4  # resources in one sentence
SMALLEST = 2**20  # fewer are no bytes, but processors or devices


def asked(pod: Object) -> str:
    """`cpu 2, memory 4Gi`"""
    found = [f"{name} {shown(amount)}" for name, amount in sorted(pod_requests(pod).items()) if amount]
    return ", ".join(found[:NAMED])


def shown(amount: Quantity) -> str:
    """A node's 24689152Ki are 23.5Gi to people."""
    for power, unit in ((40, "Ti"), (30, "Gi"), (20, "Mi")):
        if amount.value() >= 2**power and amount.value() >= SMALLEST:
            return f"{amount.value() / 2**power:.1f}".removesuffix(".0") + unit
    return str(amount)


def never(pod: Object, nodes: Sequence[Object], message: str) -> Cause | None:
    """None when some node would have room if it were empty, or when nothing is known of the nodes."""
    usable = [node for node in nodes if _may_use(pod, node)]
    if not usable:
        return None
    name = pod["metadata"]["name"]
    for resource, amount in sorted(pod_requests(pod).items()):
        most = max((_allocatable(node, resource) for node in usable), default=None)
        if most is None or amount <= most:
            continue
        told = {"pod": name, "resource": resource, "asked": shown(amount), "most": shown(most), "message": message}
        code = "DL-NEVER-FITS" if most else "DL-NO-DEVICE"
        return Cause(code, told, f"Pod/{name}", "Unschedulable")
    return None


def _allocatable(node: Object, resource: str) -> Quantity:
    status = node.get("status") or {}
    stated = (status.get("allocatable") or status.get("capacity") or {}).get(resource)
    return _parse(stated) or Quantity(0)


def _parse(text: object) -> Quantity | None:
    try:
        return None if text is None else quantity.parse(str(text))
    except quantity.QuantityError:
        return None


def _may_use(pod: Object, node: Object) -> bool:
    """By name, label and taint; whatever else keeps it away, the scheduler says so itself."""
    spec, of_node = pod.get("spec") or {}, node.get("spec") or {}
    labels = node["metadata"].get("labels") or {}
    if of_node.get("unschedulable"):
        return False
    taints: Iterable[Object] = of_node.get("taints") or ()
    if nodeselection.untolerated([*taints], spec.get("tolerations") or ()):
        return False
    return all(labels.get(name) == value for name, value in (spec.get("nodeSelector") or {}).items())
