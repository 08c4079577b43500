"""Objects as they are kept in memory: each version encoded, each resource in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

import orjson

from danlu.meta.kind import Object

Key = tuple[str, str]  # namespace, name
NO_LABELS: dict[str, str] = {}  # one for all that have none; nobody writes to it


class Stored:
    """One version of one object: its encoded form and what lists and watches select by."""

    __slots__ = ("_labels", "fields", "name", "namespace", "raw", "resource", "revision")

    def __init__(
        self,
        resource: str,
        namespace: str,
        name: str,
        revision: int,
        raw: bytes,
        labels: dict[str, str] | None = None,
    ) -> None:
        """`labels` are read from `raw` when someone asks, unless they are given: a start need not decode everything."""
        self.resource = resource
        self.namespace = namespace
        self.name = name
        self.revision = revision
        self.raw = raw
        self._labels = labels
        self.fields: Mapping[str, str] | None = None  # for field selectors; filled by the reader who first needs it

    @classmethod
    def of(cls, resource: str, obj: Object, revision: int) -> Stored:
        meta = obj["metadata"]
        return cls(
            resource,
            meta.get("namespace") or "",
            meta["name"],
            revision,
            orjson.dumps(obj),
            meta.get("labels") or NO_LABELS,
        )

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = self.obj["metadata"].get("labels") or NO_LABELS
        return self._labels

    @property
    def uid(self) -> str:
        return str(self.obj["metadata"].get("uid") or "")

    @property
    def obj(self) -> Object:
        """A copy of one's own: decoded anew each time, so no reader can change what is stored."""
        decoded: Object = orjson.loads(self.raw)
        return decoded


class Table:
    """The objects of one resource, by (namespace, name), with their order kept."""

    __slots__ = ("keys", "objects")

    def __init__(self) -> None:
        self.objects: dict[Key, Stored] = {}
        self.keys: list[Key] = []

    def put(self, key: Key, stored: Stored) -> None:
        if key not in self.objects:
            insort(self.keys, key)
        self.objects[key] = stored

    def remove(self, key: Key) -> None:
        if self.objects.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def scan(self, namespace: str | None) -> list[Stored]:
        objects = self.objects
        if namespace is None:
            return [objects[key] for key in self.keys]
        start = bisect_left(self.keys, (namespace, ""))
        end = bisect_left(self.keys, (namespace + "\0", ""), start)
        return [objects[key] for key in self.keys[start:end]]
