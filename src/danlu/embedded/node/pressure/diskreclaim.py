"""Disk space that nobody needs any more, in the order in which it is taken when the disk runs short.

1. files of images that are not used any more;
2. logs of runs before the last, and writable layers of containers that have ended;
3. emptyDirs of pods that have ended;
4. logs of pods that have ended, oldest first.

Only when all of that was not enough does `eviction` end running pods: those beyond their own limits, then those beyond
their requests, then others. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pressure.cleanup import remove_log, remove_tree
from danlu.embedded.node.sandbox import layering
from danlu.embedded.node.volumes import memory_volumes

LAYERS = ("root", "skeleton", layering.WORK)
SEGMENT = re.compile(r"(?P<log>\d+\.log)(\.(?P<number>\d+))?")


class Images(Protocol):
    def remove_unused(self) -> None:
        """Files that belong to no image any more, or to none that anybody needs."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str  # as the event tells it
    take: Callable[[Path, Collection[str]], None]  # the data directory, and the uids of pods that have ended


def _dead_containers(data_dir: Path, ended: Collection[str]) -> None:
    for pod in _folders(data_dir / "pods"):
        for container in _folders(pod / "containers"):
            attempts = {int(folder.name): folder for folder in _folders(container) if folder.name.isdigit()}
            for folder in _folders(container):
                if not folder.name.isdigit():
                    remove_tree(folder)  # an attempt that does not count
            for number, folder in attempts.items():
                if not (folder / "exit.json").exists():
                    continue  # it runs, or its end is not told yet
                for layer in LAYERS:
                    remove_tree(folder / layer)
                if number != max(attempts):
                    remove_log(logfiles.path_for(str(data_dir), pod.name, container.name, number))


def _volumes_of_ended_pods(data_dir: Path, ended: Collection[str]) -> None:
    for uid in ended:
        remove_tree(data_dir / "pods" / uid / "volumes")
        in_memory = memory_volumes.existing(str(data_dir), uid)
        if in_memory is not None:
            memory_volumes.unmount(in_memory)
            remove_tree(Path(in_memory))
    memory_volumes.tidy(str(data_dir))


def remove_ended(data_dir: Path, uid: str) -> None:
    """What a pod that has ended held: its emptyDirs and its containers' writable layers. Its logs say why it ended."""
    _volumes_of_ended_pods(data_dir, (uid,))
    for container in _folders(data_dir / "pods" / uid / "containers"):
        for attempt in _folders(container):
            for layer in LAYERS:
                remove_tree(attempt / layer)


def _logs_of_ended_pods(data_dir: Path, ended: Collection[str]) -> None:
    for segment in sorted(_segments(data_dir, ended), key=lambda segment: segment.changed):
        segment.remove()


def steps(images: Images) -> tuple[Step, ...]:
    return (
        Step("files of images that are not used", lambda data_dir, ended: images.remove_unused()),
        Step("logs and layers of dead containers", _dead_containers),
        Step("emptyDirs of ended pods", _volumes_of_ended_pods),
        Step("logs of ended pods", _logs_of_ended_pods),
    )


# -- logs in all


@dataclass(frozen=True, slots=True)
class _Segment:
    path: Path
    size: int
    changed: float
    is_last: bool  # of its run: a container that runs writes to it

    def remove(self) -> None:
        for path in (self.path, self.path.with_name(self.path.name + ".idx")):
            with contextlib.suppress(OSError):
                path.unlink()


def bound_logs(data_dir: Path, most: int, ended: Collection[str]) -> int:
    """Removes the oldest files of logs beyond `most` bytes in all: of ended pods first. Bytes that were removed.

    The file that a container writes to stays; each has a bound of its own (`logs`).
    """
    everybody = [folder.name for folder in _folders(data_dir / "pods")]
    found = [(uid not in ended, segment) for uid in everybody for segment in _segments(data_dir, (uid,))]
    excess = sum(segment.size for _, segment in found) - most
    removed = 0
    for lives, segment in sorted(found, key=lambda entry: (entry[0], entry[1].changed)):
        if removed >= excess:
            break
        if not (lives and segment.is_last):
            segment.remove()
            removed += segment.size
    return removed


def _segments(data_dir: Path, uids: Collection[str]) -> Iterator[_Segment]:
    for uid in uids:
        for folder in _folders(data_dir / "pods" / uid / "logs"):
            names = [match for name in os.listdir(folder) if (match := SEGMENT.fullmatch(name))]
            last: dict[str, int] = {}
            for match in names:
                last[match["log"]] = max(last.get(match["log"], 0), int(match["number"] or 0))
            for match in names:
                path = folder / match.string
                with contextlib.suppress(OSError):
                    status = path.stat()
                    is_last = int(match["number"] or 0) == last[match["log"]]
                    yield _Segment(path, status.st_blocks * 512, status.st_mtime, is_last)


def _folders(parent: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
