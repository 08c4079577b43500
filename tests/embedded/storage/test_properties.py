"""The store against a dictionary: random writes, deletes, restarts, crashes and watches come to the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from danlu.embedded.storage import SqliteJournal, Store, Subscription
from danlu.errors import Expired

names, namespaces = st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "n", "m"])
resources = st.sampled_from(["things", "others"])
Event = tuple[int, str, str, str, str]  # revision, type, namespace, name, value


class StoreMachine(RuleBasedStateMachine):
    """The model: what is there, by key, and every acknowledged change in order."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="danlu-store-"))
        self.loop = asyncio.new_event_loop()
        self.objects: dict[tuple[str, str, str], str] = {}
        self.history: list[tuple[str, Event]] = []
        self.watches: list[tuple[str, int, Subscription, list[Event]]] = []
        self.count = 0

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    async def _open(self, folder: Path) -> Store:
        store = Store(SqliteJournal(folder / "store.db"))
        store.start()
        return store

    @initialize()
    def begin(self) -> None:
        self.store = self.run(self._open(self.folder))

    # -- what happens

    def _obj(self, namespace: str, name: str, value: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": namespace, "uid": "u", "labels": {"v": value}}, "v": value}

    def _note(self, resource: str, type: str, namespace: str, name: str, value: str, revision: int) -> None:
        self.history.append((resource, (revision, type, namespace, name, value)))
        if type == "DELETED":
            del self.objects[(resource, namespace, name)]
        else:
            self.objects[(resource, namespace, name)] = value

    @rule(resource=resources, namespace=namespaces, name=names, size=st.sampled_from([0, 0, 0, 5000]))
    def put(self, resource: str, namespace: str, name: str, size: int) -> None:
        self.count += 1
        value = f"{self.count}" + "x" * size
        type = "MODIFIED" if (resource, namespace, name) in self.objects else "ADDED"

        async def write() -> int:
            return int((await self.store.put(resource, self._obj(namespace, name, value))).revision)

        self._note(resource, type, namespace, name, value, self.run(write()))

    @rule(resource=resources, namespace=namespaces, name=names)
    def delete(self, resource: str, namespace: str, name: str) -> None:
        value = self.objects.get((resource, namespace, name))
        if value is None:
            return

        async def write() -> int:
            return int((await self.store.delete(resource, self._obj(namespace, name, value))).revision)

        self._note(resource, "DELETED", namespace, name, value, self.run(write()))

    @rule(resource=resources, namespace=namespaces, count=st.integers(2, 8))
    def put_many(self, resource: str, namespace: str, count: int) -> None:
        """At once: they are committed together, and become visible in their order."""

        async def write() -> list[tuple[str, str, int]]:
            futures = []
            for number in range(count):
                self.count += 1
                name, value = "abc"[number % 3], str(self.count)
                futures.append((name, value, self.store.put(resource, self._obj(namespace, name, value))))
            return [(name, value, (await future).revision) for name, value, future in futures]

        for name, value, revision in self.run(write()):
            type = "MODIFIED" if (resource, namespace, name) in self.objects else "ADDED"
            self._note(resource, type, namespace, name, value, revision)

    # -- restarts

    def _forget_watches(self) -> None:
        self.watches = []

    @rule()
    def restart(self) -> None:
        async def again() -> Store:
            await self.store.close()
            return await self._open(self.folder)

        self._forget_watches()
        self.store = self.run(again())

    @rule()
    def crash(self) -> None:
        """What the disk has at this moment, without a word of farewell: a copy of the files is opened instead."""
        copy = Path(tempfile.mkdtemp(prefix="danlu-store-"))
        shutil.copytree(self.folder, copy, dirs_exist_ok=True)

        async def again() -> Store:
            found = await self._open(copy)
            await self.store.close()
            return found

        self._forget_watches()
        self.store = self.run(again())
        shutil.rmtree(self.folder)
        self.folder = copy

    # -- watches

    @rule(resource=resources, back=st.integers(0, 30))
    def watch(self, resource: str, back: int) -> None:
        since = max(1, self.store.revision - back)
        try:
            subscription = self.store.subscribe(resource, since)
        except Expired:
            return  # history is bounded; a gap would not be allowed
        missed = [event for kind, event in self.history if kind == resource and event[0] > since]
        self.watches.append((resource, len(self.history), subscription, missed))

    @rule()
    def read_watches(self) -> None:
        for number, (resource, seen, subscription, missed) in enumerate(self.watches):
            since = [event for kind, event in self.history[seen:] if kind == resource]
            expected = missed + since
            taken = self.run(subscription.take(5.0)) if expected else []
            told = [
                (one.revision, one.type, one.stored.namespace, one.stored.name, one.stored.obj["v"]) for one in taken
            ]
            assert told == expected
            self.watches[number] = (resource, len(self.history), subscription, [])

    # -- what always holds

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "store"):
            return
        for resource in ("things", "others"):
            wanted = sorted((key[1], key[2], value) for key, value in self.objects.items() if key[0] == resource)
            assert [(one.namespace, one.name, one.obj["v"]) for one in self.store.scan(resource)] == wanted
            assert self.store.count(resource) == len(wanted)
            for namespace in ("", "n", "m"):
                own = [one for one in wanted if one[0] == namespace]
                assert [(one.namespace, one.name, one.obj["v"]) for one in self.store.scan(resource, namespace)] == own
        if self.history:
            assert self.store.revision >= self.history[-1][1][0]
        revisions = [event[0] for _, event in self.history]
        assert revisions == sorted(set(revisions)), "a revision was given twice"

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    derandomize=True, deadline=None, database=None, max_examples=12, stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
