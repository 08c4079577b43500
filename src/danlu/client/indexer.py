"""`Indexer`: objects of one kind in memory, by name and by whatever else they are looked up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias, cast

import orjson

from danlu.meta.kind import Kind, Object

log = logging.getLogger(__name__)

IndexFunction = Callable[[Object], Iterable[Hashable]]

Objects: TypeAlias = list[Object]  # spelled here because `Indexer.list` hides the builtin inside the class
Values: TypeAlias = list[Hashable]
Keys: TypeAlias = list[tuple[str, str]]
Kept: TypeAlias = Object | bytes  # as it is, or packed


class Indexer:
    def __init__(self, kind: Kind, *, packed: bool = False) -> None:
        """`packed`: encoded, for many objects that few look at."""
        self.kind = kind
        self.packed = packed
        self._objects: dict[str, dict[str, Kept]] = {}
        self._indexes: dict[str, tuple[IndexFunction, dict[Hashable, dict[tuple[str, str], Kept]]]] = {}

    # -- reading

    def get(self, namespace: str | None, name: str) -> Object | None:
        kept = self._objects.get(namespace or "", {}).get(name)
        return kept if kept is None else _unpacked(kept)

    def list(self, namespace: str | None = None) -> Objects:
        if namespace is not None:
            return [_unpacked(kept) for kept in self._objects.get(namespace, {}).values()]
        return [_unpacked(kept) for names in self._objects.values() for kept in names.values()]

    def by_index(self, index: str, value: Hashable) -> Objects:
        return [_unpacked(kept) for kept in self._indexes[index][1].get(value, {}).values()]

    def index_size(self, index: str, value: Hashable) -> int:
        return len(self._indexes[index][1].get(value, ()))

    def index_values(self, index: str) -> Values:
        return [*self._indexes[index][1]]

    def keys(self) -> Keys:
        """Namespace and name of each."""
        return [(namespace, name) for namespace, names in self._objects.items() for name in names]

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def add_index(self, name: str, values: IndexFunction) -> None:
        """Adding the same name again is allowed and does nothing, so that users of a shared informer need no order."""
        if name in self._indexes:
            return
        self._indexes[name] = (values, {})
        for names in self._objects.values():
            for kept in names.values():
                self._index_one(name, None, _unpacked(kept), kept)

    # -- changing it

    def _store(self, obj: Object, cached: Object | None) -> None:
        namespace, name = key_of(obj)
        kept = _packed(obj) if self.packed else obj
        self._objects.setdefault(namespace, {})[name] = kept
        for index in self._indexes:
            self._index_one(index, cached, obj, kept)

    def _forget(self, cached: Object) -> None:
        namespace, name = key_of(cached)
        del self._objects[namespace][name]
        if not self._objects[namespace]:
            del self._objects[namespace]
        for index in self._indexes:
            self._index_one(index, cached, None, None)

    def _index_one(self, name: str, old: Object | None, new: Object | None, kept: Kept | None) -> None:
        values, entries = self._indexes[name]
        if old is not None:
            key = key_of(old)
            for value in self._values(values, old):
                bucket = entries.get(value)
                if bucket is not None:
                    bucket.pop(key, None)
                    if not bucket:
                        del entries[value]
        if new is not None and kept is not None:
            for value in self._values(values, new):
                entries.setdefault(value, {})[key_of(new)] = kept

    def _values(self, values: IndexFunction, obj: Object) -> Iterable[Hashable]:
        try:
            return tuple(values(obj))
        except Exception:  # an object that nobody could foresee must not keep all others out of the cache
            log.exception("an index of %s cannot take in %s", self.kind.resource, key_of(obj))
            return ()


def _packed(obj: Object) -> Kept:
    return bytes(memoryview(orjson.dumps(obj)))  # what orjson answers lies in a buffer more than twice as large


def _unpacked(kept: Kept) -> Object:
    return cast(Object, orjson.loads(kept)) if isinstance(kept, bytes) else kept


def key_of(obj: Object) -> tuple[str, str]:
    meta = obj["metadata"]
    return meta.get("namespace") or "", meta["name"]


def controller_uid(obj: Object) -> list[Hashable]:
    """Index function: the uid of the owner that controls the object, when there is one."""
    return [o["uid"] for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")]
