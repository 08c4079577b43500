"""`pods|services|nodes/NAME/proxy/PATH`: HTTP and WebSocket through the API server to what runs in the cluster.

NAME may be `[SCHEME:]NAME[:PORT]`. Who asks is known to the API server and stays its secret: neither the token nor the
client's host is passed on. What is passed on may be secret, too (a program's token): connections are made by
`Server.connect`, which sees to it that the pod is what answers at its address.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from danlu.embedded.apiserver.request import Call, Response, StreamResponse
from danlu.embedded.apiserver.served import Subresource
from danlu.embedded.apiserver.subresources import nodepages
from danlu.embedded.apiserver.subresources.nodestreams import plain_words
from danlu.embedded.apiserver.subresources.websocket import NORMAL, Socket
from danlu.errors import BadRequest, NotFound, ServiceUnavailable
from danlu.meta.kind import Kind, Object
from danlu.net import websockets

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

NOT_PASSED_ON = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
     "upgrade", "host", "authorization", "content-length", "sec-websocket-key", "sec-websocket-version",
     "sec-websocket-extensions", "sec-websocket-protocol", "sec-websocket-accept")
)  # fmt: skip
CHUNK = 256 * 1024
MESSAGE_BYTES = 64 * 1024 * 1024  # of a WebSocket message that a program in a pod sends; pictures are large
CONNECT_SECONDS = 10.0
SERVICE_NAME_LABEL = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    scheme: str
    addresses: tuple[str, ...]  # tried in this order
    port: int
    pod_uid: str = ""  # the pod that is meant, where it is known


async def handle(call: Call) -> Response | StreamResponse:
    prefix, path = call.target.before, call.target.below
    if call.target.resource == "nodes":
        return await nodepages.answer(call, path)
    target = _target(call)
    if not path:
        if call.method in ("GET", "HEAD"):
            return Response(301, b"", "text/plain", {"location": f"{prefix}/{_query(call)}"})
        path = "/"
    answer, client = await _ask(call, target, path + _query(call))
    headers = _answer_headers(answer, prefix, target)
    kind = headers.pop("content-type", "application/octet-stream")
    if call.method == "HEAD":
        answer.release()
        await client.close()
        return Response(answer.status, b"", kind, headers)
    return StreamResponse(_body(answer, client), answer.status, kind, headers)


async def stream(call: Call, scope: Any, receive: Any, send: Any) -> None:
    import aiohttp

    prefix, path = call.target.before, call.target.below
    target = _target(call)
    browser = Socket(scope, receive, send)
    headers = _request_headers(call, prefix)
    async with _client(call, target) as client:
        try:
            # The backend is asked first: its choice of protocol is ours, and its refusal, too.
            upstream = await client.ws_connect(
                _url(target, f"{path or '/'}{_query(call)}"),
                protocols=browser.offered,
                headers=headers,
                max_msg_size=MESSAGE_BYTES,
                autoping=True,
            )
        except aiohttp.ClientError as error:
            raise _unreached(target, error) from error
        async with upstream:
            await browser.accept(upstream.protocol or "")
            coming = asyncio.create_task(websockets.forward(receive, upstream))
            going = asyncio.create_task(_to_client(upstream, browser))
            try:
                await asyncio.wait({coming, going}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (coming, going):
                    task.cancel()
                await asyncio.gather(coming, going, return_exceptions=True)
            code = upstream.close_code or NORMAL
            await browser.close(code if code in (NORMAL, 1001, 1002, 1003) or code >= 3000 else NORMAL)


async def _to_client(upstream: aiohttp.ClientWebSocketResponse, browser: Socket) -> None:
    import aiohttp

    async for message in upstream:
        if message.type == aiohttp.WSMsgType.BINARY:
            await browser.send(message.data)
        elif message.type == aiohttp.WSMsgType.TEXT:
            await browser.send_text(message.data)


# -- where to


def _target(call: Call) -> ProxyTarget:
    scheme, name, port = _split_name(call.name)
    return _service(call, scheme, name, port) if call.target.resource == "services" else _pod(call, scheme, name, port)


def _split_name(text: str) -> tuple[str, str, str]:
    """`[SCHEME:]NAME[:PORT]`; two parts are a name and a port unless the first is a scheme."""
    parts = text.split(":")
    match parts:
        case [name]:
            return "http", name, ""
        case [scheme, name] if scheme in ("http", "https"):
            return scheme, name, ""
        case [name, port]:
            return "http", name, port
        case [scheme, name, port] if scheme in ("http", "https", ""):
            return scheme or "http", name, port
    raise BadRequest(f'invalid request "{text}"')


def _pod(call: Call, scheme: str, name: str, port: str) -> ProxyTarget:
    stored = call.server.store.get("pods", call.namespace, name)
    if stored is None:
        raise NotFound.of("pods", name)
    pod = stored.obj
    ports = [p for container in pod["spec"].get("containers") or [] for p in container.get("ports") or []]
    if not port:
        number = int(ports[0]["containerPort"]) if ports else 80
    elif port.isdigit() and 0 < int(port) < 65536:
        number = int(port)
    else:
        number = next((int(p["containerPort"]) for p in ports if p.get("name") == port), 0)
        if not number:
            raise BadRequest(f'invalid pod request "{call.name}"')
    address = pod.get("status", {}).get("podIP")
    if not address:
        raise BadRequest("address not allowed")
    return ProxyTarget(scheme, tuple(dict.fromkeys((address, "127.0.0.1"))), number, pod["metadata"]["uid"])


def _service(call: Call, scheme: str, name: str, port: str) -> ProxyTarget:
    stored = call.server.store.get("services", call.namespace, name)
    if stored is None:
        raise NotFound.of("services", name)
    ports = stored.obj["spec"].get("ports") or []
    wanted = port
    if port.isdigit():
        chosen = next((p for p in ports if str(p["port"]) == port), None)
        if chosen is None:
            raise ServiceUnavailable(f'no service port {port} found for service "{name}"')
        wanted = chosen.get("name", "")
    elif port and not any(p.get("name") == port for p in ports):
        raise ServiceUnavailable(f'no service port "{port}" found for service "{name}"')
    elif not port and ports:
        wanted = ports[0].get("name", "")
    found = _endpoints(call, name, wanted)
    if not found:
        raise ServiceUnavailable(f'no endpoints available for service "{call.name}"')
    address, number, pod_uid = random.choice(found)
    return ProxyTarget(scheme, (address,), number, pod_uid)


def _endpoints(call: Call, service: str, port_name: str) -> list[tuple[str, int, str]]:
    """Ready addresses of the service, with the port's number and the uid of the pod there ("" if it is none)."""
    found: list[tuple[str, int, str]] = []
    store = call.server.store
    for stored in store.scan("endpointslices.discovery.k8s.io", call.namespace):
        if stored.labels.get(SERVICE_NAME_LABEL) != service:
            continue
        slice_ = stored.obj
        for port in slice_.get("ports") or []:
            if (port.get("name") or "") != port_name or not port.get("port"):
                continue
            for endpoint in slice_.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready") is not False:
                    uid = _pod_uid(endpoint)
                    found += [(address, int(port["port"]), uid) for address in endpoint.get("addresses") or []]
    if found:
        return found
    written_by_hand = store.get("endpoints", call.namespace, service)
    for subset in (written_by_hand.obj.get("subsets") or []) if written_by_hand is not None else []:
        for port in subset.get("ports") or []:
            if (port.get("name") or "") == port_name:
                addresses = subset.get("addresses") or []
                found += [(address["ip"], int(port["port"]), _pod_uid(address)) for address in addresses]
    return found


def _pod_uid(endpoint: Object) -> str:
    target = endpoint.get("targetRef") or {}
    return str(target.get("uid") or "") if target.get("kind") == "Pod" else ""


# -- the request and its answer


def _query(call: Call) -> str:
    pairs = call.query.pairs()
    return f"?{urlencode(pairs)}" if pairs else ""


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _url(target: ProxyTarget, path_and_query: str) -> URL:
    from yarl import URL

    return URL(f"{target.scheme}://{_host(target.addresses[0])}:{target.port}{path_and_query}", encoded=True)


def _client(call: Call, target: ProxyTarget) -> aiohttp.ClientSession:
    import aiohttp

    from danlu.net.dialer import Dialer

    async def dial(_host: str, port: int) -> socket.socket:
        return await call.server.connect(target.addresses, port, target.pod_uid)

    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)
    return aiohttp.ClientSession(
        connector=Dialer(dial),
        timeout=timeout,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=CHUNK,
    )


def _unreached(target: ProxyTarget, error: Exception) -> ServiceUnavailable:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        problem = plain_words(error.os_error)
        return ServiceUnavailable(
            f"error trying to reach service: dial tcp {target.addresses[0]}:{target.port}: connect: {problem}"
        )
    return ServiceUnavailable(f"error trying to reach service: {error}")


def _request_headers(call: Call, prefix: str) -> dict[str, str]:
    headers = {name: value for name, value in call.headers.items() if name not in NOT_PASSED_ON}
    headers["X-Forwarded-Uri"] = prefix + "/"
    headers["X-Forwarded-Host"] = call.headers.get("host", "")
    headers["X-Forwarded-Proto"] = "https"
    return headers


async def _ask(call: Call, target: ProxyTarget, path: str) -> tuple[aiohttp.ClientResponse, aiohttp.ClientSession]:
    import aiohttp

    prefix = call.target.before
    client = _client(call, target)
    try:
        answer = await client.request(
            call.method,
            _url(target, path),
            headers=_request_headers(call, prefix),
            data=call.body or None,
            allow_redirects=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        return answer, client
    except (aiohttp.ClientError, TimeoutError) as error:
        await client.close()
        raise _unreached(target, error) from error
    except BaseException:
        await client.close()
        raise


def _answer_headers(answer: aiohttp.ClientResponse, prefix: str, target: ProxyTarget) -> dict[str, str]:
    headers: dict[str, str] = {}
    cookies = 0
    for name, value in answer.headers.items():
        name = name.lower()
        if name in NOT_PASSED_ON:
            continue
        if name == "set-cookie":
            # Several may come and must not be joined; names differ in nothing but case for the same header.
            letters = "setcookie"
            name = "".join(c.upper() if cookies >> i & 1 else c for i, c in enumerate(letters[:3])) + "-" + letters[3:]
            cookies += 1
        elif name == "location":
            value = _moved(value, prefix, target)
        headers[name] = f"{headers[name]}, {value}" if name in headers and name != "set-cookie" else value
    return headers


def _moved(location: str, prefix: str, target: ProxyTarget) -> str:
    """A redirect within the program stays behind the proxy's path."""
    parts = urlsplit(location)
    if parts.netloc and (parts.hostname not in target.addresses or parts.port != target.port):
        return location
    if not parts.path.startswith("/") or parts.path.startswith(prefix + "/"):
        return location
    rest = parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    return prefix + rest


async def _body(answer: aiohttp.ClientResponse, client: aiohttp.ClientSession) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()
        await client.close()


VERBS = ("create", "delete", "get", "patch", "update")
POD_PROXY = Subresource(VERBS, Kind("", "v1", "PodProxyOptions", "pods"), handle, stream)
SERVICE_PROXY = Subresource(VERBS, Kind("", "v1", "ServiceProxyOptions", "services"), handle, stream)
NODE_PROXY = Subresource(VERBS, Kind("", "v1", "NodeProxyOptions", "nodes", False), handle)
