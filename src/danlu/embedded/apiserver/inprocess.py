"""The transport of the embedded mode: the same requests through the same pipeline, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from danlu.client.transport import Query as ClientQuery
from danlu.client.transport import TransportResponse
from danlu.embedded.apiserver.request import Call, Query, StreamResponse, User
from danlu.embedded.apiserver.server import Server


class InProcess:
    def __init__(self, server: Server, user: User) -> None:
        self._server = server
        self._user = user
        # Who changed what (managedFields) is told by the program's name, which here is the part's own.
        self._program = "kubelet" if user.name.startswith("system:node:") else user.name.rpartition(":")[2]

    async def request(
        self, method: str, path: str, query: ClientQuery, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse:
        lowered = {"user-agent": self._program, **{name.lower(): value for name, value in headers.items()}}
        call = Call(self._server, method, path, Query(pairs=list(query)), lowered, body, self._user, in_process=True)
        answer = await self._server.handle(call)
        if isinstance(answer, StreamResponse):
            return TransportResponse(answer.status, answer.headers, _chunks(answer.chunks), answer.events)
        return TransportResponse(answer.status, answer.headers, answer.body)

    async def close(self) -> None:
        """Nothing is held open between requests."""


async def _chunks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
