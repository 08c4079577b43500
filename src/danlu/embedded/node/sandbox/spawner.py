"""The spawner: a small, single-threaded process that forks a shim for each container.

User namespaces want a single-threaded process, and a fork of this one costs a millisecond where starting Python costs
forty. It is started once by the node, speaks JSON lines on descriptor 0 and ends when the node does; the shims stay.
It is started through `bootstrap.helper_command`.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import socket

from danlu.embedded.node.sandbox import detection, kernel, privileges, seccomp, shim, wire
from danlu.embedded.node.sandbox.box import Capabilities, Sandbox


def main() -> None:
    os.umask(0o077)  # its lock and socket are for this account alone; a shim opens what its container is to see
    control = socket.socket(fileno=0)
    os.set_inheritable(0, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for `danlu up`, which tells us
    found = _detect()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # shims need no one to wait for them
    wire.send(control, found._asdict())
    _prepare(found)
    gc.collect()
    gc.freeze()
    reader = wire.Reader(control)
    while not reader.ended:
        for message in reader.read():
            answer: wire.Message = {"id": message["id"]}
            try:
                answer["pid"] = start_shim(message["folder"], control)
            except OSError as error:
                answer["problem"] = str(error)
            wire.send(control, answer)


def _prepare(found: Capabilities) -> None:
    """What every shim would make for itself otherwise."""
    if found.mode == "none":
        return
    kernel.prepare()
    if found.seccomp:
        box: Sandbox = {"mode": found.mode, "root": "", "hostname": "", "mounts": [], "cwd": "/"}
        seccomp.default_program(os.uname().machine, frozenset(privileges.kept(box)))


def _detect() -> Capabilities:
    """In a child: what is imported for it alone would be copied at every fork."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writer, "wb") as answer:
            answer.write("\0".join(detection.detect()).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        found = answer.read().decode().split("\0")
    os.wait()
    return Capabilities(*found) if found[0] else Capabilities("none", "the spawner cannot try")


def start_shim(folder: str, control: socket.socket) -> int:
    """The socket listens and the lock is held before anyone is told: who connects next does not wait in vain."""
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.exists(os.path.join(folder, "exit.json")):
            raise FileExistsError(f"{folder} has run already")
        os.chdir(folder)  # a socket's path may have 107 bytes at most: a relative one is short
        if os.path.lexists("shim.sock"):
            os.unlink("shim.sock")
        listener.bind("shim.sock")
        listener.listen(64)
        os.chdir("/")
        pid = os.fork()
        if pid == 0:
            os.setsid()
            control.close()
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            shim.main(folder, listener)
        return pid
    finally:
        listener.close()
        os.close(lock)
