"""/k8s/…: the plain Kubernetes API for the pages, with a person's own identity.

What comes back may be anything: `pods/NAME/proxy` answers with whatever a program in a pod says. So the answer's
headers are chosen by us, it may set no cookie, and a browser that is made to show it as a page runs nothing of it.
"""

from __future__ import annotations

from danlu.console.asgi import Message, Receive, Scope, Send
from danlu.console.kubeapi import KubeApi
from danlu.console.sessions import Identity

PREFIX = "/k8s"
ANSWERED = frozenset(
    (b"content-type", b"content-length", b"content-encoding", b"content-disposition", b"vary", b"warning",
     b"retry-after", b"audit-id", b"accept-ranges", b"content-range")
)  # fmt: skip
INERT = [
    (b"cache-control", b"no-store"),  # what one person was told is not kept for the next at the same browser
    (b"content-security-policy", b"sandbox; default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


async def serve(api: KubeApi, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
    raw = scope["raw_path"][len(PREFIX) :]
    inner = {**scope, "path": scope["path"][len(PREFIX) :], "raw_path": raw}
    if scope["type"] == "websocket":
        await api.serve(inner, receive, send, identity)
        return

    async def send_inert(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name in ANSWERED]
            message = {**message, "headers": [*kept, *INERT]}
        await send(message)

    await api.serve(inner, receive, send_inert, identity)
