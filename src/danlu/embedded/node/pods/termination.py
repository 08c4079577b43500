"""Ending containers of a pod: preStop, SIGTERM, grace, SIGKILL; and in which order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time

from danlu.embedded.node.pods import adoption, probes
from danlu.embedded.node.pods.localpod import LocalPod
from danlu.embedded.node.pods.members import Member
from danlu.embedded.node.sandbox.processes import Container, ProcessError

LEAST_GRACE_S = 0.5  # for a container to end by itself even when it is given no time


class Termination:
    def __init__(self, pod: LocalPod) -> None:
        self._pod = pod

    def kill(self, member: Member, message: str, probe: str = "") -> None:
        """Begins to end it; its worker starts it again if its policy says so."""
        if member.stopping is None:
            own = (member.spec.get(probe) or {}).get("terminationGracePeriodSeconds")
            grace = float(own) if own is not None else self._pod.grace()
            member.stopping = asyncio.create_task(self.end_one(member, time.monotonic() + grace, message))

    async def end_all(self) -> None:
        """Containers first, all at once; then the sidecars that served them, last started first."""
        self._pod.publisher.publish()
        began = time.monotonic()
        main = [m for m in self._pod.members if m.view.is_running and not m.view.is_sidecar]
        await asyncio.gather(*(self.end_one(m, began, f"Stopping container {m.view.name}", True) for m in main))
        for member in reversed(self._pod.members):
            if member.view.is_running:
                await self.end_one(member, began, f"Stopping container {member.view.name}", True)

    async def end_one(self, member: Member, moment: float, message: str, by_pod: bool = False) -> None:
        """preStop, SIGTERM, SIGKILL. `moment` is the deadline; with `by_pod` the begin, and the pod's grace counts from
        it, which a second, shorter deletion may cut while we wait."""
        container = member.container
        if not member.view.is_running:
            return

        def left() -> float:
            return moment + (self._pod.grace() if by_pod else 0.0) - time.monotonic()

        self._pod.event("Normal", "Killing", message, member)
        member.cancel_tasks()
        hook = (member.spec.get("lifecycle") or {}).get("preStop")
        if hook and left() > 0:
            answer = await probes.ask(hook, member, timeout=max(left(), LEAST_GRACE_S))
            if not answer.passed:
                self._pod.event("Warning", "FailedPreStopHook", "PreStopHook failed", member)
        if self._pod.is_paused and not member.is_debugging and not container.ended.is_set():
            adoption.interrupt(container.folder)
        stated = (member.spec.get("lifecycle") or {}).get("stopSignal") or container.spec.get("stop_signal") or ""
        number = stop_signal(stated)
        await self._send(container, number, or_kill=True)
        least = time.monotonic() + LEAST_GRACE_S
        while not container.ended.is_set() and (left() > 0 or time.monotonic() < least):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(max(left(), 0.05), 0.5)):
                    await container.ended.wait()
        if not container.ended.is_set():
            await self._send(container, signal.SIGKILL)
            await container.ended.wait()

    async def _send(self, container: Container, number: int, *, or_kill: bool = False) -> None:
        with contextlib.suppress(ProcessError):
            await self._pod.context.containers.signal(container.id, number, or_kill=or_kill)


def stop_signal(stated: str) -> int:
    """As Kubernetes and images name it: SIGQUIT, QUIT or 3."""
    if stated.isdigit():
        return int(stated) if int(stated) in {int(one) for one in signal.valid_signals()} else signal.SIGTERM
    found = getattr(signal, f"SIG{stated.upper().removeprefix('SIG')}", signal.SIGTERM)
    return int(found) if isinstance(found, signal.Signals) else signal.SIGTERM
