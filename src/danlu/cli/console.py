"""`danlu console`: the web console of any Kubernetes, on this machine or as a Deployment in the cluster.

`danlu up` has one of its own (`embeddedconsole.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import logging
import os
import secrets
import signal
from pathlib import Path
from urllib.parse import urlsplit

from danlu.cli import consoleidentity as identity
from danlu.cli.main import CommandError, UsageError
from danlu.client import config
from danlu.console.app import Console
from danlu.console.apps import Apps
from danlu.console.kubeapi import OverHttp
from danlu.console.reaching import Directly, Reach, ThroughApi
from danlu.console.settings import HOUR, SCOPES, ConsoleSettings
from danlu.listening import Listening, bind
from danlu.operator import logs

log = logging.getLogger(__name__)

KEY_VARIABLE = "DANLU_SESSION_KEY"
SHORTEST_KEY = 16  # bytes


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    command.add_argument("--port", type=int, default=8080, help="of the pages (default: 8080; 0: any free one)")
    command.add_argument("--apps-port", type=int, default=8081, help="of notebooks and TensorBoards (default: 8081)")
    command.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="default: $KUBECONFIG, the pod's own account, ~/.kube/config"
    )
    command.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (default: its current one)")
    command.add_argument("--url", default="", metavar="URL", help="where people open it (default: this machine)")
    command.add_argument(
        "--apps-url",
        default="",
        metavar="URL",
        help="where they open notebooks; https://*.apps.example.com: each has a host name of its own",
    )
    command.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="another name it is reached by; may be repeated"
    )
    command.add_argument(
        "--apps-through",
        choices=("auto", "services", "api"),
        default="auto",
        help="the way to notebooks: their Services by name (in a pod), or the API server's proxy (default: auto)",
    )
    command.add_argument(
        "--session-key-file",
        type=Path,
        metavar="FILE",
        help=f"a secret that all replicas share; also ${KEY_VARIABLE} (default: a new one at each start)",
    )
    command.add_argument("--session-hours", type=float, default=12, metavar="N", help="a sign-in's life (default: 12)")
    command.add_argument("--oidc-issuer", default="", metavar="URL", help="sign-in with this identity provider")
    command.add_argument("--oidc-client-id", default="", metavar="ID", help="as whom the console is known there")
    command.add_argument("--oidc-client-secret-file", type=Path, metavar="FILE", help="if it has given one")
    command.add_argument("--oidc-scopes", default="", metavar="WORDS", help=f"what is asked for (default: {SCOPES})")
    command.add_argument(
        "--oidc-token",
        choices=identity.TOKENS,
        default="",
        help="which of its tokens the cluster knows people by (default: id_token)",
    )
    command.add_argument("--oidc-ca-file", type=Path, metavar="FILE", help="authority of its certificate (PEM)")
    command.add_argument(
        "--oidc-folder",
        type=Path,
        metavar="FOLDER",
        help=f"the same as files, such as a mounted Secret ({', '.join(identity.FILES)}); changes are taken up",
    )
    command.add_argument(
        "--log-format", choices=logs.FORMATS, default="text", help="default: text; json: one object a line"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        cluster = config.load(arguments.kubeconfig, arguments.context)
    except config.ConfigError as error:
        raise CommandError(f"{error}; name a cluster with --kubeconfig FILE") from error
    logs.set_up(arguments.log_format, verbose=False)
    import uvloop

    try:
        return int(uvloop.run(_serve(arguments, cluster)))
    except OSError as error:
        what = f"{arguments.host}, port {arguments.port} or {arguments.apps_port}: {error.strerror or error}"
        raise CommandError(f"{what}; choose others with --port and --apps-port") from error


async def _serve(arguments: argparse.Namespace, cluster: config.Config) -> int:
    listeners = bind(arguments.host, arguments.port), bind(arguments.host, arguments.apps_port)
    port, apps_port = (listener.getsockname()[1] for listener in listeners)
    settings = _settings(arguments, port, apps_port)
    api = OverHttp(cluster)
    console = Console(settings, api)
    reach = _reach(arguments, api)
    apps = Apps(settings, console.finder, reach, console.sealer, console.renewals)
    serving = [Listening(console, listeners[0]), Listening(apps, listeners[1])]
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    for one in serving:
        await one.start()
    line = f"The console of {cluster.server} is at {settings.url} (notebooks: {settings.apps_url})"
    if arguments.log_format == "text":
        print(line, flush=True)
    else:
        log.info("%s", line)
    following = asyncio.create_task(identity.follow(arguments, settings.oidc, console.change_identity))
    await stop.wait()
    following.cancel()
    for one in serving:
        await one.stop()
    await reach.close()
    await console.close()
    return 0


def _settings(arguments: argparse.Namespace, port: int, apps_port: int) -> ConsoleSettings:
    url = _origin("--url", arguments.url or f"http://127.0.0.1:{port}")
    # Another name than the console's: browsers then keep the cookies of the two apart, which they do not do for ports.
    apps_url = _origin("--apps-url", arguments.apps_url or _beside(url, apps_port))
    if url == apps_url:
        raise UsageError("--url and --apps-url are the same; notebooks must not be of the console's own origin")
    if arguments.session_hours <= 0:
        raise UsageError(f"--session-hours {arguments.session_hours:g} is less than none")
    return ConsoleSettings(
        target="cluster",
        url=url,
        apps_url=apps_url,
        key=_key(arguments.session_key_file),
        session_s=int(arguments.session_hours * HOUR),
        oidc=identity.settings(arguments),
        names=tuple(arguments.name),
    )


def _beside(url: str, apps_port: int) -> str:
    parts = urlsplit(url)
    host = "localhost" if parts.hostname == "127.0.0.1" else parts.hostname
    return f"{parts.scheme}://{host}:{apps_port}"


def _origin(option: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise UsageError(f"{option} {url} is no origin; write for instance https://danlu.example.com")
    return f"{parts.scheme}://{parts.netloc}"


def _key(file: Path | None) -> bytes:
    text = identity.read("--session-key-file", file) if file else os.environ.get(KEY_VARIABLE, "").encode()
    if not text:
        return secrets.token_bytes(32)
    if len(text.strip()) < SHORTEST_KEY:
        raise UsageError(
            f"the session key is shorter than {SHORTEST_KEY} bytes; make one: head -c 32 /dev/urandom | base64"
        )
    return hashlib.sha256(text.strip()).digest()


def _reach(arguments: argparse.Namespace, api: OverHttp) -> Reach:
    in_a_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and arguments.kubeconfig is None
    by_service = arguments.apps_through == "services" or (arguments.apps_through == "auto" and in_a_pod)
    return Directly() if by_service else ThroughApi(api)
