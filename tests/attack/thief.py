"""A program on another port of the machine, as a pod has it: it leads a browser on, and keeps what it is sent."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

# The first hop may come from another site, and brings no strict cookie along; the second is the page's own.
FIRST_HOP = "<!doctype html><title>a</title><script>location.href = '/b' + location.search</script>"
SECOND_HOP = "<!doctype html><title>caught</title>"
WORKER_PAGE = """<!doctype html><title>squatter</title><script>
navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)
  .then(() => { document.title = 'planted' })</script>"""
WORKER = """self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))
self.addEventListener('fetch', (event) => event.respondWith(
  new Response('<!doctype html><title>hostile</title>', { headers: { 'content-type': 'text/html' } })))"""


@dataclass
class Thief:
    """`Host` and headers of every request, as they came."""

    port: int
    got: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    plants: list[str] = field(default_factory=list)  # Set-Cookie headers that it answers with

    def cookies(self) -> set[str]:
        """Whole Cookie headers."""
        return {headers["cookie"] for _, headers in self.got if headers.get("cookie")}


class _Handler(BaseHTTPRequestHandler):
    thief: Thief

    def do_GET(self) -> None:
        self.thief.got.append(
            (self.headers.get("host", ""), {name.lower(): value for name, value in self.headers.items()})
        )
        path = urlsplit(self.path).path
        kind = "text/javascript" if path == "/worker.js" else "text/html; charset=utf-8"
        pages = {"/a": FIRST_HOP, "/plant-worker": WORKER_PAGE, "/worker.js": WORKER}
        body = pages.get(path, SECOND_HOP).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for cookie in self.thief.plants:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


class _V6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def thief(port: int = 0) -> Iterator[Thief]:
    """On both loopback addresses, where each name below `localhost` may lead."""
    handler: Any = type("Handler", (_Handler,), {})
    servers = [ThreadingHTTPServer(("127.0.0.1", port), handler)]
    handler.thief = Thief(servers[0].server_address[1])
    with suppress(OSError):  # a machine without IPv6
        servers.append(_V6(("::1", handler.thief.port), handler))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield handler.thief
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.headers.get("location", "")).query)


def send(method: str, url: str, headers: Mapping[str, str], body: str | None = None) -> Answer:
    """With these headers and no others, `Host` included; to this machine, whatever the name. Follows nothing."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 80, timeout=30)
    try:
        connection.request(
            method,
            parts.path + (f"?{parts.query}" if parts.query else ""),
            body,
            {"host": parts.netloc, **headers},
        )
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        text = "" if answer.status == 101 else answer.read().decode(errors="replace")
        return Answer(answer.status, found, text)
    finally:
        connection.close()


UPGRADE = {
    "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
