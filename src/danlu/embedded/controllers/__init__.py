"""The controllers of a small Kubernetes, one file each, on the same `runtime` that the platform's kinds use.

They talk to the API through `manager.client` only, as kube-controller-manager does, and behave as it does: names,
conditions, events and messages are those of Kubernetes.
"""

from __future__ import annotations

from danlu.embedded.controllers import (
    autoscaling,
    cronjob,
    customresources,
    daemonset,
    deployment,
    disruption,
    job,
    replicaset,
    statefulset,
)
from danlu.runtime.manager import Factory

# What runs, in the order in which it is started; each makes its controller from the shared manager.
CONTROLLERS: tuple[Factory, ...] = (
    job.make,
    cronjob.make,
    replicaset.make,
    replicaset.make_old,
    deployment.make,
    statefulset.make,
    daemonset.make,
    disruption.make,
    autoscaling.make,
    customresources.make,
)
