"""Requests exactly as they are meant: nothing is made neat on the way, and whatever comes back is kept."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from dataclasses import dataclass
from typing import Any

REUSE_SECONDS = 1.0  # a connection that rested longer may be closed by the server at any moment
MOST_BYTES = 8 << 20
STREAM_SECONDS = 1.5  # watches and followed logs have no end of their own


@dataclass(slots=True)
class Answer:
    """`status` 0: none came; then `problem` says how the connection ended."""

    status: int = 0
    body: bytes = b""
    problem: str = ""  # "", "no answer in time" or "connection dropped: …"

    @property
    def documents(self) -> list[Any]:
        """The JSON in it: one document, or one per line of a watch."""
        try:
            return [json.loads(self.body)]
        except (ValueError, RecursionError):
            pass
        found = []
        for line in self.body.splitlines()[:2000]:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(line))
        return found


class Connection:
    def __init__(self, host: str, port: int, context: ssl.SSLContext, token: str = "") -> None:
        self.host, self.port, self.context, self.token = host, port, context, token
        self._open: http.client.HTTPSConnection | None = None
        self._used = 0.0

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        bound_s: float,
        stream: bool = False,
    ) -> Answer:
        if stream or time.monotonic() - self._used > REUSE_SECONDS:
            self.close()
        is_reused = self._open is not None
        if self._open is None:
            self._open = http.client.HTTPSConnection(self.host, self.port, context=self.context)
        connection = self._open
        connection.timeout = bound_s
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(bound_s)
            connection.putrequest(method, target.encode("latin-1", "replace").decode("latin-1"))
            given = {name.lower(): value for name, value in (headers or {}).items()}
            if self.token and "authorization" not in given:
                given["authorization"] = f"Bearer {self.token}"
            for name, value in given.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("content-length", str(len(body)))
            # A server may answer before it has read all, and close.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                connection.endheaders(body)
            answer = connection.getresponse()
            if stream:
                connection.sock and connection.sock.settimeout(STREAM_SECONDS)
            found = Answer(answer.status, _read(answer, stream))
            if stream or answer.will_close:
                self.close()
            self._used = time.monotonic()
            return found
        except TimeoutError:
            self.close()
            return Answer(problem="no answer in time")
        except http.client.ResponseNotReady as error:
            # Not sent: the server had closed the connection meanwhile, as it may. Any client tries on a new one.
            self.close()
            if is_reused:
                return self.send(method, target, body, headers, bound_s=bound_s, stream=stream)
            return Answer(problem=f"connection dropped: {type(error).__name__}: {error}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            return Answer(problem=f"connection dropped: {type(error).__name__}: {error}")


def _read(answer: http.client.HTTPResponse, stream: bool) -> bytes:
    if not stream:
        return answer.read(MOST_BYTES)
    found = b""
    ends = time.monotonic() + STREAM_SECONDS
    try:
        while len(found) < MOST_BYTES and time.monotonic() < ends and (piece := answer.read1(65536)):
            found += piece
    except (TimeoutError, http.client.HTTPException, OSError):
        pass
    return found
