"""Which kinds are served, by path. Built-in ones are given at start; CRDs come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from danlu.embedded.apiserver.served import ServedKind

Made = TypeVar("Made")


class Registry:
    def __init__(self, kinds: Iterable[ServedKind] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._by_resource: dict[tuple[str, str], list[ServedKind]] = {}  # as they were asked for
        self._observers: list[Callable[[], None]] = []
        self.generation = 0  # grows with every change
        for served in kinds:
            self.add(served)

    def by_path(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> ServedKind | None:
        for served in self._by_path.values():
            if served.kind.kind == kind and served.kind.group == group and served.kind.version == version:
                return served
        return None

    def by_resource(self, group: str, plural: str) -> list[ServedKind]:
        """All served versions of one resource."""
        found = self._by_resource.get((group, plural))
        if found is None:
            found = [s for s in self._by_path.values() if s.kind.group == group and s.kind.plural == plural]
            if found:  # else whoever asks for what is not served would fill the memory
                self._by_resource[(group, plural)] = found
        return found

    def all(self) -> list[ServedKind]:
        return list(self._by_path.values())

    def groups(self) -> set[tuple[str, str]]:
        return {(served.kind.group, served.kind.version) for served in self._by_path.values()}

    def add(self, served: ServedKind) -> None:
        self._by_path[(served.kind.group, served.kind.version, served.kind.plural)] = served
        self._changed()

    def remove(self, group: str, version: str, plural: str) -> None:
        if self._by_path.pop((group, version, plural), None) is not None:
            self._changed()

    def observe(self, callback: Callable[[], None]) -> None:
        self._observers.append(callback)

    def _changed(self) -> None:
        self.generation += 1
        self._by_resource.clear()
        for callback in self._observers:
            callback()


class MadeOfKinds(Generic[Made]):
    """What is made of all kinds of a registry, and anew when they have changed: discovery, OpenAPI."""

    def __init__(self, make: Callable[[Registry], Made]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Registry, tuple[int, Made]] = WeakKeyDictionary()

    def __call__(self, registry: Registry) -> Made:
        known = self._made.get(registry)
        if known is None or known[0] != registry.generation:
            known = self._made[registry] = registry.generation, self._make(registry)
        return known[1]
