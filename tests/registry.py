"""A registry on loopback for tests: manifests, blobs, ranges, tokens, uploads, and the faults that are asked of it."""

from __future__ import annotations

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ociimages import MadeImage, digest_of

INDEX = "application/vnd.oci.image.index.v1+json"


class TestRegistry:
    __test__ = False

    def __init__(self, *, auth: str = "") -> None:
        """`auth`: "basic" or "bearer"; the user is `me`, the password `secret`."""
        self.auth = auth
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], bytes] = {}  # (path, tag or digest)
        self.requests: list[tuple[str, str, str]] = []  # method, path, Range
        self.cut_after: dict[str, int] = {}  # digest -> bytes, once
        self.broken: dict[str, int] = {}  # digest -> so many times something else comes
        self.uploads: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> TestRegistry:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def offer(self, path: str, tag: str, image: MadeImage) -> str:
        """Its name here."""
        self.blobs |= image.blobs
        for version in (tag, image.digest):
            self.manifests[path, version] = image.blobs[image.digest]
        return f"{self.host}/{path}:{tag}"

    def offer_index(self, path: str, tag: str, images: dict[str, MadeImage]) -> str:
        """Images by architecture."""
        listed = []
        for architecture, image in images.items():
            self.offer(path, f"only-{architecture}", image)
            about = {"os": "linux", "architecture": architecture}
            listed.append({"mediaType": image.manifest["mediaType"], "digest": image.digest, "platform": about})
        data = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).encode()
        self.manifests[path, tag] = self.manifests[path, digest_of(data)] = data
        return f"{self.host}/{path}:{tag}"

    def asked(self, what: str) -> list[tuple[str, str, str]]:
        return [one for one in self.requests if what in one[1]]


def _handler(registry: TestRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            path = urlsplit(self.path)
            registry.requests.append((self.command, path.path, self.headers.get("Range", "")))
            if path.path == "/token":
                self._token(parse_qs(path.query))
            elif not self._allowed():
                self._challenge()
            elif found := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", path.path):
                self._manifest(*found.groups())
            elif found := re.fullmatch(r"/v2/(.+)/blobs/([^/]+)", path.path):
                self._blob(found[2])
            else:
                self._answer(404)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            registry.requests.append((self.command, self.path, ""))
            if not self._allowed():
                self._challenge()
                return
            self._answer(202, headers={"Location": f"{urlsplit(self.path).path}one?state=x"})

        def do_PUT(self) -> None:
            path = urlsplit(self.path)
            data = self._body()
            registry.requests.append((self.command, path.path, ""))
            if not self._allowed():
                self._challenge()
            elif found := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", path.path):
                registry.manifests[found[1], found[2]] = data
                registry.manifests[found[1], digest_of(data)] = data
                self._answer(201, headers={"Docker-Content-Digest": digest_of(data)})
            else:
                digest = parse_qs(path.query)["digest"][0]
                registry.blobs[digest] = data
                self._answer(201 if digest_of(data) == digest else 400)

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def _allowed(self) -> bool:
            said = self.headers.get("Authorization", "")
            if registry.auth == "basic":
                return said == _basic("me", "secret")
            return registry.auth != "bearer" or said == "Bearer let-me-in"

        def _challenge(self) -> None:
            self._body()
            how = 'Basic realm="test"'
            if registry.auth == "bearer":
                how = f'Bearer realm="http://{registry.host}/token",service="test",scope="repository:x:pull"'
            body = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}).encode()
            self._answer(401, body, {"WWW-Authenticate": how})

        def _token(self, asked: dict[str, list[str]]) -> None:
            right = self.headers.get("Authorization") == _basic("me", "secret") and asked["service"] == ["test"]
            self._answer(200 if right else 401, json.dumps({"token": "let-me-in"}).encode() if right else b"{}")

        def _manifest(self, path: str, version: str) -> None:
            data = registry.manifests.get((path, version))
            if data is None:
                body = json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode()
                self._answer(404, body)
                return
            self._answer(200, data, {"Docker-Content-Digest": digest_of(data)})

        def _blob(self, digest: str) -> None:
            data = registry.blobs.get(digest)
            if data is None:
                self._answer(404, b'{"errors": [{"code": "BLOB_UNKNOWN", "message": "blob unknown"}]}')
                return
            if registry.broken.get(digest, 0) > 0 and self.command == "GET":
                registry.broken[digest] -= 1
                data = bytes(len(data))
            begin = int(found[1]) if (found := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))) else 0
            cut = registry.cut_after.pop(digest, 0) if self.command == "GET" else 0
            self._answer(206 if begin else 200, data[begin:], cut=cut)

        def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, cut: int = 0) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:cut] if cut else body)
            if cut:
                self.close_connection = True

    return Handler


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
