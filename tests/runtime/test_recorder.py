"""Events: aggregated, bounded, and never in the caller's way."""

from __future__ import annotations

from typing import Any

import orjson

from danlu import errors
from danlu.meta.kind import Kind, Object
from danlu.meta.said import ANNOTATION, Said
from danlu.runtime.recorder import SPAM_BURST, EventRecorder

POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "4"},
}


class Server:
    """Stands in for the client: keeps events, counts patches."""

    def __init__(self) -> None:
        self.created: list[Object] = []
        self.patched: list[tuple[str, Object]] = []
        self.forgotten: set[str] = set()

    async def post(self, _kind: Kind, obj: Object, _namespace: str) -> None:
        self.created.append(obj)

    async def patch(self, _kind: Kind, name: str, _namespace: str, body: Object) -> Object:
        if name in self.forgotten:
            raise errors.NotFound("expired")
        self.patched.append((name, body))
        return {}


def recorder(server: Any) -> EventRecorder:
    return EventRecorder(server, "tester", "host-1")


async def flush(events: EventRecorder) -> None:
    await events.stop()


async def test_what_a_message_carries_goes_into_an_annotation() -> None:
    server = Server()
    events = recorder(server)
    causes = [{"code": "DL-OOM", "params": {"pod": "p", "limit": "220Mi"}}]
    events.warning(POD, "BackOff", Said("out of memory", causes))
    events.warning(POD, "Other", "a plain text")
    await flush(events)
    coded, plain = server.created
    assert orjson.loads(coded["metadata"]["annotations"][ANNOTATION]) == causes
    assert coded["message"] == "out of memory", "people read the same as ever"
    assert "annotations" not in plain["metadata"]
    events.warning(POD, "BackOff", Said("out of memory", causes))
    await flush(events)
    assert server.patched[0][1]["metadata"]["annotations"] == coded["metadata"]["annotations"]


async def test_the_shape_of_an_event() -> None:
    server = Server()
    events = recorder(server)
    events.event(POD, "Warning", "BackOff", "again", field_path="spec.containers{main}")
    await flush(events)
    (event,) = server.created
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("p.")
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "p",
        "uid": "u",
        "resourceVersion": "4",
        "fieldPath": "spec.containers{main}",
    }
    assert event["source"] == {"component": "tester", "host": "host-1"}
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "BackOff", 1)


async def test_the_same_event_again_raises_the_count() -> None:
    server = Server()
    events = recorder(server)
    events.normal(POD, "Pulled", "done")
    await flush(events)
    events.normal(POD, "Pulled", "done")
    await flush(events)
    assert len(server.created) == 1
    assert server.patched[0][1]["count"] == 2


async def test_repeats_in_the_buffer_are_one_write() -> None:
    server = Server()
    events = recorder(server)
    for _ in range(5):
        events.normal(POD, "Pulled", "done")
    await flush(events)
    assert [event["count"] for event in server.created] == [5]


async def test_an_expired_event_begins_anew() -> None:
    server = Server()
    events = recorder(server)
    events.normal(POD, "Pulled", "done")
    await flush(events)
    server.forgotten.add(server.created[0]["metadata"]["name"])
    events.normal(POD, "Pulled", "done")
    await flush(events)
    assert len(server.created) == 2


async def test_many_messages_of_one_reason_are_combined() -> None:
    server = Server()
    events = recorder(server)
    for n in range(12):
        events.warning(POD, "FailedCreate", f"number {n}")
    await flush(events)
    messages = [event["message"] for event in server.created]
    assert messages[:9] == [f"number {n}" for n in range(9)]
    assert messages[9].startswith("(combined from similar events): number")
    assert len(messages) == 10


async def test_spam_about_one_object_is_cut_off() -> None:
    server = Server()
    events = recorder(server)
    for n in range(SPAM_BURST + 20):
        events.normal(POD, f"Reason{n}", "text")
    other = {**POD, "metadata": {**POD["metadata"], "name": "q", "uid": "v"}}
    events.normal(other, "Fine", "text")
    await flush(events)
    assert len(server.created) == SPAM_BURST + 1


async def test_cluster_objects_have_their_events_in_default() -> None:
    server = Server()
    events = recorder(server)
    events.normal({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "Starting", "kubelet")
    await flush(events)
    assert server.created[0]["metadata"]["namespace"] == "default"
