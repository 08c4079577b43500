"""Which origin each app has.

Browsers part programs by origin and by nothing else: two apps below one host and port are one program to them, whatever
paths their cookies have, and the page of one could read and steer the other with the rights of whoever opened both. So
each has a host name of its own below the apps': `mine-3f2a….localhost:8081`. Browsers lead names below `localhost` to
this machine without being told; elsewhere a wildcard does it (`--apps-url https://*.apps.example.com`).

A host name is not parted by port where cookies are concerned: whoever knows it and has any port of the machine could
lead a browser there and be sent the app's cookie. An app's pages are not ours and show no proof (`proof.py`), so the
name itself is what nobody can know: it is made with the console's key for one app and one sign-in. It is told to the
browser that opens the app, and reaches that app's own program; it stands in no object of the cluster.

Where there is no wildcard (`--apps-url` with a plain name), all apps share one origin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from danlu.console.appnames import AppName
from danlu.console.asgi import HTTPConnection
from danlu.console.guard import host_of
from danlu.console.sealedcookies import Sealer
from danlu.console.sessions import Session

LOCAL = "localhost"
WILDCARD = "*."
SECRET_LETTERS = 32  # 128 bits
LONGEST_WORD = 63 - 1 - SECRET_LETTERS  # a label has at most 63 letters; a name that people recognise goes first


@dataclass(frozen=True, slots=True)
class AppOrigins:
    url: str  # of the apps, without a wildcard; also where an address without its app's own name arrives
    apart: bool

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def every(self) -> str:
        """Source expressions of a Content-Security-Policy."""
        return f"{self.url} {self.below('*')}" if self.apart else self.url

    def below(self, label: str) -> str:
        """The origin of one app; "": the one that all share."""
        return self.url.replace("://", f"://{label}.", 1) if label else self.url

    def label_in(self, request: HTTPConnection) -> str:
        """Of which app's own name the request's is; "" for none, and where all share one."""
        host, ending = host_of(request), f".{self.host}"
        return host.removesuffix(ending) if self.apart and host.endswith(ending) else ""


def origins(url: str) -> AppOrigins:
    """Of an apps' URL as people write it, with or without a wildcard."""
    plain = url.replace(f"://{WILDCARD}", "://", 1)
    return AppOrigins(plain, apart=plain != url or urlsplit(plain).hostname == LOCAL)


def label(sealer: Sealer, session: Session, app: AppName) -> str:
    """The same as long as the sign-in lasts, so that what an app's page keeps in the browser is there again."""
    word = re.sub("[^a-z0-9]+", "-", app.name)[:LONGEST_WORD].strip("-")
    return f"{word}-{sealer.code('app label', session.proof, app.base)[:SECRET_LETTERS]}"
