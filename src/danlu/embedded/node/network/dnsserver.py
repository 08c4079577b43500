"""The DNS server of pods: names of the cluster from `dnsrecords`, all others from the machine's own resolver.

It listens at the cluster IP of the service kube-dns, by UDP and TCP. For users who may not have port 53 that is a port
which the pods' shims lead to (`lowports`). What it holds at a time is bounded; what it cannot answer is SERVFAIL.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from danlu.embedded.node.network import dnsmessage
from danlu.embedded.node.network.dnsmessage import Code, DnsAnswer, DnsQuery, DnsRecord, Malformed, RecordType
from danlu.embedded.node.network.dnsrecords import TTL, Alias, ClusterRecords

log = logging.getLogger("danlu.dns")

PORT = 53
UPSTREAM_SECONDS, UPSTREAM_ROUNDS = 2.0, 2  # for each of the machine's servers; glibc waits 5 s for us, and asks twice
MOST_UPSTREAM = 1000  # questions that wait for the machine's servers
MOST_CONNECTIONS, IDLE_SECONDS = 200, 10.0  # by TCP
MOST_ALIASES = 8
LENGTH = struct.Struct("!H")  # before each message by TCP

Server = tuple[str, int]


class Resolver:
    """The machine's own DNS servers, as its resolv.conf names them at the time."""

    def __init__(self, servers: Callable[[], Sequence[Server]]) -> None:
        self._servers = servers

    async def ask(self, message: bytes, *, by_tcp: bool) -> bytes:
        """The answer to a question. Raises OSError when there is none."""
        for _ in range(UPSTREAM_ROUNDS):
            for server in self._servers():
                with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                    async with asyncio.timeout(UPSTREAM_SECONDS):
                        return await (_ask_by_tcp if by_tcp else _ask_by_udp)(server, message)
        raise TimeoutError("no server has answered")


async def _ask_by_udp(server: Server, message: bytes) -> bytes:
    """From a port of its own and with a number of its own: nobody else can guess what an answer must look like."""
    number = secrets.token_bytes(2)
    exchange = _Exchange(number + message[2:])
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: exchange, remote_addr=server)
    try:
        return message[:2] + (await exchange.answer)[2:]
    finally:
        transport.close()


class _Exchange(asyncio.DatagramProtocol):
    def __init__(self, message: bytes) -> None:
        self._message = message
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.DatagramTransport, transport).sendto(self._message)

    def datagram_received(self, data: bytes, _addr: Any) -> None:
        is_answer = len(data) >= dnsmessage.HEADER.size and data[2] & 0x80
        if is_answer and data[:2] == self._message[:2] and not self.answer.done():
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def _ask_by_tcp(server: Server, message: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(LENGTH.pack(len(message)) + message)
        return await reader.readexactly(LENGTH.unpack(await reader.readexactly(LENGTH.size))[0])
    finally:
        writer.close()


class DnsServer:
    def __init__(self, records: ClusterRecords, resolver: Resolver) -> None:
        self._records = records
        self._resolver = resolver
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None
        self._forwarded: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.StreamWriter] = set()

    async def listen(self, address: str, port: int) -> None:
        """Raises OSError when the port cannot be had."""
        loop = asyncio.get_running_loop()
        self._udp, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), (address, port))
        try:
            self._tcp = await asyncio.start_server(self._serve, address, port, limit=1 << 17)
        except OSError:
            self._udp.close()
            raise

    async def stop(self) -> None:
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()
        for writer in [*self._connections]:
            writer.close()
        for task in [*self._forwarded]:
            task.cancel()
        await asyncio.gather(*self._forwarded, return_exceptions=True)

    # -- datagrams

    def received(self, message: bytes, client: Any) -> None:
        """Names of the cluster are answered at once; others when the machine's servers have answered."""
        found = self._read(message)
        if isinstance(found, bytes):
            self._send(found, client)
            return
        answer = self._records.answer(found.question)
        if isinstance(answer, DnsAnswer):
            self._send(dnsmessage.write(found, answer, found.size), client)
            return
        if len(self._forwarded) >= MOST_UPSTREAM:
            self._send(dnsmessage.write(found, _FAILED, found.size), client)
            return

        async def forward() -> None:
            self._send(await self._elsewhere(found, message, answer, by_tcp=False), client)

        task = asyncio.create_task(forward())
        self._forwarded.add(task)
        task.add_done_callback(self._forwarded.discard)

    def _send(self, message: bytes, client: Any) -> None:
        if message and self._udp is not None and not self._udp.is_closing():
            self._udp.sendto(message, client)

    # -- connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(writer)
        try:
            while True:
                async with asyncio.timeout(IDLE_SECONDS):
                    length = LENGTH.unpack(await reader.readexactly(LENGTH.size))[0]
                    message = await reader.readexactly(length)
                answer = await self._answer(message)
                if not answer:
                    return
                writer.write(LENGTH.pack(len(answer)) + answer)
                async with asyncio.timeout(IDLE_SECONDS):
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, message: bytes) -> bytes:
        found = self._read(message)
        if isinstance(found, bytes):
            return found
        answer = self._records.answer(found.question)
        if isinstance(answer, DnsAnswer):
            return dnsmessage.write(found, answer)
        return await self._elsewhere(found, message, answer, by_tcp=True)

    # -- both

    def _read(self, message: bytes) -> DnsQuery | bytes:
        try:
            found = dnsmessage.read_query(message)
        except Malformed:
            return dnsmessage.write_error(message, Code.FORMERR)
        if found.flags & dnsmessage.OPCODE:
            return dnsmessage.write_error(message, Code.NOTIMP)
        return found

    async def _elsewhere(self, query: DnsQuery, message: bytes, alias: Alias | None, *, by_tcp: bool) -> bytes:
        size = 0 if by_tcp else query.size
        try:
            if alias is None:
                return await self._resolver.ask(message, by_tcp=by_tcp)
            return dnsmessage.write(query, await self._follow(query, alias), size)
        except (OSError, Malformed):
            return dnsmessage.write(query, _FAILED, size)

    async def _follow(self, query: DnsQuery, alias: Alias) -> DnsAnswer:
        """The alias and what it leads to, which may be an alias of the cluster again."""
        name, records = query.question.name, list[DnsRecord]()
        for _ in range(MOST_ALIASES):
            records.append(DnsRecord(name, RecordType.CNAME, TTL, dnsmessage.pack_name(alias.target)))
            if query.question.type == RecordType.CNAME:
                return DnsAnswer(records=records)
            name = alias.target
            found = self._records.answer(query.question._replace(name=name))
            if isinstance(found, DnsAnswer):
                return DnsAnswer(found.code, [*records, *found.records], found.authority)
            if found is None:
                asked = dnsmessage.write_query(0, name, query.question.type)
                code, more = dnsmessage.read_records(await self._resolver.ask(asked, by_tcp=False))
                return DnsAnswer(Code(code) if code in [*Code] else Code.SERVFAIL, [*records, *more])
            alias = found
        return _FAILED


_FAILED = DnsAnswer(Code.SERVFAIL, authoritative=False)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: DnsServer) -> None:
        self._server = server

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._server.received(data, addr)


class MachineServers:
    """The `nameserver` lines of a resolv.conf, read again when it changes; never our own address."""

    def __init__(self, path: Path = Path("/etc/resolv.conf"), own: Callable[[], str] = lambda: "") -> None:
        self._path = path
        self._own = own
        self._read: tuple[float, list[Server]] = (-1.0, [])

    def __call__(self) -> Sequence[Server]:
        try:
            changed = self._path.stat().st_mtime
            if changed != self._read[0]:
                words = [line.split() for line in self._path.read_text().splitlines()]
                self._read = changed, [(w[1], PORT) for w in words if len(w) > 1 and w[0] == "nameserver"]
        except (OSError, UnicodeDecodeError):
            return []
        return [server for server in self._read[1] if server[0] != self._own()]
