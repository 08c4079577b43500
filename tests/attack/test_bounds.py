"""What one person can make the server hold, send, wait for or think about: all of it has an end."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from tests.attack.conftest import NewPerson, Person
from tests.attack.test_bodies import define

from danlu.client.client import Client
from danlu.embedded.apiserver import app, warnings
from danlu.embedded.apiserver.subresources import spdy
from danlu.embedded.cluster import Cluster
from danlu.embedded.storage import Stored
from danlu.embedded.storage.watchcache import MAX_LAG_BYTES, WINDOW_BYTES
from danlu.meta.kind import Kind
from danlu.meta.patch import strategic_merge_patch
from danlu.meta.wellknown import CONFIG_MAP
from danlu.net import connections, listener
from danlu.net.connections import Room
from danlu.net.listener import Listening, bind

CONFIG_MAPS = "/api/v1/namespaces/a/configmaps"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def config_map(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def answered(person: Person, method: str, path: str, body: bytes, **headers: str) -> tuple[int, list[str]]:
    """(status, Warning headers)"""
    sent = {"authorization": f"Bearer {person.token}", "content-type": "application/json", **headers}
    async with person.session.request(method, person.url + path, data=body, headers=sent) as answer:
        await answer.read()
        return answer.status, answer.headers.getall("warning", [])


# -- headers


@pytest.mark.parametrize("code", [0x00, 0x01, 0x07, 0x0A, 0x0D, 0x1B, 0x7F, 0x85, 0x2028])
async def test_a_control_character_in_an_unknown_field_costs_no_answer(code: int, new_person: NewPerson) -> None:
    mallory = await new_person()
    field = f"a\\u{code:04x}b".encode()
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"' + field + b'":1}'
    status, said = await answered(mallory, "POST", CONFIG_MAPS, body)
    assert status == 201
    assert len(said) == 1
    assert said[0].startswith('299 - "unknown field ')
    assert said[0].isprintable()
    assert (await mallory.request("GET", f"{CONFIG_MAPS}/c"))[0] == 200


async def test_warnings_cannot_make_new_headers(new_person: NewPerson) -> None:
    mallory = await new_person()
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"a\\r\\nset-cookie: x=y\\r\\n\\r\\n":1}'
    sent = {"authorization": f"Bearer {mallory.token}", "content-type": "application/json"}
    async with mallory.session.post(mallory.url + CONFIG_MAPS, data=body, headers=sent) as answer:
        assert answer.status == 201
        assert "set-cookie" not in answer.headers


async def test_warnings_are_as_long_as_in_kubernetes_at_the_most(new_person: NewPerson) -> None:
    mallory = await new_person()
    unknown = {f"{'x' * 2000}{n}": 1 for n in range(90)}
    status, said = await answered(mallory, "POST", CONFIG_MAPS, orjson.dumps(config_map() | unknown))
    assert status == 201
    assert 4 * 1024 <= len(", ".join(said)) < 6 * 1024


def test_the_warning_header() -> None:
    assert warnings.header([]) == ""
    assert warnings.header(['say "hi"\\', "b", "b"]) == r'299 - "say \"hi\"\\", 299 - "b"'
    assert warnings.header(["a\nb\x00\u2028é丹"]) == r'299 - "a\\nb\\x00\\u2028é丹"'


def test_what_others_chose_makes_no_new_headers() -> None:
    assert app.header_value(" text/html\r\nset-cookie: a=b\0") == b"text/html  set-cookie: a=b"
    assert app.header_value("\udcff丹\t") == b"\xff\xe4\xb8\xb9"


# -- clients that do not read


@asynccontextmanager
async def asking(person: Person, cluster: Cluster, path: str) -> AsyncIterator[asyncio.StreamReader]:
    """A connection over which one request was sent, by somebody who reads only what he asks for."""
    context = ssl.create_default_context(cafile=str(cluster.directory.certificates / "ca.crt"))
    host, port = cluster.url.removeprefix("https://").rsplit(":", 1)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=raw, ssl=context, server_hostname=host, limit=1024)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {person.token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    yield reader
    writer.transport.abort()


async def ends(reader: asyncio.StreamReader) -> int:
    """Bytes that still came before the connection was cut."""
    size = 0
    async with asyncio.timeout(30):
        try:
            while data := await reader.read(1 << 20):
                size += len(data)
        except OSError:
            pass
    return size


async def until(what: str, look: Any) -> None:
    for _ in range(100):
        if look():
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"waited in vain for {what}")


def held_bytes(resource: str) -> int:
    """Of all versions of objects of a resource that anything in this process still refers to."""
    gc.collect()
    found = {id(one): len(one.raw) for one in gc.get_objects() if type(one) is Stored and one.resource == resource}
    return sum(found.values())


def unsent_bytes(cluster: Cluster) -> int:
    assert cluster.listener is not None
    open_ones = cluster.listener._server.server_state.connections
    return sum(one.transport.get_write_buffer_size() for one in open_ones if not one.transport.is_closing())


async def test_a_watcher_that_never_reads_is_cut_off(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    big = "x" * 300_000
    window = cluster.store.watch_cache.window("configmaps")
    async with (
        asking(mallory, cluster, f"{CONFIG_MAPS}?watch=1") as one,
        asking(mallory, cluster, f"{CONFIG_MAPS}?watch=1&resourceVersion=0") as other,
    ):
        await until("both watches", lambda: len(window.watchers) >= 2)
        watching = {id(one) for one in window.watchers}
        most = unsent = 0
        obj = config_map(data={"k": big})
        obj["metadata"]["namespace"] = "a"
        obj = await client.create(CONFIG_MAP, obj)
        for number in range(400):  # 120 MB
            obj["data"]["n"] = str(number)
            obj["metadata"].pop("resourceVersion", None)
            obj = await client.update(CONFIG_MAP, obj)
            if number % 50 == 0:
                most, unsent = max(most, held_bytes("configmaps")), max(unsent, unsent_bytes(cluster))
        assert most < MAX_LAG_BYTES + WINDOW_BYTES + 8 * len(big)
        assert unsent < 2 * 1024 * 1024
        await until("them to be forgotten", lambda: not watching & {id(one) for one in window.watchers})
        await until("what was kept for them to go", lambda: held_bytes("configmaps") < WINDOW_BYTES + 4 * len(big))
        for reader in (one, other):
            assert await ends(reader) < 16 * 1024 * 1024  # what the kernel had taken over already
    status, _ = await mallory.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1")
    assert status == 200


async def test_an_answer_that_nobody_reads_is_not_kept(
    cluster: Cluster, client: Client, new_person: NewPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "STALLED_S", 1.0)
    mallory = await new_person()
    for number in range(40):
        obj = config_map(f"c{number}", data={"k": "x" * 800_000})
        obj["metadata"]["namespace"] = "a"
        await client.create(CONFIG_MAP, obj)
    assert cluster.listener is not None
    connections = cluster.listener._server.server_state.connections
    before = set(connections)
    async with asking(mallory, cluster, CONFIG_MAPS) as reader:
        assert unsent_bytes(cluster) < 4 * 1024 * 1024
        # Not only closing: that would wait until the client has read what it does not read.
        await until("the connection to be gone", lambda: set(connections) <= before)
        assert await ends(reader) < 8 * 1024 * 1024


# -- clients that do not write


@pytest.fixture
async def plain() -> AsyncIterator[Listening]:
    """A listener with few seats and a small application."""
    listener = bind("127.0.0.1", 0)
    served = Listening(_hello, listener, room=Room(16))
    await served.start()
    served.port = listener.getsockname()[1]  # type: ignore[attr-defined]
    yield served
    await served.stop()


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    if scope["path"] == "/wait":
        await receive()
        await receive()
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def opened(served: Listening) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", served.port)  # type: ignore[attr-defined]


async def cut(reader: asyncio.StreamReader) -> bytes:
    """What came before the server closed the connection."""
    said = b""
    async with asyncio.timeout(20):
        try:
            while data := await reader.read(1 << 16):
                said += data
        except ConnectionError:
            pass
    return said


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize("drip", [b"", b"GET / HTTP/1.1\r\nx: ", b"\r\n", REQUEST + b"\r\n", REQUEST + b"GET / HT"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    drip: bytes, plain: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when something comes all the time: bytes of one header, or empty lines, without end."""
    monkeypatch.setattr(listener, "HEAD_S", 0.5)
    reader, writer = await opened(plain)
    writer.write(drip)
    again = b"a" if b"x: " in drip else b"\r\n" if drip.endswith(b"\r\n") else b""

    async def keep_on() -> None:
        while not writer.is_closing():
            writer.write(again)
            await asyncio.sleep(0.05)

    dripping = asyncio.create_task(keep_on())
    said = await cut(reader)
    dripping.cancel()
    assert (b"200 OK" in said) is drip.startswith(REQUEST)
    await until("its seat to be free", lambda: len(plain.room) == 0)


async def test_a_handshake_that_does_not_come_is_not_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_S", 0.5)
    assert cluster.listener is not None
    host, port = cluster.url.removeprefix("https://").rsplit(":", 1)
    for sent in (b"", b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        await cut(reader)
        writer.close()
    await until("their seats to be free", lambda: len(cluster.listener.room) == 0)


async def test_a_body_that_does_not_come_is_not_waited_for(
    cluster: Cluster, new_person: NewPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "BODY_S", 0.5)
    mallory = await new_person()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    sent = {"authorization": f"Bearer {mallory.token}", "content-type": "application/json"}
    try:
        async with mallory.session.post(mallory.url + CONFIG_MAPS, data=endless(), headers=sent) as answer:
            assert answer.status == 504
            assert (await answer.json())["reason"] == "Timeout"
    except aiohttp.ClientError:
        pass  # the answer was overtaken by the end of the connection, which is as good


async def test_a_body_without_end_is_not_taken_in(new_person: NewPerson) -> None:
    mallory = await new_person()
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            yield b" " * (1 << 16)
            sent += 1 << 16

    headers = {"authorization": f"Bearer {mallory.token}", "content-type": "application/json"}
    try:
        async with mallory.session.post(mallory.url + CONFIG_MAPS, data=endless(), headers=headers) as answer:
            assert (answer.status, (await answer.json())["message"]) == (
                413,
                "Request entity too large: limit is 3145728",
            )
    except aiohttp.ClientError:
        pass  # the answer was overtaken by the end of the connection, which is as good
    assert sent < 64 * 1024 * 1024


@pytest.mark.parametrize(
    "head", [b"x: " + b"a" * (2 << 20), b"x: y\r\n" * 2000, b"x" * (2 << 20)], ids=["value", "number", "name"]
)
async def test_heads_have_a_size(head: bytes, plain: Listening) -> None:
    reader, writer = await opened(plain)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n\r\n")
    said = await cut(reader)
    assert said == b"" or said.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")), said[:100]
    writer.close()
    reader, writer = await opened(plain)
    writer.write(REQUEST)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


async def test_who_only_holds_connections_keeps_nobody_out(plain: Listening) -> None:
    held = [await opened(plain) for _ in range(100)]
    for _, writer in held[::2]:
        writer.write(b"GET / HTTP/1.1\r\nx: ")
    for _ in range(20):
        reader, writer = await opened(plain)
        writer.write(REQUEST)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
    assert len(plain.room) <= 16
    for _, writer in held:
        writer.close()


async def test_those_that_are_served_are_left_alone(plain: Listening) -> None:
    busy = [await opened(plain) for _ in range(15)]
    for _, writer in busy:
        writer.write(REQUEST.replace(b"/ ", b"/wait "))
    await until("all to be served", lambda: len(plain.room.waiting) == 0 and len(plain.room) == 15)
    for _ in range(30):  # one seat is left, which they take from each other
        reader, writer = await opened(plain)
        writer.write(REQUEST)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert all(not reader.at_eof() for reader, _ in busy)
    for _, writer in busy:
        writer.close()


async def test_pings_that_are_not_read_are_not_answered(plain: Listening) -> None:
    """Twenty megabytes of pings make as much of pongs, which would wait for a client who does not read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plain.port, limit=1024)  # type: ignore[attr-defined]
    key = (
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: "
        + "A" * 22
        + "=="
    )
    writer.write(f"GET / HTTP/1.1\r\nhost: x\r\n{key}\r\n\r\n".encode())
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    pings = (b"\x89\xfd\0\0\0\0" + b"x" * 125) * 8000
    for _ in range(20):  # more would take so long on a busy machine that the server's own ping goes unanswered
        writer.write(pings)
        async with asyncio.timeout(10):
            await writer.drain()
        held = [one.transport.get_write_buffer_size() for one in plain._server.server_state.connections]
        assert sum(held) < 4 * 1024 * 1024
    writer.transport.abort()


def test_seats_of_this_machine_are_kept_from_others() -> None:
    room = Room(64)
    far = [room.enter(f"10.0.0.{number % 200}") for number in range(200)]
    for seat in far:
        assert seat is not None
        seat.works()
    assert len(room) <= 56
    for _ in range(8):
        seat = room.enter("127.0.0.1")
        assert seat is not None
        seat.works()
    one = Room(64)
    crowd = [one.enter("10.0.0.1") for _ in range(50)]
    assert len(one) == 16
    assert crowd[-1] is not None


OUT_OF_DESCRIPTORS = """
import asyncio, resource
from danlu.net import listener
from danlu.net.listener import Listening, bind
listener.HEAD_S = 10000.0  # nobody goes by himself
def take_all():
    taken = []
    try:
        while True:
            taken.append(open("/dev/null"))
    except OSError:
        return taken
async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
async def main():
    listener = bind("127.0.0.1", 0)
    await Listening(hello, listener).start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    print(listener.getsockname()[1], flush=True)
    await asyncio.sleep(100)
asyncio.run(main())
"""


async def test_running_out_of_descriptors_is_survived() -> None:
    """A process that may have 40 descriptors, and 200 clients that hold theirs: the next one is answered."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", OUT_OF_DESCRIPTORS, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        said = b""
        for _ in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            said = await cut_soon(reader)
            writer.close()
            if said:
                break
        assert said.startswith(b"HTTP/1.1 200")
        assert process.returncode is None
        for _, writer in held:
            writer.close()
    finally:
        process.kill()
        await process.communicate()


async def test_who_finds_no_descriptor_is_told_so() -> None:
    """Files have them all, and no connection that could make room: a client is let go, and waits for no answer."""
    taken = OUT_OF_DESCRIPTORS.replace("    print(", "    taken = take_all()\n    print(")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", taken, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        assert await cut(reader) == b""
        assert process.returncode is None
        writer.close()
    finally:
        process.kill()
        await process.communicate()


async def cut_soon(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(5):
            return await reader.readline()
    except (OSError, TimeoutError):
        return b""


# -- objects that grow


async def test_copies_in_a_json_patch_are_bounded(new_person: NewPerson) -> None:
    """Each copies the whole data into itself: thirty of them would make a thousand million times as much."""
    mallory = await new_person()
    assert (await mallory.request("POST", CONFIG_MAPS, config_map(data={"a": "x" * 1000})))[0] == 201
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(30)]
    status, said = await mallory.request("PATCH", f"{CONFIG_MAPS}/c", doubling, JSON_PATCH)
    assert status == 422
    assert "Unable to complete the copy, the accumulated size increase of copy is" in said["message"]
    assert "exceeding the limit 3145728" in said["message"]
    many = [{"op": "copy", "from": "/data/a", "path": f"/data/k{number}"} for number in range(10_001)]
    status, said = await mallory.request("PATCH", f"{CONFIG_MAPS}/c", many, JSON_PATCH)
    assert status == 413
    assert said["message"] == "The allowed maximum operations in a JSON patch is 10000, got 10001"
    many = [{"op": "copy", "from": "/data/a", "path": f"/data/k{number}"} for number in range(9000)]
    status, said = await mallory.request("PATCH", f"{CONFIG_MAPS}/c", many, JSON_PATCH)
    assert (status, "accumulated size increase" in said["message"]) == (422, True)


async def test_an_object_cannot_grow_by_many_small_patches(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    assert (await mallory.request("POST", CONFIG_MAPS, config_map()))[0] == 201
    status, grown = 200, 0
    said: dict[str, Any] = {}
    for number in range(10):
        patch = {"metadata": {"finalizers": [f"a.example/{number}-{n}-{'x' * 40}" for n in range(5000)]}}
        status, said = await mallory.request(
            "PATCH", f"{CONFIG_MAPS}/c", patch, "application/strategic-merge-patch+json"
        )
        if status != 200:
            break
        grown += 1
    assert 0 < grown < 10
    assert (status, said["message"]) == (413, "Request entity too large: limit is 1572864")
    status, said = await mallory.request("GET", f"{CONFIG_MAPS}/c")
    assert len(orjson.dumps(said)) < 1572864


async def test_long_lists_merge_without_being_searched(cluster: Cluster) -> None:
    """As many as a body has room for. Searched for one by one, they would be compared for an hour."""
    served = cluster.server.registry.by_path("", "v1", "configmaps")
    assert served is not None
    numbers = range(40_000)
    owners, finalizers = [{"uid": f"a{n}"} for n in numbers], [f"a{n}" for n in numbers]
    there = {"metadata": {"ownerReferences": owners, "finalizers": finalizers}}
    order = [{"uid": f"b{n}"} for n in reversed(numbers)]
    patch = {"metadata": {"ownerReferences": [{"uid": f"b{n}"} for n in reversed(numbers)], "finalizers": ["b", "b"]}}
    patch["metadata"] |= {"$setElementOrder/ownerReferences": order}
    patch["metadata"] |= {"$deleteFromPrimitiveList/finalizers": finalizers}
    merged = strategic_merge_patch(there, patch, served.schema())["metadata"]
    assert len(merged["ownerReferences"]) == 80_000
    assert merged["finalizers"] == ["b"]


# -- patterns


EVIL = ["^(a+)+$", "^(a|aa)+$", "^(a*)*$", "^([a-z]+)*=$", "(.*a){20}b", "^(?:a?){40}a{40}b$"]


@pytest.mark.parametrize("pattern", EVIL)
async def test_patterns_do_not_backtrack(pattern: str, client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    spec = {"type": "string", "pattern": pattern}
    rule = {"type": "string", "x-kubernetes-validations": [{"rule": f"self.matches('{pattern}')"}]}
    schema = {"type": "object", "properties": {"spec": spec, "other": rule}}
    assert (await define(client, Kind("evil.example", "v1", "Evil", "evils"), schema))[0] == 201
    text = "a" * 5000 + "!"
    for field in ("spec", "other"):
        obj = {"apiVersion": "evil.example/v1", "kind": "Evil", "metadata": {"name": "x"}, field: text}
        status, said = await mallory.request("POST", "/apis/evil.example/v1/namespaces/a/evils", obj)
        assert status == 422, said


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)b", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"),
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("a{1,1001}", "error parsing regexp: invalid repeat count: `{1,1001}`"),
    ],
)
async def test_patterns_that_go_does_not_have_are_refused_with_the_definition(
    pattern: str, words: str, client: Client
) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "string", "pattern": pattern}}}
    status, said = await define(client, Kind("evil.example", "v1", "Evil", "evils"), schema)
    assert status == 422
    assert f"must be a valid regular expression, but isn't: {words}" in said


# -- SPDY


def _syn(number: int, blocks: spdy.HeaderBlocks, headers: dict[str, str]) -> bytes:
    body = struct.pack(">IIH", number, 0, 0) + blocks.pack(headers)
    return struct.pack(">HHI", 0x8003, spdy.SYN_STREAM, len(body)) + body


async def _nothing(_: bytes) -> None:
    pass


def _keeping(kept: list[spdy.Stream]) -> Callable[[spdy.Stream], bool]:
    def accept(stream: spdy.Stream) -> bool:
        kept.append(stream)
        return True

    return accept


async def test_spdy_streams_headers_and_frames_are_bounded() -> None:
    kept: list[spdy.Stream] = []
    connection, blocks = spdy.Connection(_nothing, _keeping(kept)), spdy.HeaderBlocks()
    opening = [_syn(number, blocks, {"streamtype": "error", "port": "80"}) for number in range(1, 5000, 2)]
    with pytest.raises(spdy.ProtocolError, match="more than 256 streams"):
        await connection.feed(b"".join(opening))
    bomb = _syn(1, spdy.HeaderBlocks(), {"a": "x" * (1 << 24)})
    assert len(bomb) < 1 << 16
    with pytest.raises(spdy.ProtocolError, match="a header block is longer than"):
        await spdy.Connection(_nothing, lambda stream: True).feed(bomb)
    with pytest.raises(spdy.ProtocolError, match="a frame is longer than"):
        await spdy.Connection(_nothing, lambda stream: True).feed(struct.pack(">II", 1, 0xFFFFFF))


async def test_what_waits_for_a_stream_is_bounded_in_bytes() -> None:
    kept: list[spdy.Stream] = []
    connection, blocks = spdy.Connection(_nothing, _keeping(kept)), spdy.HeaderBlocks()
    await connection.feed(_syn(1, blocks, {"streamtype": "data", "port": "80"}))
    chunk = struct.pack(">II", 1, 1 << 18) + b"x" * (1 << 18)
    feeding = asyncio.create_task(connection.feed(chunk * 64))
    await asyncio.sleep(0.5)
    assert not feeding.done()
    assert kept[0]._chunks._size <= (1 << 18) + spdy.QUEUED_BYTES + 1000
    assert len(await kept[0].read()) == 1 << 18
    feeding.cancel()
