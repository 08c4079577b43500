"""What a pod's containers ask for together, with the pod's own figures left aside."""

from __future__ import annotations

from danlu.meta.kind import Object
from danlu.meta.quantity import QuantityError
from danlu.meta.resourcesums import Amounts, pod_requests


def container_requests(spec: Object) -> Amounts:
    """Empty where an amount is no quantity: the containers' own validation answers for that."""
    alone = {name: spec.get(name) for name in ("containers", "initContainers")}
    try:
        return pod_requests({"spec": alone})
    except QuantityError:
        return {}
