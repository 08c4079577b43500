"""The controllers that keep the cluster itself in order, as opposed to those of the workloads (`CONTROLLERS`)."""

from __future__ import annotations

from pathlib import Path

from danlu.embedded.controllers import (
    certificatesigning,
    clusterroles,
    endpoints,
    ephemeral,
    garbage,
    namespacedeletion,
    nodes,
    persistentvolumeclaims,
    podgc,
    resourcequota,
    serviceaccounts,
    servicecidrs,
    ttl,
)
from danlu.embedded.controllers.serviceaccounts import Authority
from danlu.runtime.manager import Factory


def factories(volumes_directory: Path, authority: Authority, sign: certificatesigning.Sign) -> tuple[Factory, ...]:
    """Service accounts come first: nothing can run in a namespace before it has its own."""
    return (
        *serviceaccounts.factories(authority),
        namespacedeletion.make,
        garbage.make,
        endpoints.make,
        *persistentvolumeclaims.factories(volumes_directory),
        ephemeral.make,
        resourcequota.make,
        nodes.make,
        podgc.make,
        ttl.make,
        servicecidrs.make_addresses,
        servicecidrs.make_ranges,
        clusterroles.make,
        lambda manager: certificatesigning.make(manager, sign),
    )
