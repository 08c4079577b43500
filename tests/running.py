"""`danlu up` as a process of its own, and kubectl as its user has it."""

from __future__ import annotations

import atexit
import base64
import fcntl
import functools
import http.client
import json
import os
import pty
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import yaml

ROOT = Path(__file__).parent.parent
TIMEOUT = 60.0
LONGEST_PAUSE_S = 1.0
ORDINARY = 64321  # a uid that nobody has; root can become it


def until(what: str, look: Callable[[], Any], timeout: float = TIMEOUT, pause_s: float = 0.1) -> Any:
    """Asks until the answer is true: ever more seldom, for each kubectl takes time from what is waited for."""
    begun = time.monotonic()
    answer = None
    while (waited := time.monotonic() - begun) < timeout:
        answer = look()
        if answer:
            return answer
        time.sleep(max(pause_s, min(waited / 10, LONGEST_PAUSE_S)))
    raise AssertionError(f"waited {timeout:.0f} s in vain for {what}; last answer: {answer!r}")


class Danlu:
    pause_s = 0.1  # between two looks at what is waited for

    def __init__(
        self, folder: Path, *flags: str, user: int | None = None, variables: dict[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.flags = flags
        self.user = user
        self.variables = variables or {}
        self.data = folder / "data"
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = self.data / "kubeconfig"
        if user is not None:
            for path in (folder, self.home):
                os.chown(path, user, user)

    # -- running things

    @property
    def environment(self) -> dict[str, str]:
        """As the user's shell would have it: no variables of whoever runs the tests beyond what programs need."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "XDG_CACHE_HOME") if name in os.environ}
        found = {
            **kept,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "DANLU_LANG": "en",
            "DANLU_PULL": "never",
        }
        if "XDG_CACHE_HOME" not in kept:
            found["XDG_CACHE_HOME"] = str(Path("~/.cache").expanduser())  # built environments are shared
        if self.user is not None:
            found |= {"PYTHONPATH": ordinary_packages(), "XDG_CACHE_HOME": str(self.home / ".cache")}
        return found | self.variables

    def _identity(self) -> dict[str, Any]:
        return {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}

    def run(
        self, *words: str, stdin: str = "", check: bool = True, timeout: float = TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        if self.user is not None:  # wherever this checkout lies: in root's home, others may not enter it
            assert not any(str(ROOT) in word for word in words), f"another account may not read {words}"
        done: subprocess.CompletedProcess[str] = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=timeout, env=self.environment,
            cwd=self.home, **self._identity(),
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def terminal(self, command: str, *, when: str = "", keys: str = "", timeout: float = TIMEOUT) -> str:
        """A shell command as it looks to somebody at a terminal, who types `keys` when they read `when`."""
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            ["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.home, start_new_session=True,
            env={**self.environment, "TERM": "xterm"}, preexec_fn=_own_terminal, **self._identity(),
        )  # fmt: skip
        os.close(theirs)
        stop = threading.Timer(timeout, child.kill)
        stop.start()
        said = b""
        try:
            while chunk := os.read(ours, 65536):
                said += chunk
                if when and when.encode() in said:
                    os.write(ours, keys.encode())
                    when = ""
        except OSError:
            pass  # EIO: the last process that had the terminal is gone
        finally:
            stop.cancel()
            os.close(ours)
        text = said.decode(errors="replace").replace("\r\n", "\n")
        if child.wait() != 0:
            raise AssertionError(f"{command} ended with {child.returncode}\n{text}")
        return text

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`danlu WORDS…`"""
        python = sys.executable if self.user is None else ordinary_python()
        name, *rest = words
        return self.run(python, "-m", "danlu", name, "--data-dir", str(self.data), *rest, check=check)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True, timeout: float = TIMEOUT) -> str:
        return self.run("kubectl", *words, stdin=stdin, check=check, timeout=timeout).stdout

    def fails(self, *words: str, stdin: str = "") -> str:
        """What kubectl says on stderr when it must fail."""
        done = self.run("kubectl", *words, stdin=stdin, check=False)
        assert done.returncode != 0, f"kubectl {' '.join(words)} worked, and must not: {done.stdout}"
        return done.stderr

    def wait(self, what: str, look: Callable[[], object], timeout: float = TIMEOUT) -> object:
        """Asks until the answer is true."""
        return until(what, look, timeout, self.pause_s)

    def with_address(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A notebook or TensorBoard whose status.url can be opened from here."""
        return obj

    # -- life

    def up(self) -> str:
        return self.command("up", "--detach", "--port", "0", *self.flags).stdout

    def pid(self) -> int:
        for line in self.command("status").stdout.splitlines():
            if line.startswith("pid "):
                return int(line.split()[1])
        raise AssertionError("danlu status names no pid")

    def kill(self) -> None:
        """As a crash or `kill -9` would."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        self.wait("the process to be gone", lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))

    def down(self) -> None:
        self.command("down")


def fetch(request: Request, timeout: float = TIMEOUT) -> bytes:
    """The answer. A node learns of a Service a moment after its pod is ready: one that is refused is asked again."""
    ends = time.monotonic() + timeout
    while True:
        try:
            with urlopen(request, timeout=timeout) as answer:
                return bytes(answer.read())
        except URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > ends:
                raise
            time.sleep(0.2)


class Api:
    """The API as a plain HTTPS client with the admin's certificate sees it: one connection, opened again when lost."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = str(cluster["server"])
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        with tempfile.NamedTemporaryFile() as pem:
            parts = (user["client-certificate-data"], user["client-key-data"])
            pem.write(b"\n".join(base64.b64decode(part) for part in parts))
            pem.flush()
            self.context.load_cert_chain(pem.name)
        self._connection: http.client.HTTPSConnection | None = None

    def open(self, timeout: float = 20) -> http.client.HTTPSConnection:
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return http.client.HTTPSConnection(host, int(port), context=self.context, timeout=timeout)

    def request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Raises OSError or HTTPException when no whole answer came."""
        data = json.dumps(body).encode() if isinstance(body, dict | list) else body
        self._connection = self._connection or self.open()
        try:
            self._connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})  # type: ignore[arg-type]
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode(errors="replace")


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


@functools.cache
def ordinary_packages() -> str:
    """Where another account finds Danlu and what it needs: here, or, in a checkout that only root may enter, copied."""
    site = next(Path(sys.prefix).glob("lib/python3*/site-packages"))
    places = [ROOT / "src", site]
    if all(folder.stat().st_mode & 0o001 for place in places for folder in [place, *place.parents]):
        return ":".join(map(str, places))
    copy = Path(tempfile.mkdtemp(prefix="danlu-packages-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    needed = [line.partition("==")[0] for line in (ROOT / "requirements/danlu.lock").read_text().splitlines()]
    wanted = {name.lower().replace("-", "_") for name in needed} | {"yaml", "_yaml", "_cffi_backend", "attr", "re2"}
    for entry in site.iterdir():
        plain = entry.name.lower().partition(".")[0].partition("-")[0]
        if plain in wanted:
            (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, copy / entry.name)
    shutil.copytree(ROOT / "src" / "danlu", copy / "danlu")
    return str(copy)


def ordinary_python() -> str:
    """A Python that other accounts may run; this one may lie in root's home."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if os.access(path, os.X_OK):
            return path
    pytest.skip(f"no python{version} that an ordinary account may run")
