"""The server under attack: a `danlu up` of its own, watched for its memory, and killed when it takes too much."""

from __future__ import annotations

import base64
import contextlib
import os
import resource
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml
from tests.attack.fuzz.wire import Answer, Connection

ROOT = Path(__file__).parents[3]
START_SECONDS = 45.0
# An idle one has 90 MB. What an attack may make it take: bodies of 3 MiB, decoded, a few at a time; not gigabytes.
MOST_MEMORY = 1 << 30
BACKSTOP_MEMORY = 64 << 30  # of addresses: less would refuse what should be seen to grow
LOOK_SECONDS = 0.1


class StartFailed(Exception):
    """`danlu up` did not get ready; the text is the end of its log."""


class Server:
    def __init__(self, folder: Path, *, mutants: tuple[str, ...] = (), flags: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.mutants = mutants
        self.flags = flags  # of `danlu up`
        self.grew_to = 0  # bytes, when it was killed for its memory
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: Connection | None = None
        folder.mkdir(parents=True, exist_ok=True)

    # -- life

    def start(self) -> None:
        """Raises StartFailed."""
        log = self.folder / "log"
        words = ["up", "--data-dir", str(self.data), "--port", "0", "--no-console", *self.flags]
        command = [sys.executable, "-m", "tests.attack.fuzz.mutants", ",".join(self.mutants), *words]
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=ROOT,
                env={**kept, "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")},
            )  # fmt: skip
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (BACKSTOP_MEMORY, BACKSTOP_MEMORY))
        self.grew_to = 0
        threading.Thread(target=self._watch_memory, args=(self._process,), daemon=True).start()
        ends = time.monotonic() + START_SECONDS
        while b" is up: " not in log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > ends:
                raise StartFailed(
                    f"{self.ended or 'not ready in time'}: {log.read_bytes()[-2000:].decode(errors='replace')}"
                )
            time.sleep(0.05)
        self._admin = None

    def _watch_memory(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            if (size := memory_of(process.pid)) > MOST_MEMORY:
                self.grew_to = size
                process.kill()
            time.sleep(LOOK_SECONDS)

    @property
    def ended(self) -> str:
        """How the process ended; "" while it lives."""
        code = self._process.poll() if self._process else None
        if code is None:
            return ""
        if self.grew_to:
            return f"killed at {self.grew_to >> 20} MiB of memory"
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    @property
    def memory(self) -> int:
        return memory_of(self._process.pid) if self._process else 0

    def kill(self) -> None:
        """As a power cut would, pods aside."""
        self.disconnect()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Leaves nothing running."""
        self.kill()
        command = [sys.executable, "-m", "danlu", "down", "--data-dir", str(self.data)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)

    @property
    def ran_short(self) -> bool:
        """It asked for more memory than there is, was refused, and went on."""
        return b"\nMemoryError" in (self.folder / "log").read_bytes()

    # -- talking to it

    def connect(self, token: str = "") -> Connection:
        """As a person with this token; as nobody without one."""
        host, port, authority = self._place()
        return Connection(host, port, ssl.create_default_context(cadata=authority), token)

    @property
    def admin(self) -> Connection:
        if self._admin is None:
            self._admin = self.another_admin()
        return self._admin

    def another_admin(self) -> Connection:
        host, port, authority = self._place()
        context = ssl.create_default_context(cadata=authority)
        user = self._kubeconfig()["users"][0]["user"]
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(b"\n".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
            pem.flush()
            context.load_cert_chain(pem.name)
        return Connection(host, port, context)

    def disconnect(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def ask(self, method: str, target: str, body: bytes | None = None, *, bound_s: float, **headers: str) -> Answer:
        """As the admin."""
        given = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        return self.admin.send(method, target, body, given, bound_s=bound_s)

    def _kubeconfig(self) -> dict:  # type: ignore[type-arg]
        return dict(yaml.safe_load((self.data / "kubeconfig").read_text()))

    def _place(self) -> tuple[str, int, str]:
        cluster = self._kubeconfig()["clusters"][0]["cluster"]
        host, _, port = str(cluster["server"]).removeprefix("https://").rpartition(":")
        return host, int(port), base64.b64decode(cluster["certificate-authority-data"]).decode()


def memory_of(pid: int) -> int:
    """Resident bytes; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0
