"""What a request is once it has been read: `Call` in, `Response` out; and the shape of every API path."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

import orjson

from danlu.errors import BadRequest

if TYPE_CHECKING:
    from danlu.embedded.apiserver.served import ServedKind
    from danlu.embedded.apiserver.server import Server

MAX_BODY_BYTES = 3 * 1024 * 1024  # as Kubernetes


@dataclass(slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = field(default_factory=dict)
    # A start of this very process, which nobody can sign in as. Admission webhooks and policies are not asked: one that
    # refuses everything would keep the server from coming up, and so from ever being rid of it.
    starting: bool = False


class Query:
    """The query string. A name may stand several times; most readers want the first."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "", pairs: list[tuple[str, str]] | None = None) -> None:
        self._values: dict[str, list[str]] = {}
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
        """Go's idea of a boolean parameter: `?watch`, `watch=1`, `watch=true`."""
        values = self._values.get(name)
        return values is not None and values[0] not in ("0", "false", "False", "FALSE", "f", "F")

    def integer(self, name: str) -> int | None:
        text = self.get(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


@dataclass(slots=True)
class Route:
    """Which thing a path is about. `resource` is empty for paths such as /version."""

    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""  # what follows the subresource: proxy/REST


def parse_route(path: str) -> Route | None:
    """None when the path is not of the resource kind: /api/v1/…, /apis/GROUP/VERSION/…"""
    parts = path.strip("/").split("/")
    if "%" in path:
        # Each segment by itself: an escaped slash is part of a name (and makes it an invalid one), not of the path.
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) >= 3:
        route, rest = Route("", parts[1]), parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        route, rest = Route(parts[1], parts[2]), parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) >= 2:
        # namespaces/NAME, its own subresources, or what lies inside the namespace
        if len(rest) == 2 or (len(rest) == 3 and rest[2] in ("status", "finalize")):
            route.resource, route.name, route.namespace = "namespaces", rest[1], rest[1]
            route.subresource = rest[2] if len(rest) == 3 else ""
            return route
        route.namespace, rest = rest[1], rest[2:]
    route.resource = rest[0]
    if len(rest) > 1:
        route.name = rest[1]
    if len(rest) > 2:
        route.subresource = rest[2]
        route.rest = "/".join(rest[3:])
    return route


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


def verb_of(method: str, route: Route, query: Query) -> str:
    """The verb that rights are given for."""
    verb = VERBS.get(method, "")
    if verb == "get" and not route.name:
        return "watch" if query.flag("watch") else "list"
    if verb == "delete" and not route.name:
        return "deletecollection"
    return verb


@dataclass(slots=True)
class Call:
    """One request on its way through the server."""

    server: Server
    method: str
    path: str
    query: Query
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    user: User
    verb: str = ""
    served: ServedKind | None = None
    route: Route = field(default_factory=Route)
    warnings: list[str] = field(default_factory=list)
    peer: str = ""
    in_process: bool = False  # from a part of this program, which may be given objects in place of bytes

    @property
    def namespace(self) -> str:
        # A cluster-scoped object has no namespace, also when its path has one in it (namespaces/NAME).
        return self.route.namespace if self.served is None or self.served.kind.namespaced else ""

    @property
    def name(self) -> str:
        return self.route.name

    @property
    def subresource(self) -> str:
        return self.route.subresource

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
