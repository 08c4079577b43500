"""Whether a request may be meant for us at all, before anybody asks who sent it.

- The Host header names us. A page of a foreign site whose name was pointed at our address (DNS rebinding) would
  otherwise be of our own origin in the browser's eyes.
- What the browser says of its origin is ours. Pages on another port of the same host, such as a notebook's, are of the
  same *site*: cookies and SameSite do not tell them from us, Origin and Sec-Fetch-Site do.

Both are what honest browsers say. Against whoever speaks without one, `proof.py` stands.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from danlu.console.asgi import HTTPConnection, is_websocket
from danlu.errors import Forbidden


class Guard:
    def __init__(self, url: str, names: Iterable[str] = (), *, below: bool = False) -> None:
        """`below`: names below the URL's are ours, too."""
        self._below = f".{urlsplit(url).hostname}" if below else ""
        self._names = {"localhost", urlsplit(url).hostname or "", *(name.lower() for name in names)}

    def check_host(self, request: HTTPConnection) -> None:
        host = host_of(request)
        if host in self._names or _is_address(host) or (self._below and host.endswith(self._below)):
            return
        raise Forbidden(
            f"this console is not known as {host or 'nothing at all'}; open it at the address that `danlu status` "
            "shows, or start it with --name HOST"
        )

    def check_origin(self, request: HTTPConnection) -> None:
        """For everything that is answered with a person's rights."""
        fetched_by = request.headers.get("sec-fetch-site", "none" if not is_websocket(request) else "same-origin")
        origin = request.headers.get("origin")
        if origin is None and is_websocket(request) and "sec-fetch-site" not in request.headers:
            return  # no browser: those always say where a WebSocket comes from
        same = origin is None or urlsplit(origin).netloc == request.headers.get("host")
        # "none" is a person who typed the address or opened a bookmark.
        if not same or fetched_by not in ("same-origin", "none"):
            raise Forbidden(f"a page of {origin or 'another site'} may not act for who is signed in here")


def host_of(request: HTTPConnection) -> str:
    """Without the port, in lower case."""
    host = request.headers.get("host", "").lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
