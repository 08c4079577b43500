"""Which sandbox this machine allows, found by trying: see `namespaces` for the modes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from danlu.embedded.node.network import ownports
from danlu.embedded.node.sandbox import devicecgroup, kernel, namespaces, seccomp
from danlu.embedded.node.sandbox.box import Capabilities, Sandbox

FORCED = "DANLU_SANDBOX"  # "none" in the environment: run degraded, to try out what others have to live with
SHARED_PIDS = "DANLU_PIDS"  # "shared": as on a machine that allows no namespaces of process numbers


def detect() -> Capabilities:
    """Tries each mode in a child. Call it from a single-threaded process."""
    if not sys.platform.startswith("linux"):
        return Capabilities("none", f"{sys.platform} has no namespaces: containers share the host's file tree")
    if os.environ.get(FORCED) == "none":
        return Capabilities("none", f"containers share the host's file tree, because {FORCED}=none asks for it")
    problems: list[str] = []
    for mode in ("root", "user"):
        if mode == "root" and os.geteuid() != 0:
            continue
        no_pids = _shared_pids() or _attempt(mode, own_pids=True)
        problem = _attempt(mode) if no_pids else ""
        if not problem:
            return _found(mode, no_pids, _attempt(mode, ownports.probe, own_pids=not no_pids))
        problems.append(problem)
    return Capabilities("none", f"containers share the host's file tree: {'; '.join(problems)}")


def _shared_pids() -> str:
    return f"{SHARED_PIDS}=shared asks for it" if os.environ.get(SHARED_PIDS) == "shared" else ""


def _found(mode: str, no_pids: str, no_ports: str) -> Capabilities:
    who = "as root" if mode == "root" else "through user namespaces"
    own = ["file tree", *([] if no_pids else ["processes"]), "host name", *([] if no_ports else ["ports"])]
    text = f"each container has its own {', '.join(own[:-1])} and {own[-1]} ({who})"
    if no_pids:
        text += f"; processes are shared: {no_pids}"
    if no_ports:
        text += f"; ports are shared: {no_ports}"
    no_seccomp = _in_a_child(os.fork, lambda: _refuse_calls(mode))
    if no_seccomp:
        text += f"; no system calls are refused: {no_seccomp}"
    ports, pids, calls = ("" if problem else "yes" for problem in (no_ports, no_pids, no_seccomp))
    return Capabilities(mode, text, ports, pids, calls, devicecgroup.find() if mode == "root" else "")


def _refuse_calls(mode: str) -> None:
    if mode == "user":
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.load_default(())
    os.nice(0)  # still allowed


def capabilities() -> Capabilities:
    """For `danlu status`: asks a fresh interpreter, because a process with threads must not fork and unshare."""
    found = _asked("print_detected")
    return Capabilities(**found) if "mode" in found else Capabilities("none", found["problem"])


def hiding_problem() -> str:
    """Why a container cannot have a /proc with the processes of its own user alone; "" when it can."""
    return _asked("print_hiding_problem")["problem"]


def _asked(function: str) -> dict[str, str]:
    import subprocess

    from danlu.embedded.node.sandbox.interpreter import helper_command

    answer = subprocess.run(helper_command("detection", function), capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return {"problem": answer.stderr.strip().rsplit("\n", 1)[-1]}
    found: dict[str, str] = json.loads(answer.stdout)
    return found


def print_hiding_problem() -> None:
    problem = _attempt("root", hide_processes=True, own_pids=not _shared_pids())
    print(json.dumps({"problem": problem}))


def print_detected() -> None:
    found = detect()
    print(json.dumps(found._asdict()))


Attempt = Callable[[Callable[[], int], Callable[[], None]], str]


def _attempt(mode: str, attempt: Attempt | None = None, *, hide_processes: bool = False, own_pids: bool = False) -> str:
    """ "" when a sandbox of this mode can be entered, else why not; `attempt` tries something with who enters it."""
    import tempfile
    from pathlib import Path

    from danlu.embedded.node.pressure.cleanup import remove_tree

    folder = tempfile.mkdtemp(prefix="danlu-sandbox-")
    root = os.path.join(folder, "root")
    os.mkdir(root)
    box: Sandbox = {"mode": mode, "root": root, "hostname": "danlu-probe", "mounts": [], "cwd": "/"}
    box["hide_processes"], box["own_pids"], box["own_ipc"] = hide_processes, own_pids, own_pids
    place = namespaces.NewNamespaces(box)
    try:
        problem = (attempt or _in_a_child)(place.fork, place.enter)
    except OSError as error:  # the fork itself
        problem = str(error)
    remove_tree(Path(folder))
    return problem


def _in_a_child(fork: Callable[[], int], enter: Callable[[], None]) -> str:
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        problem = ""
        try:
            enter()
        except BaseException as error:  # whatever it is, it is the answer
            problem = str(error) or type(error).__name__
        os.write(writer, problem.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        problem = answer.read().decode()
    os.waitpid(child, 0)
    return problem
