"""The SSH server of a notebook; runs inside its pod, where Danlu is not installed: standard library and asyncssh only.

Public keys are read anew for each log-in, so that a changed Secret counts at once. Any user name is taken: all of them
are the user the container runs as. A second port tells, over HTTP, when a client last did something.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ADDRESS = os.environ.get("NB_ADDRESS", "0.0.0.0")
PORT, ACTIVITY_PORT = 2222, 2223
LAST_WORDS_S = 2.0
KEYS = Path("/etc/danlu/authorized-keys")
HOST_KEY = Path(os.environ.get("HOME", "/tmp")) / ".ssh" / "notebook_host_key"
SHELL = os.environ.get("SHELL", "/bin/bash")


class Activity:
    last = datetime.now(UTC)
    running = 0  # programs without a terminal: copies, remote editors

    @classmethod
    def touch(cls) -> None:
        cls.last = datetime.now(UTC)


def key_files() -> list[Path]:
    """Of all Secrets: one folder for each."""
    return [path for path in sorted(KEYS.glob("*/*")) if not path.name.startswith("..") and path.is_file()]


def public_keys() -> str:
    return "\n".join(path.read_text().strip() for path in key_files()) + "\n"


async def tell_activity(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    body = json.dumps({"lastActivity": Activity.last.isoformat(), "connections": Activity.running}).encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    with suppress(OSError):
        await writer.drain()
    writer.close()


async def serve_with_asyncssh(asyncssh: Any) -> None:
    class Server(asyncssh.SSHServer):  # type: ignore[misc]  # the package is only there in the pod
        def connection_made(self, conn: Any) -> None:
            self.connection = conn
            Activity.touch()

        def begin_auth(self, username: str) -> bool:
            self.connection.set_authorized_keys(asyncssh.import_authorized_keys(public_keys()))
            return True

        def connection_requested(self, host: str, port: int, *_from: Any) -> Any:
            """For `ssh -L` and remote editors. asyncssh's own never ends where the far side hangs up first."""
            return partial(relay, host, port)

        def connection_lost(self, _error: Exception | None) -> None:
            Activity.touch()

    class Files(asyncssh.SFTPServer):  # type: ignore[misc]
        def exit(self) -> None:
            Activity.touch()
            self.channel.exit(0)  # without it `scp` takes a copy that went well for one that failed

    async def run(process: Any) -> None:
        Activity.touch()
        if process.term_type:
            await in_terminal(asyncssh, process)
        else:
            await without_terminal(process)

    if not HOST_KEY.exists():
        HOST_KEY.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(HOST_KEY))
        HOST_KEY.chmod(0o600)
    await asyncio.start_server(tell_activity, ADDRESS, ACTIVITY_PORT)
    server = await asyncssh.create_server(
        Server, ADDRESS, PORT, server_host_keys=[str(HOST_KEY)], process_factory=run, encoding=None,
        sftp_factory=Files, allow_scp=True,
    )  # fmt: skip
    print(f"ssh: listening on {ADDRESS}:{PORT}", flush=True)
    await server.wait_closed()


def command_line(process: Any) -> list[str]:
    return [SHELL, "-c", process.command] if process.command else [SHELL, "-l"]


def variables(process: Any) -> dict[str, str]:
    sent = {name: value for name, value in (process.env or {}).items() if isinstance(name, str)}
    found = {**os.environ, **sent}
    if process.term_type:
        found["TERM"] = process.term_type
    return found


def resize(terminal: int, size: tuple[int, ...]) -> None:
    columns, rows, *pixels = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, *(pixels or (0, 0))))


def own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


async def in_terminal(asyncssh: Any, process: Any) -> None:
    ours, theirs = pty.openpty()
    resize(ours, process.term_size)
    child = await asyncio.create_subprocess_exec(
        *command_line(process), stdin=theirs, stdout=theirs, stderr=theirs, env=variables(process),
        start_new_session=True, preexec_fn=own_terminal,
    )  # fmt: skip
    os.close(theirs)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", 0))

    async def show() -> None:
        with suppress(OSError):  # the last user of the terminal is gone
            while chunk := await reader.read(65536):
                process.stdout.write(chunk)

    async def type_in() -> None:
        while True:
            try:
                typed = await process.stdin.read(65536)
            except asyncssh.TerminalSizeChanged as change:
                resize(ours, (change.width, change.height, change.pixwidth, change.pixheight))
                continue
            except (asyncssh.BreakReceived, asyncssh.SignalReceived):
                continue
            if not typed:
                os.write(ours, b"\x04")  # the end of what is typed, as a terminal tells it
                return
            Activity.touch()
            os.write(ours, typed)

    async def hang_up() -> None:
        await process.channel.wait_closed()
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGHUP)

    showing, typing, waiting = (asyncio.create_task(task) for task in (show(), type_in(), hang_up()))
    code = await child.wait()
    await asyncio.wait([showing], timeout=LAST_WORDS_S)
    typing.cancel()
    waiting.cancel()
    os.close(ours)
    process.exit(code if code >= 0 else 128 - code)


async def copy(reader: Any, writer: Any) -> None:
    with suppress(OSError):  # the client is gone
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()


async def relay(host: str, port: int, reader: Any, writer: Any) -> None:
    """Each direction ends by itself; when both have, the connection is over."""

    async def carry(source: Any, sink: Any) -> None:
        await copy(source, sink)
        with suppress(OSError):
            sink.write_eof()

    Activity.touch()
    try:
        far_reader, far_writer = await asyncio.open_connection(host, port)
    except OSError:  # nothing listens there: the client sees its connection closed
        writer.close()
        return
    try:
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
    finally:  # also when the client's whole connection is lost
        far_writer.close()
        writer.close()
        Activity.touch()


async def without_terminal(process: Any) -> None:
    Activity.running += 1
    try:
        child = await asyncio.create_subprocess_exec(
            *command_line(process), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=variables(process), start_new_session=True,
        )  # fmt: skip
        await process.redirect(stdin=child.stdin)
        both = ((child.stdout, process.stdout), (child.stderr, process.stderr))
        copies = [asyncio.create_task(copy(reader, writer)) for reader, writer in both]
        code = await child.wait()
        # Its last words may still be in the pipe; something that it left in the background may hold the pipe for ever.
        await asyncio.wait(copies, timeout=LAST_WORDS_S)
        for one in copies:
            one.cancel()
        process.exit(code if code >= 0 else 128 - code)
    finally:
        Activity.running -= 1
        Activity.touch()


def become_sshd() -> None:
    sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if sshd is None:
        sys.exit("ssh: the image has neither the Python package asyncssh nor an sshd")
    if not HOST_KEY.exists():
        HOST_KEY.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(HOST_KEY)], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)  # what its start script would make
    # Whoever logs in finds the container's programs; sshd begins with an empty environment.
    kept = {name: value for name, value in os.environ.items() if not {'"', "\n", "\\"} & {*value}}
    options = {
        "HostKey": str(HOST_KEY), "AuthorizedKeysFile": " ".join(map(str, key_files())), "Port": str(PORT),
        "ListenAddress": ADDRESS, "PidFile": "none", "StrictModes": "no", "PasswordAuthentication": "no",
        "UsePAM": "no",
        "KbdInteractiveAuthentication": "no", "Subsystem": "sftp internal-sftp",
        "SetEnv": " ".join(f'"{name}={value}"' for name, value in kept.items()),
    }  # fmt: skip
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    os.execv(sshd, [sshd, "-D", "-e", "-f", "/dev/null", *words])


def main() -> None:
    try:
        import asyncssh  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        become_sshd()
    else:
        asyncio.run(serve_with_asyncssh(asyncssh))


if __name__ == "__main__":
    main()
