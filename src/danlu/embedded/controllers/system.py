"""The controllers that keep the cluster itself in order, as opposed to those of the workloads (`CONTROLLERS`)."""

from __future__ import annotations

from pathlib import Path

from danlu.embedded.controllers import (
    certificates,
    clusterroles,
    endpoints,
    ephemeral,
    garbage,
    namespaces,
    nodes,
    podgc,
    quotas,
    serviceaccounts,
    ttl,
    volumes,
)
from danlu.embedded.controllers.serviceaccounts import Authority
from danlu.runtime.manager import Factory


def factories(volumes_directory: Path, authority: Authority, sign: certificates.Sign) -> tuple[Factory, ...]:
    """Service accounts come first: nothing can run in a namespace before it has its own."""
    return (
        *serviceaccounts.factories(authority),
        namespaces.make,
        garbage.make,
        endpoints.make,
        *volumes.factories(volumes_directory),
        ephemeral.make,
        quotas.make,
        nodes.make,
        podgc.make,
        ttl.make,
        clusterroles.make,
        lambda manager: certificates.make(manager, sign),
    )
