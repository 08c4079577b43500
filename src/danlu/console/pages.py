"""The built pages: every path that is no file is the single-page application's, so links into it can be shared."""

from __future__ import annotations

import gzip
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from danlu.console.asgi import NOT_KEPT, Answer, HTTPConnection, path_of
from danlu.console.origins import AppOrigins

FOLDER = Path(__file__).parent / "static"
# Made by scripts/build in place of any file of some length; the first that the browser takes.
COMPRESSED = (("br", ".br"), ("gzip", ".gz"))
FOREVER = "public, max-age=31536000, immutable"  # names under /assets carry a hash of the content
TYPED = b'<meta name="danlu-typed" content="yes">'
NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Danlu</title>
<body style="font: 16px/1.6 sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">
<h1>The console's pages are not built yet</h1>
<p>This is a checkout. <code>scripts/build</code> makes them; then load this page again.</p>
<p lang="zh">这是源码目录，控制台的页面还没有构建。运行 <code>scripts/build</code>，然后刷新本页。</p>
""".encode()


@dataclass(slots=True)
class _Kept:
    changed: int  # nanoseconds
    content: bytes


class Pages:
    def __init__(self, apps: AppOrigins, folder: Path = FOLDER) -> None:
        self._folder = folder.resolve()
        self._kept: dict[Path, _Kept] = {}
        # Styles are written by the component library at run time. Only notebooks and TensorBoards may be framed, and
        # nobody may frame us: a click on our page is meant for it.
        policy = (
            "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            f"font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; frame-src 'self' {apps.every()}; "
            "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
        self._guarding = {
            "content-security-policy": policy,
            "x-frame-options": "DENY",
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
        }

    def answer(self, request: HTTPConnection, *, typed: bool = False) -> Answer:
        """`typed`: the page is to know that the person typed the address, and was led to it by no other page."""
        asked = path_of(request)
        path = self._file(asked)
        if path is None and asked.startswith("/assets/"):
            return Answer(b"there is no such file\n", 404, media_type="text/plain")
        if typed and (page := self._plain(self._folder / "index.html")) is not None:
            marked = page.replace(b"<head>", b"<head>" + TYPED, 1)
            return Answer(marked, headers={**NOT_KEPT, **self._guarding}, media_type="text/html")
        return self._answer(path or self._folder / "index.html", request.headers.get("accept-encoding", ""))

    def _file(self, url_path: str) -> Path | None:
        found = (self._folder / unquote(url_path).lstrip("/")).resolve()
        if found == self._folder or not found.is_relative_to(self._folder):
            return None
        return found if found.is_file() or found.with_name(found.name + ".gz").is_file() else None

    def _answer(self, path: Path, accepted: str) -> Answer:
        headers = {
            "cache-control": FOREVER if path.parent.name == "assets" else "no-cache",
            **self._guarding,
            "vary": "accept-encoding",
        }
        for word, suffix in COMPRESSED:
            smaller = path.with_name(path.name + suffix)
            if word in accepted and (content := self._read(smaller)) is not None:
                headers["content-encoding"] = word
                break
        else:
            content = self._plain(path)
        if content is None:
            return Answer(NOT_BUILT, 503, NOT_KEPT, "text/html")
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if (
            kind == "application/javascript"
        ):  # what some systems still call a script, of which Starlette says no charset
            kind = "text/javascript"
        return Answer(content, headers=headers, media_type=kind)

    def _plain(self, path: Path) -> bytes | None:
        content = self._read(path)
        if content is None and (packed := self._read(path.with_name(path.name + ".gz"))) is not None:
            content = gzip.decompress(packed)
        return content

    def _read(self, path: Path) -> bytes | None:
        """Kept in memory, and read again when the file has changed: a build while `danlu up` runs is seen at once."""
        try:
            changed = path.stat().st_mtime_ns
            kept = self._kept.get(path)
            if kept is None or kept.changed != changed:
                kept = self._kept[path] = _Kept(changed, path.read_bytes())
        except OSError:
            return None
        return kept.content
