"""Words to speak with a running JupyterLab: its REST API, and cells in a kernel."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any
from urllib.request import Request

from tests.running import Danlu, fetch


def token(danlu: Danlu, notebook: dict[str, Any]) -> str:
    where = ("-n", notebook["metadata"]["namespace"])
    text = danlu.kubectl("get", "secret", notebook["status"]["tokenSecret"], *where, "-o", "jsonpath={.data.token}")
    return base64.b64decode(text).decode()


def ask(notebook: dict[str, Any], path: str, token: str, method: str = "GET", body: Any = None) -> Any:
    address = notebook["status"]["url"].removesuffix("lab")
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    text = fetch(Request(f"{address}{path}", data, headers, method=method))
    return json.loads(text) if text else None


def _message(code: str) -> dict[str, Any]:
    return {
        "header": {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "s",
                   "version": "5.3", "date": "2026-01-02T03:04:05Z"},
        "parent_header": {}, "metadata": {}, "channel": "shell",
        "content": {"code": code, "silent": False, "allow_stdin": False},
    }  # fmt: skip


def _socket(notebook: dict[str, Any], path: str, token: str) -> Any:
    from websockets.asyncio.client import connect

    address = notebook["status"]["url"].removesuffix("lab").replace("http://", "ws://")
    return connect(f"{address}{path}?token={token}", open_timeout=60)


async def start_cell(notebook: dict[str, Any], token: str, code: str) -> str:
    """In a kernel of its own, which is named; returns when the code runs."""
    kernel: str = ask(notebook, "api/kernels", token, "POST", {"name": "python3"})["id"]
    async with _socket(notebook, f"api/kernels/{kernel}/channels", token) as socket:
        await socket.send(json.dumps(_message(code)))
        while json.loads(await socket.recv())["header"]["msg_type"] != "execute_input":
            pass
    return kernel


async def in_terminal(notebook: dict[str, Any], token: str, line: str) -> str:
    """Typed into a terminal of its own, which is named; the page is closed and the terminal stays."""
    name: str = ask(notebook, "api/terminals", token, "POST")["name"]
    async with _socket(notebook, f"terminals/websocket/{name}", token) as socket:
        await socket.send(json.dumps(["stdin", line + "\r"]))
        said = ""
        while line[-10:] not in said:
            kind, *words = json.loads(await socket.recv())
            said += "".join(map(str, words)) if kind == "stdout" else ""
    return name


async def run_cell(notebook: dict[str, Any], token: str, code: str) -> str:
    """In a kernel of its own; what it printed."""
    kernel = ask(notebook, "api/kernels", token, "POST", {"name": "python3"})["id"]
    said = ""
    async with _socket(notebook, f"api/kernels/{kernel}/channels", token) as socket:
        await socket.send(json.dumps(_message(code)))
        while True:
            answer = json.loads(await socket.recv())
            kind, content = answer["header"]["msg_type"], answer["content"]
            if kind == "stream":
                said += content["text"]
            elif kind == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif kind == "execute_reply":
                break
    ask(notebook, f"api/kernels/{kernel}", token, "DELETE")
    return said
