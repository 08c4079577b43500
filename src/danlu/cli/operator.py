"""`danlu operator`: the platform's kinds on any Kubernetes, from a kubeconfig or inside a pod."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path

from danlu.cli.main import CommandError, UsageError
from danlu.client import config
from danlu.kinds import registry
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.operator import logs
from danlu.operator.run import Operator, OperatorSettings

GANGS = ("none", "kube", "volcano", "coscheduling", "kueue")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="default: $KUBECONFIG, the pod's own account, ~/.kube/config"
    )
    command.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (default: its current one)")
    command.add_argument(
        "--namespace", "-n", action="append", default=[], metavar="NAME", help="watch only this one; may be repeated"
    )
    command.add_argument(
        "--kinds", default="", metavar="A,B", help=f"only these, of {', '.join(map(word, registry.REGISTRY))}"
    )
    command.add_argument(
        "--without-kinds", default="", metavar="A,B", help="all but these, where another operator has them"
    )
    command.add_argument(
        "--gang", choices=GANGS, default="none", help="the engine that starts a job's pods together (default: none)"
    )
    command.add_argument("--console-url", default="", metavar="URL", help="where people open the console")
    command.add_argument(
        "--qps", type=float, default=1000.0, metavar="N", help="requests a second at most (default: 1000; 0: any)"
    )
    command.add_argument("--burst", type=int, default=2000, metavar="N", help="and at once (default: 2000)")
    command.add_argument("--no-leader-election", action="store_true", help="work at once; only when nobody else does")
    command.add_argument(
        "--lease-namespace", default="", metavar="NAME", help="of the lease by which one replica leads"
    )
    command.add_argument(
        "--lease-duration", type=float, default=8.0, metavar="S", help="seconds until a dead leader is replaced"
    )
    command.add_argument(
        "--listen",
        default="",
        metavar="HOST:PORT",
        help="health and metrics (default: 0.0.0.0:8080 in a pod, else any free port of 127.0.0.1)",
    )
    command.add_argument(
        "--log-format", choices=logs.FORMATS, default="text", help="default: text; json: one object a line"
    )
    command.add_argument("--verbose", "-v", action="store_true", help="log more")


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    logs.set_up(arguments.log_format, verbose=arguments.verbose)
    import uvloop

    try:
        uvloop.run(_serve(settings))
    except OSError as error:
        raise CommandError(f"--listen {settings.host}:{settings.port}: {error.strerror or error}") from error
    return 0


async def _serve(settings: OperatorSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await Operator(settings).run(stop)


def _settings(arguments: argparse.Namespace) -> OperatorSettings:
    try:
        found = config.load(arguments.kubeconfig, arguments.context)
    except config.ConfigError as error:
        raise CommandError(f"{error}; name one with --kubeconfig") from error
    if arguments.lease_duration < 2:
        raise UsageError("--lease-duration is at least 2 seconds")
    host, port = _address(arguments.listen)
    return OperatorSettings(
        config=found,
        platform=PlatformSettings(gang=arguments.gang, console_url=arguments.console_url.rstrip("/")),
        kinds=_kinds(arguments),
        namespaces=tuple(dict.fromkeys(arguments.namespace)),
        qps=arguments.qps,
        burst=arguments.burst,
        elect=not arguments.no_leader_election,
        lease_namespace=arguments.lease_namespace,
        lease_duration_s=arguments.lease_duration,
        host=host,
        port=port,
    )


def _address(text: str) -> tuple[str, int]:
    if not text:
        return ("0.0.0.0", 8080) if os.environ.get("KUBERNETES_SERVICE_HOST") else ("127.0.0.1", 0)
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--listen {text} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", int(port)


def _kinds(arguments: argparse.Namespace) -> tuple[PlatformKind, ...]:
    only, without = _named(arguments.kinds), _named(arguments.without_kinds)
    chosen = [kind for kind in registry.REGISTRY if (not only or word(kind) in only) and word(kind) not in without]
    if arguments.namespace:
        # A project makes namespaces; one who may see a few cannot.
        chosen = [kind for kind in chosen if word(kind) != "Project"]
    if not chosen:
        raise UsageError("--kinds and --without-kinds leave nothing to look after")
    return tuple(chosen)


def _named(text: str) -> set[str]:
    known = {word(kind).lower(): word(kind) for kind in registry.REGISTRY}
    asked = [part.strip() for part in text.split(",") if part.strip()]
    for part in asked:
        if part.lower() not in known:
            raise UsageError(f"there is no kind {part!r}; there are {', '.join(known.values())}")
    return {known[part.lower()] for part in asked}


def word(kind: PlatformKind) -> str:
    return kind.kind.kind
