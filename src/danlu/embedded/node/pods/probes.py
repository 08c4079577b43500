"""Probes and the handlers that they share with lifecycle hooks: exec, httpGet, tcpSocket, grpc.

A handler answers (passed, what it said). Each probe of each running container is one task (`watch`), which reports
when the verdict changes; thresholds, delays and periods are those of the Kubernetes API.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from danlu.embedded.node.network.podsockets import ForeignSocket
from danlu.embedded.node.sandbox.processes import Container, Containers, ExecError, ExecSession, ProcessError
from danlu.meta.kind import Object

OUTPUT_LIMIT = 10 * 1024
GRPC_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GRPC_FRAME_BYTES = 16 * 1024  # what HTTP/2 allows before more has been agreed on


Connect = Callable[[str, int], Awaitable[socket.socket]]
"""To a port of an address; where that is the pod's own, to the pod or nobody. Raises OSError."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    passed: bool
    said: str = ""


class ProbeTarget(Protocol):
    """The container that is asked."""

    @property
    def containers(self) -> Containers: ...
    @property
    def container(self) -> Container: ...
    @property
    def address(self) -> str: ...
    @property
    def spec(self) -> Object: ...
    @property
    def connect(self) -> Connect: ...


async def ask(handler: Object, target: ProbeTarget, timeout: float) -> ProbeAnswer:
    """One question. What cannot be asked counts as failed."""
    try:
        if "exec" in handler:
            return await _exec(handler["exec"].get("command") or [], target, timeout)
        async with asyncio.timeout(timeout):
            if "httpGet" in handler:
                return await _http(handler["httpGet"], target)
            if "tcpSocket" in handler:
                return await _tcp(handler["tcpSocket"], target)
            if "grpc" in handler:
                return await _grpc(handler["grpc"], target)
            if "sleep" in handler:
                await asyncio.sleep(float(handler["sleep"].get("seconds") or 0))
    except TimeoutError:
        return ProbeAnswer(False, _timed_out(handler, target))
    return ProbeAnswer(True)


def port_number(port: int | str, container: Object) -> int:
    if isinstance(port, int):
        return port
    for entry in container.get("ports") or ():
        if entry.get("name") == port:
            return int(entry["containerPort"])
    return int(port)


def _timed_out(handler: Object, target: ProbeTarget) -> str:
    if "httpGet" in handler:
        problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return f'Get "{_url(handler["httpGet"], target)}": {problem}'
    return "context deadline exceeded"


async def _exec(command: list[str], target: ProbeTarget, timeout: float) -> ProbeAnswer:
    session: ExecSession | None = None
    try:
        async with asyncio.timeout(timeout):
            session = await target.containers.exec(target.container.id, command)
            output = await _output(session)
            code = await session.wait()
    except (ExecError, ProcessError) as error:
        return ProbeAnswer(False, str(error))
    except TimeoutError:
        if session is not None:
            session.kill()
        shown = " ".join(command)
        return ProbeAnswer(False, f'command timed out: "{shown}" timed out after {timeout:g}s')
    finally:
        if session is not None:
            session.close_fds()
            session.close()
    return ProbeAnswer(code == 0, output.decode(errors="replace"))


async def _output(session: ExecSession) -> bytes:
    """What both streams say, up to a limit, until they end."""
    loop = asyncio.get_running_loop()
    found = bytearray()

    async def drain(fd: int) -> None:
        ended = loop.create_future()
        os.set_blocking(fd, False)

        def read() -> None:
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                found.extend(data[: max(0, OUTPUT_LIMIT - len(found))])
            elif not ended.done():
                ended.set_result(None)

        loop.add_reader(fd, read)
        try:
            await ended
        finally:
            loop.remove_reader(fd)

    await asyncio.gather(drain(session.stdout_fd), drain(session.stderr_fd))
    return bytes(found)


def _url(settings: Object, target: ProbeTarget) -> str:
    host = settings.get("host") or target.address
    scheme = (settings.get("scheme") or "HTTP").lower()
    path = settings.get("path") or "/"
    return (
        f"{scheme}://{host}:{port_number(settings['port'], target.spec)}{path if path.startswith('/') else '/' + path}"
    )


async def _http(settings: Object, target: ProbeTarget) -> ProbeAnswer:
    host, port = settings.get("host") or target.address, port_number(settings["port"], target.spec)
    url = _url(settings, target)
    path = "/" + url.split("://", 1)[1].partition("/")[2]
    secure = (settings.get("scheme") or "HTTP") == "HTTPS"
    context = ssl._create_unverified_context() if secure else None
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
    headers |= {entry["name"]: entry.get("value", "") for entry in settings.get("httpHeaders") or ()}
    try:
        made = await target.connect(host, port)
        reader, writer = await asyncio.open_connection(sock=made, ssl=context, server_hostname=host if secure else None)
    except OSError as error:
        return ProbeAnswer(False, f'Get "{url}": {_refused(host, port, error)}')
    try:
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        first = (await reader.readline()).split()
        code = int(first[1]) if len(first) > 1 and re.fullmatch(rb"[0-9]{3}", first[1]) else 0
    except ValueError:  # a line longer than the reader's limit
        return ProbeAnswer(
            False, f'Get "{url}": net/http: HTTP/1.x transport connection broken: malformed HTTP response'
        )
    except OSError as error:
        return ProbeAnswer(False, f'Get "{url}": {error.strerror or error}')
    finally:
        writer.close()
    if not code:
        return ProbeAnswer(False, f'Get "{url}": EOF')
    if 200 <= code < 400:
        return ProbeAnswer(True)
    return ProbeAnswer(False, f"HTTP probe failed with statuscode: {code}")


def _refused(host: str, port: int, error: OSError) -> str:
    import errno

    if isinstance(error, ForeignSocket):
        return error.message
    known = {errno.ECONNREFUSED: "connect: connection refused", errno.EHOSTUNREACH: "connect: no route to host"}
    return f"dial tcp {host}:{port}: {known.get(error.errno or 0, (error.strerror or str(error)).lower())}"


async def _tcp(settings: Object, target: ProbeTarget) -> ProbeAnswer:
    host, port = settings.get("host") or target.address, port_number(settings["port"], target.spec)
    try:
        made = await target.connect(host, port)
    except OSError as error:
        return ProbeAnswer(False, _refused(host, port, error))
    made.close()
    return ProbeAnswer(True)


async def _grpc(settings: Object, target: ProbeTarget) -> ProbeAnswer:
    """grpc.health.v1.Health/Check: one request over HTTP/2, written by hand, with no header compressed."""
    host, port = target.address, int(settings["port"])
    service = (settings.get("service") or "").encode()
    try:
        reader, writer = await asyncio.open_connection(sock=await target.connect(host, port))
    except OSError as error:
        return ProbeAnswer(False, f'timeout: failed to connect service "{host}:{port}": {_refused(host, port, error)}')
    try:
        body = b"\x0a" + bytes([len(service)]) + service if service else b""
        message = b"\0" + len(body).to_bytes(4, "big") + body
        headers = {":method": "POST", ":scheme": "http", ":path": "/grpc.health.v1.Health/Check"}
        headers |= {":authority": f"{host}:{port}", "content-type": "application/grpc", "te": "trailers"}
        block = b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())
        writer.write(GRPC_PREFACE + _frame(4, 0, 0, b"") + _frame(1, 4, 1, block) + _frame(0, 1, 1, message))
        while True:
            head = await reader.readexactly(9)
            length = int.from_bytes(head[:3], "big")
            if length > GRPC_FRAME_BYTES:
                return ProbeAnswer(False, "error: health rpc failed: frame too large")
            payload = await reader.readexactly(length)
            kind, flags = head[3], head[4]
            if kind == 4 and not flags & 1:
                writer.write(_frame(4, 1, 0, b""))  # their settings are fine
            elif kind == 0 and len(payload) >= 7:
                status = payload[6]
                return ProbeAnswer(status == 1, "" if status == 1 else f"service unhealthy (responded with {status})")
            elif (kind == 1 and flags & 1) or kind in (3, 7):
                return ProbeAnswer(False, "error: health rpc failed")
    except (OSError, asyncio.IncompleteReadError):
        return ProbeAnswer(False, "error: health rpc failed: the connection was closed")
    finally:
        writer.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _text(text: str) -> bytes:
    raw = text.encode()
    return bytes([len(raw)]) + raw


async def watch(
    settings: Object,
    target: ProbeTarget,
    *,
    initially: bool,
    changed: Callable[[bool], None],
    failed: Callable[[str], None],
    once: bool = False,
) -> None:
    """Asks for ever. `changed` is told each verdict that differs from the last; `failed` each single failure.

    `once` (startup): ends with the first pass.
    """
    period = float(settings.get("periodSeconds") or 10)
    timeout = float(settings.get("timeoutSeconds") or 1)
    needed = {True: int(settings.get("successThreshold") or 1), False: int(settings.get("failureThreshold") or 3)}
    verdict, streak, last = initially, 0, initially
    await asyncio.sleep(float(settings.get("initialDelaySeconds") or 0))
    while True:
        began = asyncio.get_running_loop().time()
        answer = await ask(settings, target, timeout)
        streak = streak + 1 if answer.passed == last else 1
        last = answer.passed
        if not answer.passed:
            failed(answer.said)
        if answer.passed != verdict and streak >= needed[answer.passed]:
            verdict = answer.passed
            changed(verdict)
        if once and verdict:
            return
        # A failed startup or liveness probe says so again for as long as it fails: the container may be in its grace.
        if once and not answer.passed and streak >= needed[False]:
            changed(False)
        await asyncio.sleep(max(0.0, period - (asyncio.get_running_loop().time() - began)))
