"""The one process of `danlu up`: starts its parts in order, runs until a signal, stops them in the other order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from danlu.embedded.settings import ClusterSettings
from danlu.embedded.trust import Unmet
from danlu.kinds._gang.markers import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from danlu.embedded.cluster import Cluster
    from danlu.runtime.manager import Manager
    from danlu.standalone.embeddedconsole import EmbeddedConsole

log = logging.getLogger("danlu.up")

SYSTEM_NAMESPACES = (SYSTEM_NAMESPACE,)  # of the platform's kinds
STOP_MARGIN_S = 30.0  # beyond the pods' own grace
# What danlu and its helpers make is their owner's alone; what pods are to see is opened on purpose where it is made.
UMASK = 0o077


@dataclass(frozen=True, slots=True)
class StandaloneSettings:
    cluster: ClusterSettings
    console: bool = True
    console_port: int | None = None  # None: the usual one, or any free one if it is taken
    strict_images: bool = False  # unknown image names fail to pull


class StandaloneObserver(Protocol):
    def ready(self, url: str, root: Path, facts: dict[str, str]) -> None:
        """It serves at `url`, with everything below `root`."""

    def stopping(self) -> None:
        """Pods are asked to end, which may take their grace periods."""


def unmet_promises(settings: ClusterSettings) -> Sequence[Unmet]:
    """What `--shared` promises several people and cannot keep on this machine."""
    from danlu.embedded import trust
    from danlu.embedded.node.sandbox import detection

    pods = detection.capabilities()
    hiding_problem = detection.hiding_problem() if pods.mode == "root" else ""
    return trust.unmet(pods, hiding_problem, settings.data_dir.expanduser().absolute())


def run(settings: StandaloneSettings, observer: StandaloneObserver) -> int:
    """Until SIGINT, SIGTERM or SIGHUP; the process's exit code. Raises what keeps it from starting."""
    import uvloop

    os.umask(UMASK)
    gc.disable()  # until everything is there: see _calm_garbage_collection
    return uvloop.run(_run(settings, observer))


async def _run(settings: StandaloneSettings, observer: StandaloneObserver) -> int:
    return await StandaloneProcess(settings, observer).run()  # made inside the loop that it runs in


class StandaloneProcess:
    def __init__(self, settings: StandaloneSettings, observer: StandaloneObserver) -> None:
        from danlu.embedded.cluster import Cluster
        from danlu.environments.catalogue import Catalogue

        self._settings = settings
        self._observer = observer
        images = Catalogue(settings.cluster.data_dir, strict=settings.strict_images)
        self._cluster: Cluster = Cluster(settings.cluster, images)
        self._platform: Manager | None = None
        self._console: EmbeddedConsole | None = None
        self._stop = asyncio.Event()
        self._signals: set[int] = set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return 1
        starting.result()
        _calm_garbage_collection()
        cluster = self._cluster
        facts = cluster.describe() | ({"console": self._console.link} if self._console else {})
        self._observer.ready(cluster.url, cluster.directory.root, facts)
        await self._stop.wait()
        return await self._end()

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGINT and self._stop.is_set():
            os._exit(130)  # as safe as kill -9: what is acknowledged is on the disk
        self._signals.add(number)
        self._stop.set()

    async def _end(self) -> int:
        # SIGHUP is `danlu down --keep-pods`, and a terminal that is closed: trainings go on.
        keep_pods = self._signals == {signal.SIGHUP}
        if not keep_pods:
            self._observer.stopping()
        timeout_s = STOP_MARGIN_S + (0.0 if keep_pods else self._cluster.longest_grace_s())
        ending = asyncio.create_task(self._stop_parts(keep_pods))
        done, _ = await asyncio.wait({ending}, timeout=timeout_s)
        if not done:  # whatever it waits for: what is acknowledged is on the disk, and `danlu down` ends
            log.error("it has not stopped within %.0f s and ends now", timeout_s)
            os._exit(1)
        ending.result()
        return 0

    async def _stop_parts(self, keep_pods: bool) -> None:
        if self._console is not None:
            await self._console.stop()
        if self._platform is not None:
            await self._platform.stop()
        await self._cluster.stop(stop_pods=not keep_pods)
        if self._console is not None:
            self._console.release(pods_ended=not keep_pods)

    async def _start(self) -> None:
        await self._cluster.start()
        try:
            await self._start_platform()
        except BaseException:
            await self._cluster.stop(stop_pods=False)  # nothing half-started holds the port
            raise

    async def _start_platform(self) -> None:
        from danlu.standalone.embeddedplatform import start_platform

        if not self._settings.console:
            self._platform = await start_platform(self._cluster)
            return
        from danlu.standalone.embeddedconsole import EmbeddedConsole

        # Its ports first: notebooks say where they are to be opened.
        console = EmbeddedConsole(self._cluster, self._settings.console_port)
        self._platform = await start_platform(self._cluster, console.settings.apps_url)
        await console.start()
        self._console = console


def _calm_garbage_collection() -> None:
    """What was made at the start stays: it need not be looked at again and again.

    Nearly everything here is freed by reference counts; Python's thresholds are for programs with far fewer objects,
    and at thousands of objects a second they cost a sixth of the processor.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
