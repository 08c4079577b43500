"""The logs of an object's pods as one stream of whole lines, each with the container that wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from danlu import errors
from danlu.client.client import Client
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

PAUSE_S = 1.0  # between two looks for pods that were not there before
MOST_WAITING = 1000  # lines that are read and not yet taken: then the server waits for whoever reads
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class LogSelection:
    follow: bool = False
    previous: bool = False
    since_s: int = 0
    tail: int = -1  # -1: all
    timestamps: bool = False
    container: str = ""  # "": the first, or what the annotation names
    every_container: bool = False

    def query(self, container: str) -> list[tuple[str, str]]:
        query = [("container", container)]
        flags = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        query += [(name, "true") for name, wanted in flags.items() if wanted]
        query += [("sinceSeconds", str(self.since_s))] if self.since_s else []
        return query + ([("tailLines", str(self.tail))] if self.tail >= 0 else [])


@dataclass(frozen=True, slots=True)
class LogSource:
    """One life of a container: after a restart it writes another log."""

    pod: Object
    container: str
    life: int = 0

    @property
    def key(self) -> tuple[str, str, int]:
        return self.pod["metadata"].get("uid", ""), self.container, self.life


@dataclass(frozen=True, slots=True)
class LogLine:
    source: LogSource
    text: bytes


DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
Pods = Callable[[], Awaitable[Sequence[Object]]]


def containers(pod: Object, options: LogSelection) -> list[str]:
    names = [one["name"] for one in pod["spec"]["containers"]]
    if options.container:
        return [options.container]
    if options.every_container:
        return [*(one["name"] for one in pod["spec"].get("initContainers") or ()), *names]
    chosen = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    return [str(chosen) if chosen in names else names[0]]


async def lines(client: Client, pods: Pods, options: LogSelection) -> AsyncIterator[LogLine]:
    """`pods` is asked again while logs are followed: a restarted replica is a new pod. Ends when all pods have ended
    and all that they wrote was handed out; without `follow`, at what is written now, pod after pod."""
    if not options.follow:
        for pod in await pods():
            for container in containers(pod, options):
                async for line in _read(client, LogSource(pod, container), options):
                    yield line
        return
    follower = _Follower(client, pods, options)
    try:
        async for line in follower.lines():
            yield line
    finally:
        await follower.stop()


class _Follower:
    def __init__(self, client: Client, pods: Pods, options: LogSelection) -> None:
        self._client = client
        self._pods = pods
        self._options = options
        self._lines: asyncio.Queue[LogLine | Exception | None] = asyncio.Queue(MOST_WAITING)
        self._reading: dict[tuple[str, str, int], asyncio.Task[None]] = {}
        self._looking = asyncio.create_task(self._look())

    async def lines(self) -> AsyncIterator[LogLine]:
        while (line := await self._lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line

    async def stop(self) -> None:
        tasks = [self._looking, *self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        try:
            while True:
                found = await self._pods()
                for pod in found:
                    self._begin(pod)
                if found and all((pod.get("status") or {}).get("phase") in ENDED for pod in found):
                    await asyncio.gather(*self._reading.values())
                    break
                await asyncio.sleep(PAUSE_S)
        except Exception as error:
            await self._lines.put(error)
        else:
            await self._lines.put(None)

    def _begin(self, pod: Object) -> None:
        for container in containers(pod, self._options):
            life = _life(pod, container)
            if life is None:
                continue
            source = LogSource(pod, container, life)
            if source.key not in self._reading:
                self._reading[source.key] = asyncio.create_task(self._follow(source))

    async def _follow(self, source: LogSource) -> None:
        try:
            async for line in _read(self._client, source, self._options):
                await self._lines.put(line)
        except errors.NotFound:
            pass  # deleted between the look and the question
        except errors.ApiError as error:
            await self._lines.put(error)


def _life(pod: Object, container: str) -> int | None:
    """Which one it is in; None: there is no log yet, or none that is not read already."""
    status = pod.get("status") or {}
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if one["name"] == container:
            state = one.get("state") or {}
            return one.get("restartCount", 0) if "running" in state or "terminated" in state else None
    return 0 if status.get("phase") in ENDED else None


async def _read(client: Client, source: LogSource, options: LogSelection) -> AsyncIterator[LogLine]:
    metadata = source.pod["metadata"]
    path = POD.path(metadata.get("namespace"), metadata["name"], "log")
    response = await client.request("GET", path, options.query(source.container), headers={"accept": "*/*"})
    body = response.body
    if isinstance(body, bytes):
        for text in body.splitlines():
            yield LogLine(source, text)
        return
    try:
        async for text in _whole_lines(body):
            yield LogLine(source, text)
    finally:
        with suppress(AttributeError):
            await body.aclose()  # type: ignore[attr-defined]


async def _whole_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Empty ones, too."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
    if rest:
        yield rest
