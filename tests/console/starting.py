"""`danlu console` as a process of its own."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def danlu_console(kubeconfig: Path, *options: str, environment: Mapping[str, str], folder: Path) -> Iterator[str]:
    """Its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # known here also when --url says something else
    words = ["console", "--kubeconfig", str(kubeconfig), "--port", str(port), "--apps-port", "0", *options]
    child = subprocess.Popen(
        [sys.executable, "-m", "danlu", *words], stdout=subprocess.PIPE, text=True, env=dict(environment), cwd=folder
    )
    assert child.stdout is not None
    try:
        assert select.select([child.stdout], [], [], 30)[0], "it said nothing"
        assert re.search(r" is at http://\S+ \(notebooks: http://\S+\)", child.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait(20)
        child.stdout.close()
