"""The cache's promises: never back in time, every change told once, own writes seen at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest

from danlu.client import Client, Informer, TransportResponse
from danlu.client.indexer import controller_uid
from danlu.client.transport import Query
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP


def config_map(name: str, version: int, uid: str = "", **data: str) -> Object:
    meta = {"namespace": "default", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


class Script:
    """A server that answers each list and each watch with what the test lays out."""

    def __init__(self) -> None:
        self.lists: list[tuple[list[Object], str]] = []
        self.watches: list[list[tuple[str, Object]]] = []
        self.since: list[str] = []
        self.asked = asyncio.Event()

    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        asked = dict(query)
        if "watch" not in asked:
            items, version = self.lists.pop(0)
            meta = {"resourceVersion": version}
            if "limit" in asked and self.lists:
                meta["continue"] = "more"
            return TransportResponse(200, {}, orjson.dumps({"metadata": meta, "items": items}))
        self.since.append(asked["resourceVersion"])
        if not self.watches:
            self.asked.set()
            return TransportResponse(200, {}, _forever())
        events = self.watches.pop(0)
        lines = [orjson.dumps({"type": type, "object": obj}) + b"\n" for type, obj in events]
        return TransportResponse(200, {}, _chunks(lines))

    async def close(self) -> None: ...


async def _chunks(lines: list[bytes]) -> AsyncIterator[bytes]:
    whole = b"".join(lines)
    for at in range(0, len(whole), 7):  # chunks split lines anywhere
        yield whole[at : at + 7]


async def _forever() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def heard(informer: Informer) -> list[tuple[str, str, str]]:
    events: list[tuple[str, str, str]] = []

    def note(type: str, obj: Object, _old: Object | None) -> None:
        events.append((type, obj["metadata"]["name"], obj["metadata"]["uid"]))

    informer.add_handler(note)
    return events


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def informer(request: pytest.FixtureRequest) -> Informer:
    return Informer(Client(Script()), CONFIG_MAP, packed=request.param)


async def test_list_then_watch_then_resume_where_it_stopped() -> None:
    script = Script()
    script.lists = [([config_map("a", 5)], "7")]
    script.watches = [[("ADDED", config_map("b", 8)), ("BOOKMARK", {"metadata": {"resourceVersion": "12"}})], []]
    informer = Informer(Client(script), CONFIG_MAP)
    events = heard(informer)
    informer.start()
    await asyncio.wait_for(script.asked.wait(), 5)
    await informer.stop()
    assert [event[:2] for event in events] == [("ADDED", "a"), ("ADDED", "b")]
    assert script.since == ["7", "12", "12"]


async def test_an_expired_watch_is_answered_by_a_new_list_whose_differences_are_told() -> None:
    script = Script()
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    script.lists = [
        ([config_map("a", 1), config_map("b", 2)], "2"),
        ([config_map("b", 9), config_map("c", 8)], "9"),
    ]
    script.watches = [[("ERROR", gone)]]
    informer = Informer(Client(script), CONFIG_MAP)
    events = heard(informer)
    informer.start()
    await asyncio.wait_for(script.asked.wait(), 5)
    await informer.stop()
    assert [event[:2] for event in events[2:]] == [("MODIFIED", "b"), ("ADDED", "c"), ("DELETED", "a")]
    assert {obj["metadata"]["name"] for obj in informer.list("default")} == {"b", "c"}


async def test_an_old_event_changes_nothing(informer: Informer) -> None:
    informer.replace([], "10")
    informer.record(config_map("a", 15, v="new"))
    events = heard(informer)
    informer._put(config_map("a", 12, v="old"))
    informer._put(config_map("a", 15, v="new"))
    cached = informer.get("default", "a")
    assert cached is not None
    assert cached["data"] == {"v": "new"}
    assert events == [("ADDED", "a", "uid-a")]


async def test_a_write_whose_end_was_already_told_does_not_come_back(informer: Informer) -> None:
    informer.replace([], "20")  # the watch is past version 15: whatever became of it was told
    informer.record(config_map("a", 15))
    assert informer.get("default", "a") is None


async def test_a_relist_keeps_newer_own_writes(informer: Informer) -> None:
    informer.replace([], "10")
    informer.record(config_map("mine", 12))
    informer.replace([], "11")
    assert informer.get("default", "mine") is not None
    informer.replace([], "12")
    assert informer.get("default", "mine") is None


async def test_a_reused_name_is_two_objects(informer: Informer) -> None:
    informer.replace([config_map("a", 1, uid="one")], "1")
    events = heard(informer)
    informer._put(config_map("a", 3, uid="two"))
    informer._remove(config_map("a", 2, uid="one"))
    assert events == [("ADDED", "a", "one"), ("DELETED", "a", "one"), ("ADDED", "a", "two")]
    assert informer.get("default", "a") is not None


async def test_a_granted_deletion_shows_at_once(informer: Informer) -> None:
    informer.replace([config_map("a", 1)], "1")
    informer.record_deletion({"metadata": {"namespace": "default", "name": "a", "uid": "uid-a"}})
    cached = informer.get("default", "a")
    assert cached is not None
    assert cached["metadata"]["deletionTimestamp"]
    informer.record_deletion({"metadata": {"namespace": "default", "name": "a", "uid": "another"}})


async def test_indexes_follow_changes(informer: Informer) -> None:
    informer.add_index("owner", controller_uid)
    owned = config_map("a", 1)
    owned["metadata"]["ownerReferences"] = [{"uid": "boss", "controller": True}, {"uid": "friend"}]
    informer.replace([owned], "1")
    assert informer.by_index("owner", "boss") == [owned]
    assert informer.by_index("owner", "friend") == []
    informer._put(config_map("a", 2))
    assert informer.index_values("owner") == []


async def test_a_broken_handler_does_not_stop_the_others(informer: Informer) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    informer.add_handler(broken)
    events = heard(informer)
    informer.replace([config_map("a", 1)], "1")
    assert len(events) == 1


async def test_an_unreachable_server_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("danlu.client.informer.FIRST_BACKOFF_S", 0.001)
    script = Script()  # no list laid out: the first answers fail
    informer = Informer(Client(script), CONFIG_MAP)
    informer.start()
    await asyncio.sleep(0.01)
    assert not informer.has_synced
    script.lists = [([config_map("a", 1)], "1")]
    await asyncio.wait_for(informer.synced(), 5)
    await informer.stop()


async def test_a_packed_cache_is_filled_page_by_page() -> None:
    script = Script()
    script.lists = [([config_map("a", 5)], "7"), ([config_map("b", 6)], "7")]
    informer = Informer(Client(script), CONFIG_MAP, packed=True)
    informer.replace([config_map("gone", 3)], "4")
    informer.resource_version = ""
    events = heard(informer)
    informer.start()
    await asyncio.wait_for(script.asked.wait(), 5)
    assert [obj["metadata"]["name"] for obj in informer.list()] == ["a", "b"]
    assert events[1:] == [("ADDED", "a", "uid-a"), ("ADDED", "b", "uid-b"), ("DELETED", "gone", "uid-gone")]
    assert script.since == ["7"]
    await informer.stop()
