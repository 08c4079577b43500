"""What a pod template needs and does not bring: claims, Secrets and ConfigMaps of its namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SECRET


class Needed(NamedTuple):
    kind: Kind
    name: str

    def __str__(self) -> str:
        return f'{self.kind.kind} "{self.name}"'


def of_pod(spec: Object) -> list[Needed]:
    """In the order in which they are named; what is marked optional is left out."""
    found = [*_of_volumes(spec)]
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        found += _of_environment(container)
    return [*dict.fromkeys(found)]


def _of_volumes(spec: Object) -> Iterator[Needed]:
    for volume in spec.get("volumes") or ():
        if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield Needed(PERSISTENT_VOLUME_CLAIM, name)
        yield from _file_source(SECRET, volume.get("secret"), "secretName")
        yield from _file_source(CONFIG_MAP, volume.get("configMap"), "name")
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _file_source(SECRET, source.get("secret"), "name")
            yield from _file_source(CONFIG_MAP, source.get("configMap"), "name")


def _of_environment(container: Object) -> Iterator[Needed]:
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        yield from _file_source(SECRET, source.get("secretKeyRef"), "name")
        yield from _file_source(CONFIG_MAP, source.get("configMapKeyRef"), "name")
    for entry in container.get("envFrom") or ():
        yield from _file_source(SECRET, entry.get("secretRef"), "name")
        yield from _file_source(CONFIG_MAP, entry.get("configMapRef"), "name")


def _file_source(kind: Kind, source: Any, key: str) -> Iterator[Needed]:
    if source and not source.get("optional") and source.get(key):
        yield Needed(kind, source[key])
