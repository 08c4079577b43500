"""The process of one RUN: makes the sandbox, runs the command in it, passes on what it prints, ends what it leaves.

Arguments come as JSON on the standard input; what the command prints goes to the standard output; how it ended goes to
the file `ended`. Standard library only: see `sandbox/interpreter`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from typing import NoReturn, TypedDict

from danlu.embedded.node.sandbox import containerprocess, kernel, namespaces
from danlu.embedded.node.sandbox.box import Sandbox
from danlu.embedded.node.sandbox.procfs import descendants, exit_code

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CHUNK = 65536
DRAIN_S = 2.0  # for the last words when somebody still holds the pipe
ROUNDS = 5000


class StepSpec(TypedDict):
    argv: list[str]
    env: dict[str, str]
    sandbox: Sandbox
    ended: str  # a file


class StepEnd(TypedDict):
    exit_code: int
    problem: str  # why it could not even begin


def main() -> None:
    parent = os.getppid()
    kernel.prctl(PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return
    step: StepSpec = json.load(sys.stdin)
    os.umask(0o022)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _give_up)
    ended = _run(step)
    with open(step["ended"], "w") as file:
        json.dump(ended, file)


def _give_up(number: int, _frame: object) -> NoReturn:
    end_all()
    os._exit(128 + number)


def _run(step: StepSpec) -> StepEnd:
    box = step["sandbox"]
    program = containerprocess.Program(step["argv"], step["env"], box, False, False)
    spawned = containerprocess.spawn(namespaces.NewNamespaces(box), program)
    if spawned.problem:
        spawned.give_up()
        return {"exit_code": 127, "problem": spawned.problem}
    with selectors.DefaultSelector() as selector:
        for fd, _ in spawned.outputs:
            selector.register(fd, selectors.EVENT_READ)
        selector.register(os.pidfd_open(spawned.pid), selectors.EVENT_READ, "ended")
        _pass_on(selector, None)
        _, status = os.waitpid(spawned.pid, 0)
        end_all()
        _pass_on(selector, time.monotonic() + DRAIN_S)
    return {"exit_code": exit_code(status), "problem": ""}


def _pass_on(selector: selectors.BaseSelector, until: float | None) -> None:
    """What comes, until the command ends; with `until`, what is left of it."""
    while selector.get_map() and (until is None or time.monotonic() < until):
        ready = selector.select(None if until is None else 0.05)
        if until is not None and not ready:
            return
        for key, _ in ready:
            if key.data == "ended":
                selector.unregister(key.fileobj)
                os.close(key.fd)
                if until is None:
                    return
                continue
            data = os.read(key.fd, CHUNK)
            if data:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                selector.unregister(key.fileobj)


def end_all() -> None:
    """Orphans come to us (subreaper): each round ends one generation."""
    for _ in range(ROUNDS):
        left = descendants(os.getpid())
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not left:
            return
        time.sleep(0.002)
