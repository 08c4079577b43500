"""The cluster that a command is about: its kubeconfig, a client for it, and questions to whoever types."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from danlu import errors
from danlu.cli.main import CommandError
from danlu.client import config
from danlu.client.client import Client
from danlu.client.http import HttpTransport


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="default: $KUBECONFIG, the pod's own account, ~/.kube/config"
    )
    command.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (default: its current one)")


def on_cluster(arguments: argparse.Namespace, work: Callable[[Client, str], Awaitable[int]]) -> int:
    """Runs `work` with a client and the server's address; what the API refuses becomes one clear line."""
    try:
        found = config.load(arguments.kubeconfig, arguments.context)
    except config.ConfigError as error:
        raise CommandError(f"{error}; name a cluster with --kubeconfig FILE") from error

    async def run() -> int:
        client = Client(HttpTransport(found))
        try:
            return await work(client, found.server)
        finally:
            await client.close()

    try:
        return asyncio.run(run())
    except errors.Unauthorized as error:
        raise CommandError(
            f"{found.server} does not know who you are ({error.message}); renew the token or certificate in the "
            "kubeconfig, and see whether `kubectl get namespaces` works"
        ) from error
    except (errors.Timeout, errors.ServiceUnavailable) as error:
        raise CommandError(f"{error.message}; the same command goes on from here once the cluster answers") from error
    except errors.ApiError as error:
        raise CommandError(error.message) from error


def agreed(question: str, yes: bool) -> bool:
    """Whether whoever types says yes. Without anybody to ask, `--yes` has to say so beforehand."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError("nothing was changed: there is no terminal to ask at; --yes carries it out without asking")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
