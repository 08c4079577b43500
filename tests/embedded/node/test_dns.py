"""The names of a cluster, asked as clients ask: over UDP and TCP, and what comes from elsewhere."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.node.test_services import World, free_port

from danlu.embedded.node.network import dnsmessage
from danlu.embedded.node.network.dnsmessage import DnsAnswer, DnsRecord, Malformed, RecordType
from danlu.embedded.node.network.dnsrecords import ClusterRecords
from danlu.embedded.node.network.dnsserver import DnsServer, MachineServers, Resolver

HOST = "127.98.7.7"
NETWORKS = ("127.64.0.0/11", "127.96.0.0/12")


@pytest.fixture
def world() -> World:
    made = World()
    made.service("web", "127.96.3.1", 80, ("127.64.1.1", 8080))
    made.put("services", "out", spec={"type": "ExternalName", "externalName": "Example.com."})
    made.put("services", "in", spec={"type": "ExternalName", "externalName": "web.ns.svc.cluster.local"})
    made.put("services", "round", spec={"type": "ExternalName", "externalName": "round.ns.svc.cluster.local"})
    made.put("services", "empty", spec={"clusterIP": "None"})
    made.put("services", "peers", spec={"clusterIP": "None", "ports": [{"name": "rpc", "port": 9000}]})
    endpoints = [
        {"addresses": ["127.64.2.1"], "hostname": "p-0", "conditions": {"ready": True}},
        {"addresses": ["127.64.2.2"], "conditions": {"ready": True}},
        {"addresses": ["127.64.2.3"], "conditions": {"ready": False}},
    ]
    labels = {"kubernetes.io/service-name": "peers"}
    made.put("endpointslices", "peers", labels=labels, ports=[{"name": "rpc", "port": 9001}], endpoints=endpoints)
    return made


class Reply:
    def __init__(self, data: bytes) -> None:
        self.data = data
        id, self.flags, questions, self.answers, self.authorities, self.additional = struct.unpack_from("!6H", data)
        assert (id, questions) == (77, 1)
        self.code = self.flags & 15

    @property
    def addresses(self) -> list[str]:
        records = dnsmessage.read_records(self.data)[1]
        return sorted(socket.inet_ntoa(record.data) for record in records if record.type == RecordType.A)

    @property
    def is_no_such_name(self) -> bool:
        return (self.code, self.answers, self.authorities) == (3, 0, 1)

    @property
    def has_none_of_the_type(self) -> bool:
        return (self.code, self.answers, self.authorities) == (0, 0, 1)


async def exchange(message: bytes, port: int) -> bytes:
    def run() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            client.connect((HOST, port))
            client.send(message)
            return client.recv(65536)

    return await asyncio.to_thread(run)


async def exchange_by_tcp(port: int, *messages: bytes) -> list[bytes]:
    reader, writer = await asyncio.open_connection(HOST, port)
    found = []
    for message in messages:
        writer.write(struct.pack("!H", len(message)) + message)
        found.append(await reader.readexactly(struct.unpack("!H", await reader.readexactly(2))[0]))
    writer.close()
    return found


Ask = Callable[..., Any]


class Elsewhere(asyncio.DatagramProtocol):
    """The machine's own server: it knows example.com."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.silent = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.asked.append(data)
        if self.silent:
            return
        query = dnsmessage.read_query(data)
        known = query.question.name == "example.com" and query.question.type == RecordType.A
        records = [dnsmessage.address("example.com", "192.0.2.1", 60)] if known else []
        code = dnsmessage.Code.NOERROR if query.question.name == "example.com" else dnsmessage.Code.NXDOMAIN
        self.transport.sendto(b"\0\0" + bytes(10), addr)  # somebody's guess: neither the number nor an answer
        self.transport.sendto(dnsmessage.write(query, DnsAnswer(code, records, authoritative=False)), addr)


@pytest.fixture
async def elsewhere() -> AsyncIterator[tuple[Elsewhere, int]]:
    made, port = Elsewhere(), free_port()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: made, ("127.0.0.1", port))
    yield made, port
    transport.close()


@pytest.fixture
async def ask(world: World, elsewhere: tuple[Elsewhere, int]) -> AsyncIterator[Ask]:
    records = ClusterRecords(world.table, "cluster.local", NETWORKS)
    records.address = HOST
    server, port = DnsServer(records, Resolver(lambda: [("127.0.0.1", elsewhere[1])])), free_port()
    await server.listen(HOST, port)

    async def asking(name: str, kind: int = RecordType.A, *, tcp: bool = False, raw: bytes = b"") -> Reply:
        message = raw or dnsmessage.write_query(77, name, kind)
        return Reply((await exchange_by_tcp(port, message))[0] if tcp else await exchange(message, port))

    asking.port = port  # type: ignore[attr-defined]
    yield asking
    await server.stop()


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web.ns.svc.cluster.local", ["127.96.3.1"]),
        ("WEB.ns.SVC.cluster.local", ["127.96.3.1"]),
        ("peers.ns.svc.cluster.local", ["127.64.2.1", "127.64.2.2"]),
        ("p-0.peers.ns.svc.cluster.local", ["127.64.2.1"]),
        ("127-64-2-2.peers.ns.svc.cluster.local", ["127.64.2.2"]),
        ("127-64-2-2.ns.pod.cluster.local", ["127.64.2.2"]),
        ("in.ns.svc.cluster.local", ["127.96.3.1"]),
        ("out.ns.svc.cluster.local", ["192.0.2.1"]),
        ("ns.dns.cluster.local", [HOST]),
    ],
)
async def test_addresses(ask: Ask, name: str, expected: list[str], tcp: bool) -> None:
    found = await ask(name, tcp=tcp)
    assert (found.code, found.addresses) == (0, expected)


MISSING = ["no.ns.svc", "web.no.svc", "no.web.ns.svc", "empty.ns.svc", "no.svc", "x", "a.b.c.d.e.svc"]
WITHOUT = (
    ("web.ns.svc.", RecordType.AAAA),
    ("web.ns.svc.", RecordType.TXT),
    ("ns.svc.", RecordType.A),
    ("svc.", RecordType.A),
    ("", RecordType.A),
)


async def test_what_is_not_there(ask: Ask) -> None:
    for name in MISSING:
        assert (await ask(f"{name}.cluster.local")).is_no_such_name, name
    assert (await ask("1.7.64.127.in-addr.arpa", RecordType.PTR)).is_no_such_name
    for name, kind in WITHOUT:
        assert (await ask(f"{name}cluster.local", kind)).has_none_of_the_type, name


async def test_services_of_a_name(ask: Ask) -> None:
    found = await ask("_main._tcp.web.ns.svc.cluster.local", RecordType.SRV)
    assert (found.answers, found.additional) == (1, 1)
    assert struct.pack("!HHH", 0, 100, 80) + dnsmessage.pack_name("web.ns.svc.cluster.local") in found.data
    found = await ask("_rpc._tcp.peers.ns.svc.cluster.local", RecordType.SRV)
    assert (found.answers, found.additional) == (2, 2)
    assert struct.pack("!HHH", 0, 50, 9001) + dnsmessage.pack_name("p-0.peers.ns.svc.cluster.local") in found.data
    assert dnsmessage.pack_name("127-64-2-2.peers.ns.svc.cluster.local") in found.data
    assert (await ask("web.ns.svc.cluster.local", RecordType.SRV)).answers == 1
    assert (await ask("_no._tcp.web.ns.svc.cluster.local", RecordType.SRV)).is_no_such_name


async def test_names_of_addresses(ask: Ask) -> None:
    for address, name in (("127.96.3.1", "web"), ("127.64.2.1", "p-0.peers"), ("127.64.2.2", "127-64-2-2.peers")):
        found = await ask(".".join(reversed(address.split("."))) + ".in-addr.arpa", RecordType.PTR)
        assert found.answers == 1
        assert dnsmessage.pack_name(f"{name}.ns.svc.cluster.local") in found.data


async def test_names_of_others_come_from_the_machines_server(ask: Ask, elsewhere: tuple[Elsewhere, int]) -> None:
    assert (await ask("example.com")).addresses == ["192.0.2.1"]
    assert (await ask("no.example.com")).code == 3
    assert (await ask("out.ns.svc.cluster.local", RecordType.AAAA)).code == 0
    numbers = {message[:2] for message in elsewhere[0].asked}
    assert b"\x00M" not in numbers, "a number of its own, which nobody can guess"
    assert (await ask("round.ns.svc.cluster.local")).code == 2
    await ask("web.ns.svc.cluster.local")
    assert all(b"cluster" not in message for message in elsewhere[0].asked)


async def test_no_answer_from_the_machines_server(
    ask: Ask, elsewhere: tuple[Elsewhere, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("danlu.embedded.node.network.dnsserver.UPSTREAM_SECONDS", 0.01)
    elsewhere[0].silent = True
    assert (await ask("example.com")).code == 2
    assert (await ask("out.ns.svc.cluster.local")).code == 2
    assert (await ask("web.ns.svc.cluster.local")).addresses == ["127.96.3.1"]
    assert (await ask("example.com", tcp=True)).code == 2  # nobody listens there


async def test_what_does_not_fit_is_cut_off_and_comes_by_tcp(ask: Ask, world: World) -> None:
    endpoints = [{"addresses": [f"127.64.9.{n}"], "conditions": {"ready": True}} for n in range(1, 101)]
    world.put("services", "many", spec={"clusterIP": "None"})
    world.put("endpointslices", "many", labels={"kubernetes.io/service-name": "many"}, endpoints=endpoints)
    name = "many.ns.svc.cluster.local"
    cut = await ask(name)
    assert cut.flags & dnsmessage.TRUNCATED
    assert len(cut.data) <= 512
    whole = await ask(name, tcp=True)
    assert not whole.flags & dnsmessage.TRUNCATED
    assert len(whole.addresses) == 100
    question = dnsmessage.write_query(77, name, RecordType.A)
    extended = question[:10] + b"\0\1" + question[12:] + b"\0" + struct.pack("!HHIH", RecordType.OPT, 4096, 0, 0)
    found = await ask("", raw=extended)
    assert len(found.addresses) == 100
    assert found.additional == 1


async def test_several_questions_on_one_connection(ask: Ask) -> None:
    messages = [dnsmessage.write_query(77, name, RecordType.A) for name in ("web.ns.svc.cluster.local", "example.org")]
    found = await exchange_by_tcp(ask.port, messages[0], messages[0])  # type: ignore[attr-defined]
    assert [Reply(data).addresses for data in found] == [["127.96.3.1"]] * 2


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (struct.pack("!6H", 77, 0, 0, 0, 0, 0), 1),
        (struct.pack("!6H", 77, 0, 1, 0, 0, 0) + b"\x3fx", 1),
        (struct.pack("!6H", 77, 0, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", 1),
        (struct.pack("!6H", 77, 0x2800, 1, 0, 0, 0) + b"\0\0\1\0\1", 4),
        (struct.pack("!6H", 77, 0, 1, 0, 0, 1) + b"\0\0\1\0\1\0", 1),
    ],
)
async def test_what_is_no_question(ask: Ask, message: bytes, code: int) -> None:
    answer = await exchange(message, ask.port)  # type: ignore[attr-defined]
    assert struct.unpack_from("!HH", answer)[1] & 15 == code
    assert (await ask("web.ns.svc.cluster.local")).addresses == ["127.96.3.1"]


def test_bytes_of_any_kind_are_malformed_or_read() -> None:
    good = dnsmessage.write(
        dnsmessage.read_query(dnsmessage.write_query(1, "a.b", RecordType.A)),
        DnsAnswer(records=[DnsRecord("c.d", RecordType.CNAME, 1, dnsmessage.pack_name("e.f"))]),
    )
    for place in range(len(good)):
        for value in (0, 0xC0, 0xFF, place):
            changed = good[:place] + bytes([value]) + good[place + 1 :]
            for read in (dnsmessage.read_query, dnsmessage.read_records):
                for message in (changed, changed[:place]):
                    try:
                        read(message)
                    except Malformed:
                        continue


def test_the_machines_servers_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    servers = MachineServers(path, lambda: "10.0.0.2")
    assert servers() == []
    path.write_text("# x\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nsearch lan\n")
    assert servers() == [("10.0.0.1", 53)]
