"""The built pages, as scripts/build leaves them: larger files only compressed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from danlu.console.asgi import HTTPConnection
from danlu.console.origins import origins
from danlu.console.pages import Pages

SCRIPT = b"let a = 1\n" * 200


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(b"<html><head></head></html>")
    (folder / "assets/app-1.js.gz").write_bytes(gzip.compress(SCRIPT, mtime=0))
    (folder / "assets/app-1.js.br").write_bytes(b"as Brotli")
    (tmp_path / "secret.gz").write_bytes(gzip.compress(b"not a page"))
    return Pages(origins("http://localhost:8081"), folder)


def get(pages: Pages, path: str, accepts: str = "") -> tuple[int, dict[bytes, bytes], bytes]:
    headers = [(b"accept-encoding", accepts.encode())] if accepts else []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    found = pages.answer(HTTPConnection(scope))
    return found.status_code, dict(found.raw_headers), bytes(found.body)


@pytest.mark.parametrize(("accepts", "sent_as"), [("gzip, br", b"br"), ("gzip", b"gzip"), ("", None)])
def test_a_script_is_sent_as_the_browser_takes_it(pages: Pages, accepts: str, sent_as: bytes | None) -> None:
    status, headers, body = get(pages, "/assets/app-1.js", accepts)
    assert status == 200
    assert headers.get(b"content-encoding") == sent_as
    assert headers[b"content-type"].startswith(b"text/javascript")
    assert b"immutable" in headers[b"cache-control"]
    assert body == {b"br": b"as Brotli", b"gzip": gzip.compress(SCRIPT, mtime=0)}.get(sent_as or b"", SCRIPT)


@pytest.mark.parametrize("path", ["/", "/jobs/a/b", "/..", "/../..", "/../../../..", "/../secret", "/%2e%2e/secret"])
def test_what_is_no_file_is_the_application(pages: Pages, path: str) -> None:
    status, headers, body = get(pages, path)
    assert (status, body) == (200, b"<html><head></head></html>")
    assert headers[b"cache-control"] == b"no-cache"


def test_a_file_that_is_not_there(pages: Pages) -> None:
    assert (get(pages, "/assets/app-2.js"))[0] == 404
