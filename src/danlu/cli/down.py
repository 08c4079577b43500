"""`danlu down`: stops the server and the pods' processes; with --keep-pods the pods go on and are adopted later."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

from danlu.cli.main import CommandError
from danlu.cli.place import data_directory
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.node.procfs import start_time

SAY_AFTER_S = 2.0
STOP_SECONDS = 90


def arguments(command: argparse.ArgumentParser) -> None:
    help = "leave the pods running; the next `danlu up` takes them up again"
    command.add_argument("--keep-pods", action="store_true", help=help)


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    holder = directory.holder()
    if holder is None:
        return _stop_leftovers(directory, arguments.keep_pods)
    if not holder.pid:
        raise CommandError(f"danlu on {directory.root} is just starting; try again in a moment")
    try:
        os.kill(holder.pid, signal.SIGHUP if arguments.keep_pods else signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended by itself since we looked
    except PermissionError as error:
        raise CommandError(f"pid {holder.pid} belongs to another account; only that one can stop it") from error
    _wait(directory, holder.pid)
    kept = "its pods go on" if arguments.keep_pods else "all objects and volumes stay"
    print(f"stopped (was pid {holder.pid}); {kept} in {directory.root}")
    return 0


def _wait(directory: DataDirectory, pid: int) -> None:
    begun = time.monotonic()
    said = False
    # The directory is free a moment before the process is gone.
    while ((now := directory.holder()) is not None and now.pid in (pid, 0)) or start_time(pid):
        passed = time.monotonic() - begun
        if passed > STOP_SECONDS:
            raise CommandError(f"pid {pid} has not stopped after {STOP_SECONDS} s; `kill -9 {pid}` loses no data")
        if passed > SAY_AFTER_S and not said:
            said = True
            print("waiting for pods to end, each within its grace period", file=sys.stderr)
        time.sleep(0.02)


def _stop_leftovers(directory: DataDirectory, keep_pods: bool) -> int:
    from danlu.embedded.node.adoption import stop_leftovers

    stopped = 0 if keep_pods else stop_leftovers(directory.root)
    if stopped:
        containers = "1 container" if stopped == 1 else f"{stopped} containers"
        print(f"danlu did not run on {directory.root}; stopped {containers} that it had left behind")
    else:
        print(f"danlu does not run on {directory.root}; nothing to stop")
    return 0
