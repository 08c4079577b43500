"""`danlu up`: one process with everything in it, in the foreground or detached."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import json
import logging
import os
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from danlu import __version__
from danlu.cli.main import SHOW_TRACEBACK, CommandError, UsageError
from danlu.cli.place import data_directory
from danlu.cli.shares import parse_nodes
from danlu.cli.trust import refusal
from danlu.embedded import private_files
from danlu.embedded.storage import DataDirectoryError
from danlu.embedded.trust import Unshareable
from danlu.settings import AuditSettings, ClusterSettings, default_home

if TYPE_CHECKING:
    from danlu.cli.embeddedconsole import EmbeddedConsole
    from danlu.embedded.cluster import Cluster
    from danlu.runtime.manager import Manager

log = logging.getLogger("danlu.up")

Report = Callable[[dict[str, Any]], None]
READY_SECONDS = 60
STOP_MARGIN_S = 30.0  # beyond the pods' own grace
LOG_BYTES = 10 << 20  # of danlu.log; a longer one is put aside at the next start
# What danlu and its helpers make is their owner's alone; what pods are to see is opened on purpose where it is made.
UMASK = 0o077


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, default=None, help="port of the API (default: 6443; 0: any free one)")
    command.add_argument("--host", default="127.0.0.1", help="address of the API (default: 127.0.0.1)")
    command.add_argument("--detach", "-d", action="store_true", help="go to the background; returns when it is ready")
    command.add_argument(
        "--nodes",
        default="1",
        metavar="N|SPEC",
        help="virtual nodes: a number (equal shares of this machine), or NAME:cpu=2,memory=4Gi,gpu=1;NAME:…",
    )
    command.add_argument(
        "--images",
        choices=("lenient", "strict"),
        default="lenient",
        help="unknown image names: run them in the default environment and say so, or fail to pull (default: lenient)",
    )
    command.add_argument(
        "--fake-gpus", type=int, default=0, metavar="N", help="pretend to have N GPUs, to try out scheduling"
    )
    command.add_argument(
        "--console-port",
        type=int,
        default=None,
        metavar="PORT",
        help="port of the web console (default: 8080, or any free one if that is taken)",
    )
    command.add_argument(
        "--shared",
        action="store_true",
        help="for several people who need not trust each other; refuses to start where that cannot be promised",
    )
    command.add_argument(
        "--audit-policy-file",
        type=Path,
        metavar="FILE",
        help="keep an audit log; what it records says this file (audit.k8s.io/v1 Policy)",
    )
    command.add_argument(
        "--audit-log-path",
        type=Path,
        metavar="FILE",
        help="the audit log (default: audit.log in the data directory; -: the standard output)",
    )
    command.add_argument(
        "--audit-log-maxsize",
        type=int,
        default=100,
        metavar="MIB",
        help="size at which the audit log is put aside and a new one begun (default: 100)",
    )
    command.add_argument(
        "--audit-log-maxbackup",
        type=int,
        default=10,
        metavar="N",
        help="audit logs put aside that are kept (default: 10)",
    )
    command.add_argument("--no-console", action="store_true", help="without the web console")
    command.add_argument("--verbose", "-v", action="store_true", help="log more")
    command.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    os.umask(UMASK)
    if settings.shared and arguments.ready_fd is None:
        _require_trust(settings)
    if arguments.detach and arguments.ready_fd is None:
        return _detach(arguments)
    _set_up_logging(arguments.verbose)
    report = _reporter(arguments)
    gc.disable()  # until everything is there: see _calm_garbage_collection
    try:
        return _run_loop(_serve(settings, report, _console_port(arguments)))
    except (DataDirectoryError, OSError, Unshareable) as error:
        report({"error": _explain(error, settings)})
        raise CommandError(_explain(error, settings)) from error


def _require_trust(settings: ClusterSettings) -> None:
    from danlu.embedded import trust
    from danlu.embedded.node import sandbox

    pods = sandbox.capabilities()
    hiding_problem = sandbox.hiding_problem() if pods.mode == "root" else ""
    problems = trust.unmet(pods, hiding_problem, settings.data_dir.expanduser().absolute())
    if problems:
        raise CommandError(refusal(problems))


def _settings(arguments: argparse.Namespace) -> ClusterSettings:
    if arguments.port is not None and not 0 <= arguments.port <= 65535:
        raise UsageError(f"--port {arguments.port} is not a port; choose 1 to 65535, or 0 for any free one")
    if arguments.fake_gpus < 0:
        raise UsageError(f"--fake-gpus {arguments.fake_gpus} is less than none")
    try:
        nodes = parse_nodes(arguments.nodes)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from error
    return ClusterSettings(
        data_dir=arguments.data_dir or default_home(),
        host=arguments.host,
        port=6443 if arguments.port is None else arguments.port,
        nodes=nodes,
        images=arguments.images,
        fake_gpus=arguments.fake_gpus,
        shared=arguments.shared,
        audit=_audit_settings(arguments),
    )


def _audit_settings(arguments: argparse.Namespace) -> AuditSettings:
    policy: Path | None = arguments.audit_policy_file
    if policy is None:
        if arguments.audit_log_path is not None:
            raise UsageError("--audit-log-path needs --audit-policy-file: without a policy nothing is recorded")
        return AuditSettings()
    if arguments.audit_log_maxsize < 1 or arguments.audit_log_maxbackup < 0:
        raise UsageError("--audit-log-maxsize must be at least 1 (MiB) and --audit-log-maxbackup at least 0")
    from danlu.embedded.apiserver.audit.policy import PolicyError, read_policy

    try:
        read_policy(policy)
    except PolicyError as error:
        raise UsageError(str(error)) from error
    log_path: Path | None = arguments.audit_log_path
    return AuditSettings(policy, log_path, arguments.audit_log_maxsize, arguments.audit_log_maxbackup)


def _console_port(arguments: argparse.Namespace) -> int | None:
    """-1: no console."""
    port: int | None = arguments.console_port
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(f"--console-port {port} is not a port; choose 1 to 65535, or 0 for any free one")
    return -1 if arguments.no_console else port


def _set_up_logging(verbose: bool) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )


def _explain(error: Exception, settings: ClusterSettings) -> str:
    if isinstance(error, Unshareable):
        return refusal(error.problems)
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.EADDRINUSE:
        return f"port {settings.port} of {settings.host} is taken; choose another with --port (0: any free one)"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"--host {settings.host} is no address of this machine; leave it out for 127.0.0.1"
    if isinstance(error, ssl.SSLError):
        return f"the certificates in {settings.data_dir}/pki cannot be used; move them away and new ones are made"
    if isinstance(error, PermissionError) and error.filename is None:
        return f"port {settings.port} may not be used by this account; choose one from 1024 on with --port"
    where = f" ({error.filename})" if error.filename else ""
    return f"it could not start: {error.strerror or error}{where}"


def _run_loop(main: Coroutine[Any, Any, int]) -> int:
    import uvloop

    return uvloop.run(main)


def _calm_garbage_collection() -> None:
    """What was made at the start stays: it need not be looked at again and again.

    Nearly everything here is freed by reference counts; Python's thresholds are for programs with far fewer objects,
    and at thousands of objects a second they cost a sixth of the processor.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


async def _serve(settings: ClusterSettings, report: Report, console_port: int | None) -> int:
    from danlu.embedded.cluster import Cluster

    cluster = Cluster(settings)
    stop, asked = asyncio.Event(), set[int]()

    def on_signal(number: int) -> None:
        if number == signal.SIGINT and stop.is_set():
            os._exit(130)  # as safe as kill -9: what is acknowledged is on the disk
        asked.add(number)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal, number)
    starting = asyncio.create_task(_start(cluster, console_port))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return 1
    platform, console = starting.result()
    _calm_garbage_collection()
    facts = cluster.describe() | ({"console": console.link} if console else {})
    report({"pid": os.getpid(), "lines": _banner(cluster.url, cluster.directory.root, facts)})
    await stop.wait()
    # SIGHUP is `danlu down --keep-pods`, and a terminal that is closed: trainings go on.
    keep_pods = asked == {signal.SIGHUP}
    if sys.stdout.isatty() and not keep_pods:
        print("stopping; pods end within their grace periods (Ctrl-C again leaves them running)", flush=True)
    patience = STOP_MARGIN_S + (0.0 if keep_pods else cluster.longest_grace_s())
    ending = asyncio.create_task(_stop(cluster, platform, console, keep_pods))
    done, _ = await asyncio.wait({ending}, timeout=patience)
    if not done:  # whatever it waits for: what is acknowledged is on the disk, and `danlu down` ends
        log.error("it has not stopped within %.0f s and ends now", patience)
        os._exit(1)
    ending.result()
    return 0


async def _stop(cluster: Cluster, platform: Manager, console: EmbeddedConsole | None, keep_pods: bool) -> None:
    if console is not None:
        await console.stop()
    await platform.stop()
    await cluster.stop(stop_pods=not keep_pods)
    if console is not None:
        console.release(pods_ended=not keep_pods)


async def _start(cluster: Cluster, console_port: int | None) -> tuple[Manager, EmbeddedConsole | None]:
    await cluster.start()
    try:
        return await _start_platform(cluster, console_port)
    except BaseException:
        await cluster.stop(stop_pods=False)  # nothing half-started holds the port
        raise


async def _start_platform(cluster: Cluster, console_port: int | None) -> tuple[Manager, EmbeddedConsole | None]:
    from danlu.cli.platform import start_platform

    if console_port == -1:
        return await start_platform(cluster), None
    from danlu.cli.embeddedconsole import EmbeddedConsole

    # Its ports first: notebooks say where they are to be opened.
    console = EmbeddedConsole(cluster, console_port)
    platform = await start_platform(cluster, console.settings.apps_url)
    await console.start()
    return platform, console


def _banner(url: str, root: Path, facts: dict[str, str]) -> list[str]:
    lines = [f"Danlu {__version__} is up: a Kubernetes v1.36 at {url}"]
    lines += [f"  {name:<9} {value}" for name, value in {"data": str(root), **facts}.items()]
    lines += ["", "Paste this to use it:", "", f"  export KUBECONFIG={shlex.quote(str(root / 'kubeconfig'))}", ""]
    return lines


def _reporter(arguments: argparse.Namespace) -> Report:
    """Says what came of the start: to the parent that detached us, or to the terminal."""

    def report(outcome: dict[str, Any]) -> None:
        if arguments.ready_fd is not None:
            with os.fdopen(arguments.ready_fd, "w") as pipe:
                json.dump(outcome, pipe)
        elif "lines" in outcome:
            with contextlib.suppress(OSError):  # into a file on a full disk
                print("\n".join(outcome["lines"]), flush=True)

    return report


def _detach(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    try:
        directory.prepare()
    except DataDirectoryError as error:
        raise CommandError(str(error)) from error
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "danlu", *sys.argv[1:], "--ready-fd", str(write_end)]
    with _open_log(directory.log) as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=(write_end,),
            start_new_session=True, env={**os.environ, SHOW_TRACEBACK: "1"},
        )  # fmt: skip
    os.close(write_end)
    outcome = _wait(child, read_end)
    if outcome is None:
        raise CommandError(f"it did not start; the reason is at the end of {directory.log}")
    if "error" in outcome:
        raise CommandError(str(outcome["error"]))
    print("\n".join(outcome["lines"]))
    return 0


def _open_log(path: Path) -> BinaryIO:
    with contextlib.suppress(OSError):
        if path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
    try:
        return path.open("ab")
    except OSError as error:
        if not private_files.is_full(error):
            raise
        return open(os.devnull, "ab")  # it starts, so that room can be made


def _wait(child: subprocess.Popen[bytes], read_end: int) -> dict[str, Any] | None:
    """What the child reports, or None when it died or said nothing in time."""
    os.set_blocking(read_end, False)
    data = b""
    ends = time.monotonic() + READY_SECONDS
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        while time.monotonic() < ends:
            chunk = pipe.read(65536)
            if chunk:
                data += chunk
            elif chunk == b"":
                break
            else:
                time.sleep(0.005)
    with contextlib.suppress(ValueError):
        result: dict[str, Any] = json.loads(data)
        return result
    return None
