"""Sign-ins that outlive their token: an identity provider that gave a refresh token is asked for the next one in time.

The newest token goes into the browser's cookie with the next answer. Until then, and for notebooks whose pass still
holds an older one, it is remembered here which tokens followed which: a provider may take each refresh token only once,
and a page asks for many things at the same moment.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from danlu.console.sessions import Identity
from danlu.console.tokenclaims import ends_at
from danlu.errors import ServiceUnavailable, Unauthorized

if TYPE_CHECKING:
    from danlu.console.oidc import Oidc

MOST_KEPT = 10_000


class Renewals:
    def __init__(self, kept_s: int) -> None:
        """`kept_s`: how long a cookie with an older token may still come, a sign-in's whole life."""
        self.oidc: Oidc | None = None
        self._kept_s = kept_s
        self._followed_by: dict[str, tuple[float, Identity]] = {}  # by refresh token; until when it is kept
        self._under_way: dict[str, asyncio.Task[Identity]] = {}

    async def current(self, identity: Identity) -> Identity:
        """The same one while it is good. Raises Unauthorized when the provider wants to see the person again."""
        while _is_due(identity):
            _, known = self._followed_by.get(identity.renewal, (0, identity))
            if known.renewal == identity.renewal and _is_due(known):
                return await self._renewed(identity)
            identity = known
        return identity

    async def _renewed(self, identity: Identity) -> Identity:
        task = self._under_way.get(identity.renewal)
        if task is None:
            task = self._under_way[identity.renewal] = asyncio.create_task(self._renew(identity))
            task.add_done_callback(lambda _: self._under_way.pop(identity.renewal, None))
        try:
            return await asyncio.shield(task)
        except ServiceUnavailable:
            if (ends_at(identity.token) or 0) > time.time():
                return identity  # it is renewed before its end: the provider may come back until then
            raise

    async def _renew(self, identity: Identity) -> Identity:
        if self.oidc is None:
            raise Unauthorized("the sign-in has ended")
        found = await self.oidc.renew(identity)
        now = time.time()
        if len(self._followed_by) >= MOST_KEPT:
            self._followed_by = {one: kept for one, kept in self._followed_by.items() if kept[0] > now}
        self._followed_by[identity.renewal] = (now + self._kept_s, found)
        return found


def _is_due(identity: Identity) -> bool:
    return bool(identity.renewal) and identity.renew_at <= time.time()
