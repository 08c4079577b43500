"""The built pages: every path that is no file is the single-page application's, so links into it can be shared."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from danlu.console.asgi import Header, Request, Send, answer
from danlu.console.origins import AppOrigins

FOLDER = Path(__file__).parent / "static"
COMPRESSED = (("br", ".br"), ("gzip", ".gz"))  # made by scripts/build; the first that the browser takes
FOREVER = b"public, max-age=31536000, immutable"  # names under /assets carry a hash of the content
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
        self._guarding: list[Header] = [
            (b"content-security-policy", policy.encode()),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]

    async def serve(self, request: Request, send: Send, *, typed: bool = False) -> None:
        """`typed`: the page is to know that the person typed the address, and was led to it by no other page."""
        path = self._file(request.path)
        if path is None and request.path.startswith("/assets/"):
            await answer(send, 404, b"there is no such file\n", "text/plain", head=request.method == "HEAD")
            return
        if typed:
            await self._send_typed(request, send)
        else:
            await self._send(request, send, path or self._folder / "index.html")

    def _file(self, url_path: str) -> Path | None:
        found = (self._folder / unquote(url_path).lstrip("/")).resolve()
        return found if found.is_relative_to(self._folder) and found.is_file() else None

    async def _send_typed(self, request: Request, send: Send) -> None:
        page = self._read(self._folder / "index.html")
        if page is None:
            await self._send(request, send, self._folder / "index.html")  # which says so
            return
        marked = page.replace(b"<head>", b"<head>" + TYPED, 1)
        headers = [(b"cache-control", b"no-store"), *self._guarding]
        await answer(send, 200, marked, "text/html; charset=utf-8", headers, head=request.method == "HEAD")

    async def _send(self, request: Request, send: Send, path: Path) -> None:
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        if kind.startswith("text/") or kind == "application/javascript":
            kind += "; charset=utf-8"
        is_asset = path.parent.name == "assets"
        headers: list[Header] = [
            (b"cache-control", FOREVER if is_asset else b"no-cache"),
            *self._guarding,
            (b"vary", b"accept-encoding"),
        ]
        accepted = request.headers.get("accept-encoding", "")
        for word, suffix in COMPRESSED:
            smaller = path.with_name(path.name + suffix)
            if word in accepted and (content := self._read(smaller)) is not None:
                headers.append((b"content-encoding", word.encode()))
                break
        else:
            content = self._read(path)
        if content is None:
            await answer(send, 503, NOT_BUILT, "text/html; charset=utf-8", [(b"cache-control", b"no-store")])
            return
        await answer(send, 200, content, kind, headers, head=request.method == "HEAD")

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
