"""How far something is that comes or goes in bytes."""

from __future__ import annotations

import sys
import time

from danlu.cli import layout
from danlu.cli.language import Text

MOVED = Text("{title}: {done} of {total} MB", "{title}：{done} MB，共 {total} MB")
EVERY_S, SAY_EVERY_S = 0.1, 10.0  # on a terminal, and where there is none
WIDTH = 24


class TransferBar:
    def __init__(self, title: str) -> None:
        self._title = title
        self._terminal = sys.stderr.isatty()
        self._told = time.monotonic() if not self._terminal else 0.0

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told < (EVERY_S if self._terminal else SAY_EVERY_S):
            return
        self._told = now
        text = MOVED(title=self._title, done=f"{done / 1e6:.1f}", total=f"{total / 1e6:.1f}")
        if not self._terminal:
            print(text, file=sys.stderr, flush=True)
            return
        filled = min(WIDTH, WIDTH * done // total) if total else 0
        text = f"[{'█' * filled}{'·' * (WIDTH - filled)}] {text}"
        width = layout.columns(80) - 1
        sys.stderr.write("\r" + layout.padded(layout.shortened(text, width), width))
        sys.stderr.flush()

    def done(self, line: str) -> None:
        if self._terminal:
            sys.stderr.write("\r" + " " * (layout.columns(80) - 1) + "\r")
            sys.stderr.flush()
        print(line)
