from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.logs.logfiles import LogWriter
from danlu.embedded.node.streams import Streams
from danlu.errors import BadRequest, InternalError
from danlu.meta.kind import Object


class Containers:
    """What `Streams` asks of the real ones."""

    def __init__(self, data_dir: Path, *running: int) -> None:
        self.data_dir = data_dir
        self._running = [SimpleNamespace(name="c", attempt=attempt, pid=1) for attempt in running]

    def running_in(self, _uid: str) -> list[Any]:
        return self._running


def pod(state: Object | None, last: Object | None = None, restarts: int = 0) -> Object:
    made: Object = {"metadata": {"name": "p", "uid": "u"}, "spec": {}}
    if state is not None:
        status = {"name": "c", "state": state, "lastState": last or {}, "restartCount": restarts}
        made["status"] = {"containerStatuses": [status]}
    return made


def streams(data_dir: Path, *running: int) -> Streams:
    return Streams(Containers(data_dir, *running), None)  # type: ignore[arg-type]


TERMINATED = {"terminated": {"exitCode": 1}}


@pytest.mark.parametrize(
    ("running", "found", "previous", "expected"),
    [
        ((0,), pod({"waiting": {"reason": "ContainerCreating"}}), False, 0),  # the status is a moment behind
        ((2,), pod({"running": {}}, TERMINATED, 2), False, 2),
        ((2,), pod({"running": {}}, TERMINATED, 2), True, 1),
        ((), pod(TERMINATED), False, 0),
        ((), pod({"waiting": {"reason": "CrashLoopBackOff"}}, TERMINATED, 3), False, 3),
        ((), pod({"waiting": {"reason": "CrashLoopBackOff"}}, TERMINATED, 3), True, 3),
        ((), pod(TERMINATED, TERMINATED, 1), True, 0),
    ],
)
async def test_which_run_is_meant(
    tmp_path: Path, running: tuple[int, ...], found: Object, previous: bool, expected: int
) -> None:
    writer = LogWriter(logfiles.path_for(str(tmp_path), "u", "c", expected))
    writer.write("stdout", b"this one\n")
    writer.close()
    chunks = await streams(tmp_path, *running).logs(found, "c", previous=previous)
    assert b"".join([chunk async for chunk in chunks]) == b"this one\n"


@pytest.mark.parametrize(
    ("found", "previous", "message"),
    [
        (pod(None), False, 'container "c" in pod "p" is not available'),
        (pod({"running": {}}), True, 'previous terminated container "c" in pod "p" not found'),
        (pod({}), False, 'container "c" in pod "p" is waiting to start - no logs yet'),
        (
            pod({"waiting": {"reason": "ContainerCreating"}}),
            False,
            'container "c" in pod "p" is waiting to start: ContainerCreating',
        ),
        (
            pod({"waiting": {"reason": "ErrImagePull"}}),
            False,
            'container "c" in pod "p" is waiting to start: image can\'t be pulled',
        ),
        (
            pod({"waiting": {"reason": "ImagePullBackOff"}}),
            False,
            'container "c" in pod "p" is waiting to start: trying and failing to pull image',
        ),
    ],
)
async def test_there_is_no_log_yet(tmp_path: Path, found: Object, previous: bool, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        await streams(tmp_path).logs(found, "c", previous=previous)
    assert caught.value.message == message


async def test_nothing_can_be_run_in_a_container_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InternalError) as caught:
        await streams(tmp_path).check(pod(TERMINATED), "c")
    assert caught.value.message == 'unable to upgrade connection: container not found ("c")'
