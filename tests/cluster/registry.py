"""A read-only registry of the store's images, for containerd: so that `imagePullPolicy: Always` works as written.

containerd is told to ask here for every host's images and puts the host into `ns`. A name that stands for nothing is
not found, as at a hub.
"""

from __future__ import annotations

import json
import shutil
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.cluster.images import MANIFEST, Store

HUB = "docker.io"


class Handler(BaseHTTPRequestHandler):
    store: ClassVar[Store]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        asked = urlsplit(self.path)
        if asked.path.rstrip("/") == "/v2":
            self._head(HTTPStatus.OK, "application/json", 0)
            return
        name, _, rest = asked.path.removeprefix("/v2/").rpartition("/")
        repository, _, what = name.rpartition("/")
        host = parse_qs(asked.query).get("ns", [HUB])[0]
        digest = rest if rest.startswith("sha256:") else self.store.resolve(full_name(host, repository, rest))
        if digest is None or not self.store.blob(digest).exists():
            said = json.dumps({"errors": [{"code": "NAME_UNKNOWN", "message": f"{repository}:{rest} is not here"}]})
            self._head(HTTPStatus.NOT_FOUND, "application/json", len(said))
            self.wfile.write(said.encode() if with_body else b"")
            return
        path = self.store.blob(digest)
        kind = "application/octet-stream"
        if what == "manifests":
            kind = json.loads(path.read_text()).get("mediaType", MANIFEST)
        self._head(HTTPStatus.OK, kind, path.stat().st_size, digest)
        if with_body:
            with path.open("rb") as file:
                shutil.copyfileobj(file, self.wfile, 1 << 20)

    def _head(self, status: HTTPStatus, kind: str, size: int, digest: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()


def full_name(host: str, repository: str, tag: str) -> str:
    """As people write it: without the hub and its `library`."""
    if host != HUB:
        return f"{host}/{repository}:{tag}"
    return f"{repository.removeprefix('library/')}:{tag}"


def main(folder: str, base: str, built: str, address: str, port: str) -> None:
    Handler.store = Store(Path(folder), base, Path(built))
    ThreadingHTTPServer((address, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
