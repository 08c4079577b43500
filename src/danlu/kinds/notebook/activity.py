"""Asks a notebook what it is doing: JupyterLab's REST API (kernels, terminals, status) and the SSH server beside it.

Through the API server's proxy, which reaches pods wherever the operator runs. What it uses of the processor counts too,
where the cluster measures that: a script in a terminal may compute for days without a word.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import Any

from danlu.client.client import Client
from danlu.errors import ApiError
from danlu.kinds._served import shape
from danlu.kinds._served.observation import Activity
from danlu.kinds.notebook import programs
from danlu.meta.clock import parse_time
from danlu.meta.kind import Object
from danlu.meta.nesting import parse_json
from danlu.meta.quantity import parse
from danlu.meta.wellknown import POD, POD_METRICS, SECRET

TIMEOUT_S = 5.0
MOST_BYTES = 1024 * 1024  # of an answer
BUSY_CORES = 0.05  # an idle JupyterLab uses a hundredth of a core


async def ask(client: Client, obj: Object, pod: Object, now: datetime) -> Activity | None:
    if obj["spec"].get("type", "jupyter") != "jupyter":
        return None
    namespace = obj["metadata"]["namespace"]
    base = programs.base_path(namespace, obj["metadata"]["name"])
    port = programs.PORTS["jupyter"]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            secret = await client.get(SECRET, f"managed-notebook-{shape.digits(obj)}", namespace)
            token = base64.b64decode(secret["data"]["token"]).decode()
            status, kernels, terminals, ssh, cores = await asyncio.gather(
                _get(client, pod, port, f"{base}api/status", token),
                _get(client, pod, port, f"{base}api/kernels", token),
                _get(client, pod, port, f"{base}api/terminals", token, absent=[]),
                _ssh(client, obj, pod),
                _cores(client, pod),
            )
        return judge(status, kernels, terminals, ssh, cores, now)
    except (ApiError, TimeoutError, OSError, ValueError, KeyError, AttributeError, TypeError):
        return None  # not there, or not Jupyter: whatever listens in the pod may say anything


def judge(status: Any, kernels: Any, terminals: Any, ssh: Any, cores: float, now: datetime) -> Activity:
    """The latest of all that is told. What computes is activity in itself, however long it says nothing."""
    stamps = [status.get("last_activity"), *(k.get("last_activity") for k in kernels)]
    stamps += [t.get("last_activity") for t in terminals]
    busy = any(k.get("execution_state") in ("busy", "starting", "restarting") for k in kernels)
    last_ssh = parse_time(ssh["lastActivity"]) if ssh and ssh.get("lastActivity") else None
    if cores >= BUSY_CORES or (ssh and ssh.get("connections")):
        busy = True
    return Activity(now if busy else _latest([*map(_time, stamps), last_ssh]), busy, now, last_ssh)


async def _ssh(client: Client, obj: Object, pod: Object) -> Any:
    if not (obj["spec"].get("ssh") or {}).get("enabled"):
        return None
    return await _get(client, pod, programs.SSH_ACTIVITY_PORT, "/", "", absent=None)


async def _cores(client: Client, pod: Object) -> float:
    """0 where nobody measures it."""
    try:
        found = await client.get(POD_METRICS, pod["metadata"]["name"], pod["metadata"]["namespace"])
    except ApiError:
        return 0.0
    used = [(one.get("usage") or {}).get("cpu", "0") for one in found.get("containers") or ()]
    return sum(parse(str(amount)).milli() for amount in used) / 1000


_RAISE = object()


async def _get(client: Client, pod: Object, port: int, path: str, token: str, absent: Any = _RAISE) -> Any:
    meta = pod["metadata"]
    where = POD.path(meta["namespace"], f"{meta['name']}:{port}", "proxy") + path
    try:
        # Jupyter must not take our question for somebody's activity.
        query = [("token", token), ("no_track_activity", "1")] if token else []
        answer = await client.request("GET", where, query)
    except ApiError:
        if absent is _RAISE:
            raise
        return absent
    return parse_json(await _whole(answer.body))


async def _whole(body: bytes | AsyncIterator[bytes]) -> bytes:
    """What a program in a pod says is as long as it likes; ours is JSON of a few lines."""
    if isinstance(body, bytes):
        return body
    found = b""
    async for chunk in body:
        found += chunk
        if len(found) > MOST_BYTES:
            raise ValueError(f"the notebook's answer is longer than {MOST_BYTES} bytes")
    return found


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((m for m in moments if m is not None), default=None)
