"""Keeps hostPath and local volumes out of Danlu's data directory, whoever asks: `hostpaths` says why.

The node looks again at what a path leads to when it mounts it; this refusal comes earlier, and says so to whoever wrote
the path. Only the provisioner's own volumes lie there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.hostpaths import WHY, is_protected, is_provisioned
from danlu.meta import wellknown
from danlu.meta.kind import Object

PODS, VOLUMES = wellknown.POD.resource, wellknown.PERSISTENT_VOLUME.resource
PROVISIONING = "kube-controller-manager"


class DataDirectoryGuard(Handler):
    resources = frozenset({PODS, VOLUMES})

    def __init__(self, directory: Path) -> None:
        self._directories = {str(directory), os.path.realpath(directory)}

    def validate(self, a: Attributes) -> None:
        if a.obj is None or a.subresource or a.operation not in (CREATE, UPDATE):
            return
        spec = a.obj.get("spec") or {}
        if a.operation == UPDATE and a.old is not None and spec == a.old.get("spec"):
            return
        for field, path in _pod_paths(spec) if a.served.key == PODS else _volume_paths(spec):
            if not any(is_protected(path, directory) for directory in self._directories):
                continue
            if a.served.key == VOLUMES and self._is_ours(a, path):
                continue
            raise a.forbidden(f"{field}: Forbidden: {path} may not be mounted: {WHY}")

    def _is_ours(self, a: Attributes, path: str) -> bool:
        """Made by the provisioner, or by it once and changed in something else since."""
        made = [((obj or {}).get("spec") or {}).get("hostPath") for obj in (a.obj, a.old)]
        by_us = a.user.name == PROVISIONING or (a.operation == UPDATE and made[0] == made[1])
        return by_us and any(is_provisioned(path, directory) for directory in self._directories)


def _pod_paths(spec: Object) -> Iterator[tuple[str, str]]:
    for number, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("hostPath"):
            yield f"spec.volumes[{number}].hostPath.path", volume["hostPath"].get("path") or ""


def _volume_paths(spec: Object) -> Iterator[tuple[str, str]]:
    for kind in ("hostPath", "local"):
        if spec.get(kind):
            yield f"spec.{kind}.path", spec[kind].get("path") or ""
