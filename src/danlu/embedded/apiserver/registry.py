"""Which kinds are served, by path. Built-in ones are given at start; CRDs come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from danlu.embedded.apiserver.served import ServedKind


class Registry:
    def __init__(self, kinds: Iterable[ServedKind] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._observers: list[Callable[[], None]] = []
        self.generation = 0  # grows with every change; caches of discovery and OpenAPI compare it
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
        return [s for s in self._by_path.values() if s.kind.group == group and s.kind.plural == plural]

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
        for callback in self._observers:
            callback()
