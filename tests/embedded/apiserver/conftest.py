"""A real store over a journal that forgets: everything of the API server that needs no disk."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.request import User
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Store, Stored
from danlu.embedded.storage.watchcache import Change
from danlu.meta.kind import Kind, Object

_uids = itertools.count(1)


class MemoryJournal:
    def load(self) -> Iterator[Any]:
        return iter(())

    def forgotten(self) -> int:
        return 0

    def held(self) -> dict[tuple[str, str, str], str]:
        return {}

    def set_aside(self, stored: Stored, why: str) -> None:
        raise AssertionError(why)

    def start(self, done: Callable[[list[Change], Exception | None], None]) -> None:
        self.done = done

    def append(self, change: Change) -> None:
        self.done([change], None)

    def close(self) -> None:
        pass


class World:
    """A store with short ways to fill it, and to describe a write to it."""

    def __init__(self) -> None:
        self.store = Store(MemoryJournal())
        self.store.start()
        self.user = User("alice", "", ("dev", "system:authenticated"))

    def put(self, kind: Kind, name: str, namespace: str = "", **fields: Any) -> Object:
        meta = {"name": name, "uid": f"uid-{next(_uids)}", **fields.pop("metadata", {})}
        if namespace:
            meta["namespace"] = namespace
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}
        self.store.put(kind.resource, obj)
        return obj

    def delete(self, kind: Kind, obj: Object) -> None:
        self.store.delete(kind.resource, obj)

    def write(
        self, operation: str, kind: Kind, obj: Object | None, old: Object | None = None, **more: Any
    ) -> Attributes:
        subject = obj or old or {}
        meta = subject["metadata"]
        served = ServedKind(kind, schema=None, name_errors=lambda _n, _p: [])  # type: ignore[arg-type]
        user = more.pop("user", self.user)
        return Attributes(
            operation,
            served,
            meta.get("namespace", ""),
            meta.get("name", ""),
            more.pop("subresource", ""),
            obj,
            old,
            user,
            **more,
        )


@pytest.fixture
async def world() -> World:
    return World()


def pod(
    name: str = "p", namespace: str = "default", *, requests: Any = None, limits: Any = None, **spec: Any
) -> Object:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    container = {"name": "c", "image": "python", **({"resources": resources} if resources else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], **spec},
    }


@pytest.fixture
def make_pod() -> Callable[..., Object]:
    return pod
