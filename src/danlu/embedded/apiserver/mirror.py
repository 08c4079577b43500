"""`Mirror`: what admission and authorization must know of one resource, kept beside the store.

A stored object is bytes; decoding it on every request would cost more than the decision that needs it. A mirror keeps
one small value for each object, made once when a write is submitted, so a look-up is a dictionary access.

An object of which no value can be made, one that was stored by other hands than ours, has no effect: it is left out and
named in the log, and neither stops the server's start nor the writes of others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage import Store, Stored
    from danlu.embedded.storage.watchcache import Change

log = logging.getLogger(__name__)

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
        self._value = value
        self._changed = changed  # told the namespace after each change
        store.load_each(resource, self._put)
        store.observe(self._observe, resource)

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

    def _put(self, stored: Stored) -> None:
        value = self._value(stored.obj)
        self.namespaces.setdefault(stored.namespace, {})[stored.name] = value

    def _observe(self, change: Change) -> None:
        stored = change.stored
        if change.type == "DELETED":
            self._leave_out(stored)
        else:
            self._take_in(stored)
        if self._changed is not None:
            self._changed(stored.namespace)

    def _take_in(self, stored: Stored) -> None:
        try:
            self._put(stored)
        except Exception:
            log.exception("%s %s/%s cannot be understood: it has no effect", *_names(stored))
            self._leave_out(stored)

    def _leave_out(self, stored: Stored) -> None:
        names = self.namespaces.get(stored.namespace)
        if names is not None:
            names.pop(stored.name, None)
            if not names:
                del self.namespaces[stored.namespace]


def _names(stored: Stored) -> tuple[str, str, str]:
    return stored.resource, stored.namespace, stored.name
