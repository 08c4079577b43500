"""`pods/NAME/exec` and `pods/NAME/attach`: a program's streams over numbered WebSocket channels.

The answer to "how did it end" is a Status on the error channel; kubectl makes its own exit code of the ExitCode there.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.embedded.apiserver.subresources.nodestreams import (
    ERROR,
    RESIZE,
    STDIN,
    STDOUT,
    ByteQueue,
    NodeStreams,
    StreamSession,
    container_of,
    node_of,
    pod_of,
)
from danlu.embedded.apiserver.subresources.websocket import CLOSE_CHANNEL, Channels, Socket
from danlu.embedded.streamoptions import StreamOptions
from danlu.errors import ApiError, BadRequest
from danlu.meta.kind import Kind, Object
from danlu.meta.nesting import parse_json

PROTOCOLS = (
    "",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "v5.channel.k8s.io",
    "v5.base64.channel.k8s.io",
)
LAST_WORDS_SECONDS = 2.0  # for output that is still on its way when the program has ended


async def exec_stream(call: Call, scope: Any, receive: Any, send: Any) -> None:
    await _stream(call, Socket(scope, receive, send))


async def handle(call: Call) -> Response:
    """A request without WebSocket. Whatever is wrong with it is said first: kubectl tries this way second."""
    await _target(call)
    raise BadRequest(
        "Upgrade request required: this server speaks WebSocket (v5.channel.k8s.io, v4.channel.k8s.io), not SPDY"
    )


async def _target(call: Call) -> tuple[NodeStreams, Object, str]:
    """What can be said before the streams open is said here, as an HTTP error."""
    if not any(map(call.query.flag, ("stdin", "stdout", "stderr"))):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    if call.subresource == "exec" and not call.query.get("command"):
        raise BadRequest("you must specify at least one command for the container")
    pod = pod_of(call)
    container = container_of(pod, call.query.get("container"))
    node = node_of(call, pod)
    await node.check(pod, container)
    return node, pod, container


async def _stream(call: Call, socket: Socket) -> None:
    protocol = socket.choose(PROTOCOLS)
    node, pod, container = await _target(call)
    await socket.accept(protocol)
    channels = Channels(socket, protocol)
    await channels.send(STDOUT, b"")  # tells the client that the stream is open
    try:
        session = await _open(call, node, pod, container)
    except ApiError as error:  # from here on the client looks for words on the error channel
        await channels.send(ERROR, _encoded(error.status(), protocol))
        await socket.close()
        return
    try:
        await _carry(channels, session, protocol)
    finally:
        await session.close()


async def _open(call: Call, node: NodeStreams, pod: Object, container: str) -> StreamSession:
    wanted = StreamOptions(**{name: call.query.flag(name) for name in ("stdin", "stdout", "stderr", "tty")})
    if call.subresource == "attach":
        return await node.attach(pod, container, wanted)
    return await node.exec(pod, container, call.query.getall("command"), wanted)


async def _carry(channels: Channels, session: StreamSession, protocol: str) -> None:
    """Until the program ends or the client leaves, whichever is first."""
    coming = asyncio.create_task(_from_client(channels, session))
    going = asyncio.create_task(_to_client(channels, session))
    ending = asyncio.create_task(session.wait())
    try:
        await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            return
        await asyncio.wait({going, coming}, timeout=LAST_WORDS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        status = _status(ending)
        await channels.send(ERROR, _encoded(status, protocol))
        await channels.socket.close()
    finally:
        for task in (coming, going, ending):
            task.cancel()
        await asyncio.gather(coming, going, ending, return_exceptions=True)


async def _to_client(channels: Channels, session: StreamSession) -> None:
    async for channel, data in session.output():
        await channels.send(channel, data)


async def _from_client(channels: Channels, session: StreamSession) -> None:
    """Ends when the client leaves, which is noticed also while the program does not read its stdin."""
    typed = ByteQueue()  # beyond its bound the client waits for the program
    writing = asyncio.create_task(_to_stdin(typed, session))
    try:
        while (message := await channels.receive()) is not None:
            channel, data = message
            if channel == STDIN and data:
                await typed.put(data)
            elif channel == RESIZE:
                with suppress(KeyError, TypeError, ValueError, OSError):
                    size = parse_json(data)
                    session.resize(int(size["Width"]), int(size["Height"]))
            elif channel == CLOSE_CHANNEL and channels.can_close and data[:1] == bytes((STDIN,)):
                await typed.put(b"")
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def _to_stdin(typed: ByteQueue, session: StreamSession) -> None:
    """b"" is the end of input. What a program that has closed its stdin is sent goes nowhere."""
    while True:
        data = await typed.get()
        if not data:
            session.close_stdin()
        else:
            with suppress(OSError):
                await session.write(data)


def _status(ending: asyncio.Task[int]) -> dict[str, Any]:
    error = ending.exception()
    if isinstance(error, ApiError):
        return error.status()
    if error is not None:
        raise error
    code = ending.result()
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _encoded(status: dict[str, Any], protocol: str) -> bytes:
    if protocol.startswith(("v4.", "v5.")):
        return orjson.dumps(status)
    # The first version has plain words, and none when all went well.
    return str(status.get("message", "")).encode()


EXEC = Subresource(
    verbs=("create", "get"), kind=Kind("", "v1", "PodExecOptions", "pods"), handle=handle, stream=exec_stream
)
ATTACH = Subresource(
    verbs=("create", "get"), kind=Kind("", "v1", "PodAttachOptions", "pods"), handle=handle, stream=exec_stream
)
