"""Tickets, which lead from the console to one app, and passes, which they are swapped for.

A ticket stands in an address, so it is good for a minute and for one use. That it was used is remembered by the process
that saw it; with several replicas, a ticket could be used once at each of them within that minute.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from danlu.console.appnames import AppName
from danlu.console.sealing import Sealer
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

    def issue(self, app: AppName, identity: Identity, expires: int) -> str:
        content = {
            "app": asdict(app),
            "pass": asdict(Pass(identity, expires)),
            "until": time.time() + TICKET_LIFE_S,
            "once": secrets.token_hex(8),
        }
        return self._sealer.seal("ticket", content)

    def redeem(self, app: AppName, ticket: str) -> Pass | None:
        found = self._sealer.open("ticket", ticket)
        now = time.time()
        if found is None or found["app"] != asdict(app) or found["until"] < now or found["once"] in self._used:
            return None
        self._used = {once: until for once, until in self._used.items() if until > now}
        self._used[found["once"]] = found["until"]
        return _pass(found["pass"])

    def seal_pass(self, app: AppName, given: Pass) -> str:
        return self._sealer.seal(f"pass {app.base}", asdict(given))

    def read_pass(self, app: AppName, text: str) -> Pass | None:
        found = _pass(self._sealer.open(f"pass {app.base}", text)) if text else None
        return found if found is not None and found.expires > time.time() else None


def _pass(found: Any) -> Pass | None:
    return None if found is None else Pass(Identity(**found["identity"]), found["expires"])
