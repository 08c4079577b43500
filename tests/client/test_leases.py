"""A leader that is told to stop stops, whatever it is doing at that moment."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from danlu import errors
from danlu.client.client import Client
from danlu.client.leases import LeaderElection, LeaseTimes


class _Leases:
    """One lease in memory; each update waits until it is let through."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.updating: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def get(self, *_: Any) -> dict[str, Any]:
        if self.lease is None:
            raise errors.NotFound("no lease yet")
        return self.lease

    async def create(self, _kind: Any, lease: dict[str, Any], _namespace: str) -> dict[str, Any]:
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": "1"}}
        return self.lease

    async def update(self, _kind: Any, lease: dict[str, Any]) -> dict[str, Any]:
        let_through = asyncio.get_running_loop().create_future()
        self.updating.put_nowait(let_through)
        await let_through
        self.lease = lease
        return lease


@pytest.mark.parametrize("turns", range(8))
async def test_a_leader_stops_when_told_so_as_its_renewal_is_answered(turns: int) -> None:
    leases = _Leases()
    election = LeaderElection(cast(Client, leases), "lead", "default", "me", LeaseTimes(retry_s=0.001))
    leading = asyncio.create_task(election.run(lambda: asyncio.sleep(3600)))
    answer = await leases.updating.get()
    answer.set_result(None)
    for _ in range(turns):  # of the loop: in one of them the answer is there and has not been taken yet
        await asyncio.sleep(0)
    leading.cancel()
    for _ in range(3):  # at most: a renewal that was under way, and the release
        asking = asyncio.ensure_future(leases.updating.get())
        await asyncio.wait({leading, asking}, return_when=asyncio.FIRST_COMPLETED)
        if leading.done():
            break
        asking.result().set_result(None)
    assert leading.cancelled(), "it goes on renewing"
    assert leases.lease is not None
    assert leases.lease["spec"]["holderIdentity"] == "", "not given to the next one"
