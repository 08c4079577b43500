"""Tickets, which lead from the console to one app, and passes, which they are swapped for.

A ticket stands in an address, so it is good for a minute and for one use. That it was used is remembered by the process
that saw it; with several replicas, a ticket could be used once at each of them within that minute.

Both hold for one app under one host name (`origins.py`): at another they are nothing.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from danlu.console.appnames import AppName
from danlu.console.sealedcookies import Sealer
from danlu.console.sessions import Identity

TICKET_LIFE_S = 60


@dataclass(frozen=True, slots=True)
class Pass:
    """Who opened the app, and until when that is good (no longer than the sign-in that it came from)."""

    identity: Identity
    expires: int


class Tickets:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._used: dict[str, float] = {}

    def issue(self, app: AppName, label: str, given: Pass) -> str:
        content = {
            "pass": asdict(given),
            "until": time.time() + TICKET_LIFE_S,
            "once": secrets.token_hex(8),
        }
        return self._sealer.seal(_purpose("ticket", app, label), content)

    def redeem(self, app: AppName, label: str, ticket: str) -> Pass | None:
        found = self._sealer.open(_purpose("ticket", app, label), ticket)
        now = time.time()
        if found is None or found["until"] < now or found["once"] in self._used:
            return None
        self._used = {once: until for once, until in self._used.items() if until > now}
        self._used[found["once"]] = found["until"]
        return _pass(found["pass"])

    def seal_pass(self, app: AppName, label: str, given: Pass) -> str:
        return self._sealer.seal(_purpose("pass", app, label), asdict(given))

    def read_pass(self, app: AppName, label: str, text: str) -> Pass | None:
        found = _pass(self._sealer.open(_purpose("pass", app, label), text)) if text else None
        return found if found is not None and found.expires > time.time() else None


def _purpose(word: str, app: AppName, label: str) -> str:
    return f"{word} {label} {app.base}"


def _pass(found: Any) -> Pass | None:
    return None if found is None else Pass(Identity(**found["identity"]), found["expires"])
