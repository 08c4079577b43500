"""`Transport`: how one request reaches an API server: over HTTP(S), or in the same process without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

Query = Sequence[tuple[str, str]]


@dataclass(slots=True)
class TransportResponse:
    """`body` is an iterator when the answer is a stream (a watch, a followed log), else the whole of it.

    `events`: a watch whose server is in this process, as (type, object) in place of a body. The objects are shared.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    events: AsyncIterator[list[tuple[str, Any]]] | None = None


class Transport(Protocol):
    async def request(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes
    ) -> TransportResponse: ...

    async def close(self) -> None: ...


MAX_WAIT_S: ContextVar[float] = ContextVar("max_wait_s", default=0.0)
"""Seconds that the requests under way may wait for more urgent ones; a transport is free to send them at once."""


@contextmanager
def may_wait(seconds: float) -> Iterator[None]:
    token = MAX_WAIT_S.set(seconds)
    try:
        yield
    finally:
        MAX_WAIT_S.reset(token)


def asks_for_a_stream(query: Query) -> bool:
    """Whether a successful answer to this query has no end of its own."""
    return any(name in ("watch", "follow") and value in ("1", "true", "True", "") for name, value in query)
