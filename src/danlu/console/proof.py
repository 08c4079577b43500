"""What a session's cookie is worth nothing without: a secret that only the console's own pages can read.

Cookies know no ports. A program on any other port of this host, a pod for instance, has the console's cookie sent to
it as soon as somebody's browser goes there, and no attribute of a cookie keeps it from that. What a browser does keep
apart by port is an origin's storage. So the pages make up a secret at each sign-in, keep it there, and show it with
every request: in a header, and with a WebSocket, which has none, among the protocols it offers. A session holds its
hash.

No form, image or foreign page can send it, so it is also what stands against forged requests (CSRF). And a cookie that
somebody else has put into the browser, of a session of their own, does not fit the secret that the pages show.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from danlu.console.asgi import HTTPConnection, is_websocket
from danlu.errors import BadRequest

HEADER = "x-danlu-proof"
PROTOCOL = "proof.danlu.dev."  # and the secret
_SECRET = re.compile(r"[A-Za-z0-9_-]{43,128}")  # at least 32 bytes as base64url


def hash_of_new(request: HTTPConnection) -> str:
    """Of the secret of a sign-in that begins. Raises BadRequest."""
    secret = _shown(request)
    if not _SECRET.fullmatch(secret):
        raise BadRequest("the header X-Danlu-Proof must hold a secret of this sign-in, 32 random bytes as base64url")
    return _hash(secret)


def fits(request: HTTPConnection, expected: str) -> bool:
    """Whether the request shows the secret with this hash: whoever comes with the cookie alone is nobody."""
    secret = _shown(request)
    return bool(secret) and hmac.compare_digest(_hash(secret), expected)


def _shown(request: HTTPConnection) -> str:
    if is_websocket(request):
        offered = request.scope.get("subprotocols") or ()
        return next((name[len(PROTOCOL) :] for name in offered if is_proof(name)), "")
    return request.headers.get(HEADER, "")


def is_proof(protocol: str) -> bool:
    """Of a name that a WebSocket offers: such a one is meant for us and nobody behind us."""
    return protocol.startswith(PROTOCOL)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("latin-1", "replace")).hexdigest()
