"""`danlu down`: stops the server and the pods' processes; with --keep-pods the pods go on and are adopted later."""

from __future__ import annotations

import argparse
import os
import signal
import time

from danlu.cli.main import CommandError
from danlu.cli.place import data_directory

STOP_SECONDS = 90


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep-pods", action="store_true", help="leave the pods' processes running; `danlu up` adopts them"
    )


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    holder = directory.holder()
    if holder is None or not holder.pid:
        return _stop_orphans(arguments, directory)
    os.kill(holder.pid, signal.SIGHUP if arguments.keep_pods else signal.SIGTERM)
    ends = time.monotonic() + STOP_SECONDS
    while directory.holder() is not None:
        if time.monotonic() > ends:
            raise CommandError(
                f"pid {holder.pid} has not stopped after {STOP_SECONDS} s; `kill -9 {holder.pid}` is safe for its data"
            )
        time.sleep(0.02)
    print(f"stopped (was pid {holder.pid}); all objects and volumes stay in {directory.root}")
    return 0


def _stop_orphans(arguments: argparse.Namespace, directory: object) -> int:
    from danlu.embedded.node.adoption import stop_leftovers

    assert hasattr(directory, "root")
    stopped = 0 if arguments.keep_pods else stop_leftovers(directory.root)
    more = f"; stopped {stopped} processes of pods that it had left" if stopped else ""
    print(f"danlu does not run on {directory.root}{more}")
    return 0
