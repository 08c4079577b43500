"""What is kept of the embedded cluster's console between two starts, and the link that leads into it.

DATA/console.json   {"token", "key", "port", "appsPort", "pid", "ended"}, for its owner's eyes only

`ended`: it stopped in good order, and held its ports until the last pod was gone.
"""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

from danlu.embedded import private_files

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
KEY_BYTES = 32


class ConsoleFile:
    def __init__(self, root: Path) -> None:
        self._path = root / "console.json"

    def read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return {key: value for key, value in found.items() if _usable(key, value)} if isinstance(found, dict) else {}

    def write(self, content: dict[str, Any]) -> None:
        """A full disk keeps what was there: the console works, and only `danlu status` does not know its link."""
        try:
            private_files.write(self._path, json.dumps(content).encode())
        except OSError as error:
            if not private_files.is_full(error):
                raise
            log.warning("%s could not be written: %s", self._path, error.strerror)


def _usable(key: str, value: Any) -> bool:
    """A damaged file costs what is damaged in it: a new key, or another port."""
    if key in ("port", "appsPort"):
        return isinstance(value, int) and 0 < value < 65536
    if key == "key":
        try:
            return len(base64.b64decode(value, validate=True)) == KEY_BYTES
        except (ValueError, TypeError):
            return False
    return key != "token" or (isinstance(value, str) and value.isascii() and value.isalnum())


def link(root: Path, pid: int) -> str:
    """Where the console of the danlu with this process id is; "" when it has none."""
    kept = ConsoleFile(root).read()
    if kept.get("pid") != pid or not kept.get("token") or not kept.get("port"):
        return ""
    return f"http://{HOST}:{kept['port']}/?token={kept['token']}"
