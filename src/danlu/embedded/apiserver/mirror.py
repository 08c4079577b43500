"""`Mirror`: what admission and authorization must know of one resource, kept beside the store.

A stored object is bytes; decoding it on every request would cost more than the decision that needs it. A mirror keeps
one small value for each object, made once when a write is submitted, so a look-up is a dictionary access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.events import Change
    from danlu.embedded.storage.store import Store

T = TypeVar("T")


class Mirror(Generic[T]):
    """namespace -> name -> value; an empty namespace is dropped, so `namespaces.get(ns)` tells "nothing there"."""

    def __init__(
        self,
        store: Store,
        resource: str,
        value: Callable[[Object], T],
        changed: Callable[[str], None] | None = None,
    ) -> None:
        self.namespaces: dict[str, dict[str, T]] = {}
        self._resource = resource
        self._value = value
        self._changed = changed  # told the namespace after each change
        for stored in store.scan_latest(resource):
            self.namespaces.setdefault(stored.namespace, {})[stored.name] = value(stored.obj)
        store.observe(self._observe)

    def get(self, namespace: str, name: str) -> T | None:
        names = self.namespaces.get(namespace)
        return names.get(name) if names else None

    def values(self, namespace: str = "") -> Iterable[T]:
        names = self.namespaces.get(namespace)
        return names.values() if names else ()

    def items(self, namespace: str = "") -> list[tuple[str, T]]:
        """Sorted by name."""
        names = self.namespaces.get(namespace)
        return sorted(names.items(), key=lambda item: item[0]) if names else []

    def _observe(self, change: Change) -> None:
        stored = change.stored
        if stored.resource != self._resource:
            return
        names = self.namespaces.setdefault(stored.namespace, {})
        if change.type == "DELETED":
            names.pop(stored.name, None)
            if not names:
                del self.namespaces[stored.namespace]
        else:
            names[stored.name] = self._value(stored.obj)
        if self._changed is not None:
            self._changed(stored.namespace)
