"""`shareProcessNamespace`: a small process that is number 1 for all containers of a pod, as long as the pod lives.

It is a container like any other to spawner, shim and adoption, with a name that no container of a pod can have. Where
containers have no process numbers of their own there is nothing to share, and none is made.
"""

from __future__ import annotations

import os
import signal
import uuid

from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.pods import adoption
from danlu.embedded.node.sandbox.box import Sandbox
from danlu.embedded.node.sandbox.processes import Container, Containers, ProcessError
from danlu.meta.kind import Object

NAME = adoption.PAUSE
# Whoever ignores SIGCHLD leaves no zombies, and that outlives exec: orphans of all containers become its children.
PROGRAM = ["/bin/sh", "-c", "trap '' CHLD; exec sleep infinity"]


def is_wanted(pod: Object, context: NodeContext) -> bool:
    return bool(pod["spec"].get("shareProcessNamespace") and context.containers.spawner.capabilities.own_pids)


def running(containers: Containers, pod_uid: str) -> Container | None:
    return next((one for one in containers.running_in(pod_uid) if one.name == NAME), None)


async def start(pod: Object, context: NodeContext) -> None:
    """Unless it runs. Raises ProcessError or OSError when it cannot be had."""
    uid, containers = pod["metadata"]["uid"], context.containers
    if not is_wanted(pod, context) or running(containers, uid) is not None:
        return
    attempt = _next_attempt(containers, uid)
    folder = containers.folder(uid, NAME, attempt)
    user = (pod["spec"].get("securityContext") or {}).get("runAsUser")
    box: Sandbox = {
        "mode": context.mode,
        "root": str(folder / "root"),
        "hostname": "pause",
        "mounts": [],
        "cwd": "/",
        "uid": user,
        "own_pids": True,
        "own_ipc": True,
        "default_seccomp": bool(containers.spawner.capabilities.seccomp),
        "drop_capabilities": ["ALL"],
    }
    made = await containers.start(
        uid,
        NAME,
        attempt,
        {
            "id": uuid.uuid4().hex + uuid.uuid4().hex,
            "argv": PROGRAM,
            "env": {"PATH": os.defpath},
            "tty": False,
            "stdin": False,
            "stdin_once": False,
            "log": str(folder / "log"),
            "memory_limit": 0,
            "sandbox": box,
        },
    )
    if made.exit is not None:
        raise ProcessError(f"the pod's shared processes have nothing to begin with: {made.exit['message']}")


def _next_attempt(containers: Containers, pod_uid: str) -> int:
    attempt = 0
    while os.path.exists(containers.folder(pod_uid, NAME, attempt)):
        attempt += 1
    return attempt


async def stop(containers: Containers, pod_uid: str) -> None:
    """After the pod's containers: whatever is left of them ends with it."""
    container = running(containers, pod_uid)
    if container is not None:
        await containers.signal(container.id, signal.SIGKILL)
        await container.ended.wait()
