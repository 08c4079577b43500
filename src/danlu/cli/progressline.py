"""One line that says how far something long is."""

from __future__ import annotations

import sys
import time

from danlu.cli import layout
from danlu.cli.language import Text, translated

PASSED = Text(
    "{title}: {seconds:3.0f} s, {packages} packages, {line}", "{title}：{seconds:3.0f} 秒，{packages} 个包，{line}"
)
SAY_EVERY_S = 10.0  # where there is no terminal


class ProgressLine:
    """One line that says what is going on; plain lines now and then where there is no terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begun = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._told = 0.0
        self._steps = 0

    def show(self, line: str) -> None:
        self._steps += line.startswith("Collecting")
        passed = time.monotonic() - self._begun
        text = PASSED(title=self._title, seconds=passed, packages=self._steps, line=translated(line).strip())
        if self._terminal:
            width = layout.columns(80) - 1
            sys.stderr.write("\r" + layout.padded(layout.shortened(text, width), width))
            sys.stderr.flush()
        elif passed - self._told >= SAY_EVERY_S:
            self._told = passed
            print(text[:160], file=sys.stderr, flush=True)

    def done(self, line: str) -> None:
        if self._terminal:
            sys.stderr.write("\r" + " " * (layout.columns(80) - 1) + "\r")
        print(line)
