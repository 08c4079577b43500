"""Volumes: exactly one source each, and paths that stay inside the volume."""

from __future__ import annotations

from danlu.meta.fields import FieldError, forbidden, required
from danlu.meta.kind import Object

# In the order Kubernetes looks at them: the first one counts, further ones are refused.
PERSISTENT_SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)


def persistent_source_errors(spec: Object, path: str) -> list[FieldError]:
    given = [name for name in PERSISTENT_SOURCES if spec.get(name) is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    return [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in given[1:]]
