"""Where cluster IPs come from, and by what their IPAddresses are known: the allocator says, and the controller."""

from __future__ import annotations

from danlu.meta.kind import Object
from danlu.meta.objects import labels_of

CLUSTER_RANGE = "127.96.0.0/12"
DEFAULT_RANGE = "kubernetes"  # the ServiceCIDR that has it
ADDRESS_LABELS = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}  # of an IPAddress that a Service has


def is_own(address: Object) -> bool:
    """Of an IPAddress: it only says what a Service has, and reserves nothing by itself."""
    return ADDRESS_LABELS.items() <= labels_of(address).items()
