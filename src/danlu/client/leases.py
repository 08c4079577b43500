"""Leader election by a Lease: of several copies of one program, one works and the others stand by.

A lease is taken over only when it has not changed for its whole duration as seen on *our* clock, so that clocks of
different machines need not agree. A leader that could not renew in time stops before another may begin.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from danlu import errors
from danlu.client.client import Client
from danlu.meta.clock import now_rfc3339_micro
from danlu.meta.kind import Object
from danlu.meta.wellknown import LEASE

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    duration_s: float = 15.0  # after which another may lead, counted from the last renewal
    renew_deadline_s: float = 10.0  # after which a leader that could not renew stops
    retry_s: float = 2.0
    longest_retry_s: float = 30.0  # while the API does not answer


class LeaderElection:
    def __init__(
        self, client: Client, name: str, namespace: str, identity: str, times: LeaseTimes | None = None
    ) -> None:
        self.client = client
        self.name, self.namespace, self.identity = name, namespace, identity
        self.times = times or LeaseTimes()
        self.leading = False
        self.heard = False  # the API has answered at least once
        self._lease: Object | None = None  # as we wrote it last
        self._seen = ""  # resourceVersion of the lease when last looked at
        self._seen_at = float("-inf")  # and when, on our own clock

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Waits to lead, then runs `work`; cancels it and returns when leadership is lost. Cancel to stop."""
        failures = 0
        while not (taken := await self._try()):
            failures = failures + 1 if taken is None else 0
            await asyncio.sleep(min(self.times.retry_s * 2 ** min(failures, 10), self.times.longest_retry_s))
        self.leading = True
        log.info("%s leads %s/%s", self.identity, self.namespace, self.name)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew())
        try:
            done, _ = await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if working in done:
                working.result()
        finally:
            self.leading = False
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()

    async def _renew(self) -> None:
        last = time.monotonic()
        while time.monotonic() - last < self.times.renew_deadline_s:
            await asyncio.sleep(self.times.retry_s)
            try:
                # Not wait_for: before Python 3.12 it swallows a cancellation that comes as the answer does, and a
                # leader that was told to stop would go on renewing for good.
                async with asyncio.timeout(self.times.renew_deadline_s):
                    renewed = await self._try()
            except TimeoutError:
                renewed = None
            if renewed is False:
                break  # another has it already
            if renewed:
                last = time.monotonic()
        log.warning("%s lost %s/%s", self.identity, self.namespace, self.name)

    async def _try(self) -> bool | None:
        """Whether it is ours now; None: that could not be found out."""
        try:
            taken = await self._take()
        except errors.ApiError as error:
            self._lease = None
            log.debug("lease %s/%s: %s", self.namespace, self.name, error)
            return None
        self.heard = True
        return taken

    async def _take(self) -> bool:
        now = now_rfc3339_micro()
        if self._lease is not None:  # ours: that it still is the server checks by its version
            renewed = {**self._lease, "spec": self._spec(self._lease["spec"], now)}
            self._lease = await self.client.update(LEASE, renewed)
            return True
        try:
            lease = await self.client.get(LEASE, self.name, self.namespace)
        except errors.NotFound:
            lease = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": self.name, "namespace": self.namespace},
                "spec": self._spec({}, now),
            }
            self._lease = await self.client.create(LEASE, lease, self.namespace)
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen:
            self._seen, self._seen_at = version, time.monotonic()
        held_s = float(spec.get("leaseDurationSeconds") or self.times.duration_s)
        if holder and holder != self.identity and time.monotonic() - self._seen_at < held_s:
            return False
        self._lease = await self.client.update(LEASE, {**lease, "spec": self._spec(spec, now)})
        return True

    def _spec(self, old: Object, now: str) -> Object:
        mine = old.get("holderIdentity") == self.identity
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            **old,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, int(self.times.duration_s)),
            "acquireTime": old.get("acquireTime", now) if mine else now,
            "renewTime": now,
            "leaseTransitions": transitions if mine or not old else transitions + 1,
        }

    async def _release(self) -> None:
        """Lets the next one begin at once; if that fails it begins when the lease has run out."""
        self._lease = None
        try:
            lease = await self.client.get(LEASE, self.name, self.namespace)
            if lease["spec"].get("holderIdentity") == self.identity:
                given_up = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now_rfc3339_micro()}
                await self.client.update(LEASE, {**lease, "spec": {**lease["spec"], **given_up}})
        except errors.ApiError as error:
            log.debug("lease %s/%s not released: %s", self.namespace, self.name, error)
