"""Who is signed in, kept in a sealed cookie that counts only together with a secret of the pages (`proof.py`).

Stateless, so that two replicas with the same key know the same people and a restart signs nobody out. The price is
that a single session cannot be revoked before its end; what counts, the token inside, is the cluster's to revoke.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from danlu.console.asgi import Cookies, Header
from danlu.console.sealedcookies import LongCookie, Sealer


@dataclass(frozen=True, slots=True)
class Identity:
    """As whom the API is asked: with this bearer token, or as the owner of the embedded cluster."""

    token: str = ""
    owner: bool = False
    renewal: str = ""  # the identity provider's refresh token, if it gave one
    renew_at: int = 0  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Session:
    identity: Identity
    expires: int  # seconds since 1970
    proof: str  # hash of the secret that requests have to show


class Sessions:
    def __init__(self, sealer: Sealer, url: str) -> None:
        self._sealer = sealer
        # Strict: no other site can make the browser send it, not even with a link. Cookies know no ports: two consoles
        # on one host must not overwrite each other's. __Host- also keeps sibling domains from setting ours.
        secure = url.startswith("https:")
        # A session is of one console at one address: what was sent to another port while that was ours opens nothing.
        self._purpose = f"session {url}"
        port = url.rpartition(":")[2].strip("/")
        name = "__Host-danlu-session" if secure else f"danlu-session-{port if port.isdigit() else 80}"
        self._cookie = LongCookie(name, "/", "strict", secure)

    def read(self, cookies: Cookies) -> list[Session]:
        """All that came: whose a request is, its proof says."""
        opened = (self._sealer.open(self._purpose, text) for text in self._cookie.readings(cookies))
        return [
            Session(Identity(**found["identity"]), found["expires"], found["proof"])
            for found in opened
            if found is not None and found["expires"] > time.time()
        ]

    def cookies_for(self, session: Session, had: Cookies) -> list[Header]:
        text = self._sealer.seal(self._purpose, asdict(session))
        return self._cookie.write(text, session.expires - int(time.time()), had)

    def no_cookies(self, had: Cookies) -> list[Header]:
        return self._cookie.remove(had)
