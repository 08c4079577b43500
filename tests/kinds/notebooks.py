"""Words to speak with a running JupyterLab: its REST API, and cells in a kernel."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any
from urllib.request import Request

from tests.running import Danlu, fetch


def token(danlu: Danlu, notebook: dict[str, Any]) -> str:
    text = danlu.kubectl("get", "secret", notebook["status"]["tokenSecret"], "-o", "jsonpath={.data.token}")
    return base64.b64decode(text).decode()


def ask(notebook: dict[str, Any], path: str, token: str, method: str = "GET", body: Any = None) -> Any:
    address = notebook["status"]["url"].removesuffix("lab")
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    text = fetch(Request(f"{address}{path}", data, headers, method=method))
    return json.loads(text) if text else None


async def run_cell(notebook: dict[str, Any], token: str, code: str) -> str:
    """In a kernel of its own; what it printed."""
    from websockets.asyncio.client import connect

    kernel = ask(notebook, "api/kernels", token, "POST", {"name": "python3"})["id"]
    address = notebook["status"]["url"].removesuffix("lab").replace("http://", "ws://")
    message = {
        "header": {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "s",
                   "version": "5.3", "date": "2026-01-02T03:04:05Z"},
        "parent_header": {}, "metadata": {}, "channel": "shell",
        "content": {"code": code, "silent": False, "allow_stdin": False},
    }  # fmt: skip
    said = ""
    async with connect(f"{address}api/kernels/{kernel}/channels?token={token}", open_timeout=60) as socket:
        await socket.send(json.dumps(message))
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
