"""What a request is once it has been read: `Call` in, `Response` out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from danlu.embedded.apiserver.target import Target, target_of
from danlu.errors import BadRequest

if TYPE_CHECKING:
    from danlu.embedded.apiserver.auth.rbac import Decision
    from danlu.embedded.apiserver.served import ServedKind
    from danlu.embedded.apiserver.server import Server

MAX_BODY_BYTES = 3 * 1024 * 1024  # as Kubernetes
MOST_PARAMETERS = 10_000  # of a query; as Go


@dataclass(slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = field(default_factory=dict)
    # A start of this very process, which nobody can sign in as. Admission webhooks and policies are not asked: one that
    # refuses everything would keep the server from coming up, and so from ever being rid of it.
    starting: bool = False
    impersonator: User | None = None  # who asks as this one


class Query:
    """The query string. A name may stand several times; most readers want the first."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "", pairs: list[tuple[str, str]] | None = None) -> None:
        """Raises BadRequest, in Go's words, for more parameters than anybody sends."""
        self._values: dict[str, list[str]] = {}
        if text.count("&") >= MOST_PARAMETERS:
            raise BadRequest("number of URL query parameters exceeded limit")
        for name, value in pairs if pairs is not None else (parse_qsl(text, keep_blank_values=True) if text else ()):
            self._values.setdefault(name, []).append(value)

    def get(self, name: str, default: str = "") -> str:
        values = self._values.get(name)
        return values[0] if values else default

    def getall(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def pairs(self) -> list[tuple[str, str]]:
        return [(name, value) for name, values in self._values.items() for value in values]

    def __bool__(self) -> bool:
        return bool(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        """Kubernetes' idea of a boolean parameter: `?watch`, `watch=1`, and all else that is not "false" or 0."""
        values = self._values.get(name)
        return values is not None and values[0].lower() not in ("0", "false")

    def integer(self, name: str) -> int | None:
        text = self.get(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


@dataclass(slots=True)
class Call:
    """One request on its way through the server. What it is about is told by `target`, and by nothing else."""

    server: Server
    method: str
    path: InitVar[str]  # as it was sent
    query: Query
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    user: User
    served: ServedKind | None = None
    target: Target = field(init=False)
    warnings: list[str] = field(default_factory=list)
    peer: str = ""  # the address that it comes from
    decision: Decision | None = None  # of the authorizer
    in_process: bool = False  # from a part of this program, which may be given objects in place of bytes

    def __post_init__(self, path: str) -> None:
        self.target = target_of(self.method, path, self.query)

    @property
    def verb(self) -> str:
        return self.target.verb

    @property
    def namespace(self) -> str:
        # A cluster-scoped object has no namespace, also when its rights are those of one (namespaces/NAME).
        return self.target.namespace if self.served is None or self.served.kind.namespaced else ""

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def subresource(self) -> str:
        return self.target.subresource

    @property
    def dry_run(self) -> bool:
        """Whatever the value: `options.check` refuses all but All, and doing nothing is the safe reading of others."""
        return "dryRun" in self.query


@dataclass(slots=True)
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, obj: Any, status: int = 200) -> Response:
        return cls(status, orjson.dumps(obj))

    @classmethod
    def text(cls, text: str, status: int = 200) -> Response:
        return cls(status, text.encode(), "text/plain; charset=utf-8")


@dataclass(slots=True)
class StreamResponse:
    """A body that comes in pieces: watches, followed logs, proxied answers."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    events: AsyncIterator[list[tuple[str, Any]]] | None = None  # of a watch in this process, in place of chunks
    # Gives back what the chunks hold. A client may be gone before the first is asked for; then they cannot do it.
    release: Callable[[], None] = lambda: None
    # Set when the client has fallen so far behind that it is cut off: what waits for it is let go.
    overdue: asyncio.Event | None = None
