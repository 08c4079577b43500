"""Structured logs: one line for each record, as text or as JSON."""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime

import orjson

FORMATS = ("text", "json")
MINUTE_S = 60.0
ABOUT = ("controller", "object")  # what a line is about, where it is about one object


def set_up(form: str, *, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _stamp(record)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _stamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in ABOUT if hasattr(record, name)},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line).decode()


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Sparingly:
    """The same thing at most once a minute, with how often it happened in between."""

    def __init__(self, log: logging.Logger, every_s: float = MINUTE_S) -> None:
        self._log = log
        self._every_s = every_s
        self._said: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def warning(self, about: str, message: str) -> None:
        """`about` is what "the same" means."""
        now = time.monotonic()
        if now - self._said.get(about, float("-inf")) < self._every_s:
            self._held[about] = self._held.get(about, 0) + 1
            return
        self._said[about] = now
        held = self._held.pop(about, 0)
        self._log.warning("%s%s", message, f" ({held} times more since the last line)" if held else "")

    def forget(self, about: str) -> bool:
        """It is over: the next time is told at once. Whether it had been told."""
        self._held.pop(about, None)
        return self._said.pop(about, None) is not None
