"""Which origin each app has.

Browsers part programs by origin and by nothing else: two apps below one host and port are one program to them, whatever
paths their cookies have, and the page of one could read and steer the other with the rights of whoever opened both. So
each has a host name of its own below the apps': `mine-3f2a91c07b6d.localhost:8081`. Browsers lead names below
`localhost` to this machine without being told; elsewhere a wildcard does it (`--apps-url https://*.apps.example.com`).

Where neither is there (`--apps-url` with a plain name), all apps share one origin.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from danlu.console.appnames import AppName
from danlu.console.asgi import Request
from danlu.console.guard import host_of

LOCAL = "localhost"
WILDCARD = "*."
LONGEST_WORD = 40  # of a label's 63 letters; the rest tells apart what begins alike


@dataclass(frozen=True, slots=True)
class AppOrigins:
    url: str  # of the apps, without a wildcard; also where an address without its app's own name arrives
    apart: bool

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def every(self) -> str:
        """Source expressions of a Content-Security-Policy."""
        return f"{self.url} {self._below('*')}" if self.apart else self.url

    def of(self, app: AppName, request: Request) -> str:
        return self._below(label(app)) if self.apart_for(request) else self.url

    def is_home(self, app: AppName, request: Request) -> bool:
        """Whether the app may be answered under the name by which it was asked for."""
        return not self.apart_for(request) or host_of(request) == f"{label(app)}.{self.host}"

    def is_sibling(self, request: Request) -> bool:
        """Whether that name is some app's own."""
        return self.apart and host_of(request).endswith(f".{self.host}")

    def apart_for(self, request: Request) -> bool:
        """Safari asks the system for names below `localhost`, and most systems have not heard of them."""
        if not self.apart or self.is_sibling(request):
            return self.apart
        agent = request.headers.get("user-agent", "")
        is_safari = "Safari/" in agent and "Chrome/" not in agent and "Chromium/" not in agent
        return not (self.host == LOCAL and is_safari)

    def _below(self, name: str) -> str:
        return self.url.replace("://", f"://{name}.", 1)


def origins(url: str) -> AppOrigins:
    """Of an apps' URL as people write it, with or without a wildcard."""
    plain = url.replace(f"://{WILDCARD}", "://", 1)
    return AppOrigins(plain, apart=plain != url or urlsplit(plain).hostname == LOCAL)


def label(app: AppName) -> str:
    word = re.sub("[^a-z0-9]+", "-", app.name)[:LONGEST_WORD].strip("-")
    return f"{word}-{hashlib.sha256(app.base.encode()).hexdigest()[:12]}"
