"""Which sandbox this machine allows, found by trying: see `namespaces` for the modes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from danlu.embedded.node.network import ownports
from danlu.embedded.node.sandbox import namespaces
from danlu.embedded.node.sandbox.box import Capabilities, Sandbox

FORCED = "DANLU_SANDBOX"  # "none" in the environment: run degraded, to try out what others have to live with


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
        problem = _attempt(mode)
        if not problem:
            who = "as root" if mode == "root" else "through user namespaces"
            lacking = _attempt(mode, ownports.probe)
            if lacking:
                text = f"each container has its own file tree and host name ({who}); ports are shared: {lacking}"
                return Capabilities(mode, text)
            return Capabilities(mode, f"each container has its own file tree, host name and ports ({who})", "yes")
        problems.append(problem)
    return Capabilities("none", f"containers share the host's file tree: {'; '.join(problems)}")


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
    print(json.dumps({"problem": _attempt("root", hide_processes=True)}))


def print_detected() -> None:
    found = detect()
    print(json.dumps(found._asdict()))


def _attempt(
    mode: str, attempt: Callable[[Callable[[], None]], str] | None = None, *, hide_processes: bool = False
) -> str:
    """ "" when a sandbox of this mode can be entered, else why not; `attempt` tries something with who enters it."""
    import tempfile
    from pathlib import Path

    from danlu.embedded.node.pressure.cleanup import remove_tree

    folder = tempfile.mkdtemp(prefix="danlu-sandbox-")
    root = os.path.join(folder, "root")
    os.mkdir(root)
    box: Sandbox = {"mode": mode, "root": root, "hostname": "danlu-probe", "mounts": [], "cwd": "/"}
    box["hide_processes"] = hide_processes
    problem = (attempt or _in_a_child)(lambda: namespaces.enter(box))
    remove_tree(Path(folder))
    return problem


def _in_a_child(enter: Callable[[], None]) -> str:
    reader, writer = os.pipe()
    child = os.fork()
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
