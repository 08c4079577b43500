"""The cluster that a command is about: its kubeconfig, a client for it, and questions to whoever types."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from danlu import errors
from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.cli.sharedoptions import ClusterOptions
from danlu.client import config
from danlu.client.client import Client
from danlu.client.http import HttpTransport
from danlu.client.transport import Transport

NAME_ONE = Text("{problem}; name a cluster with --kubeconfig FILE", "{problem}；请用 --kubeconfig FILE 指定集群")
UNKNOWN_HERE = Text(
    "{server} does not know who you are ({problem}); renew the token or certificate in the kubeconfig, and see whether "
    "`kubectl get namespaces` works",
    "{server} 不认识您（{problem}）；请更新 kubeconfig 中的令牌或证书，并检查 `kubectl get namespaces` 是否可用",
)
GOES_ON = Text(
    "{problem}; the same command goes on from here once the cluster answers",
    "{problem}；集群恢复响应后，重新运行同一命令即可继续",
)
NOBODY_TO_ASK = Text(
    "nothing was changed: there is no terminal to ask at; --yes carries it out without asking",
    "未做任何改动：没有可以询问的终端；加 --yes 则不询问直接执行",
)
YES_WORDS = ("y", "yes", "是", "好")


def on_cluster(
    options: ClusterOptions,
    work: Callable[[Client, str], Awaitable[int]],
    transport: Callable[[config.Config], Transport] = HttpTransport,
) -> int:
    """Runs `work` with a client and the server's address; what the API refuses becomes one clear line."""
    try:
        found = config.load(options.kubeconfig, options.context)
    except config.ClientConfigError as error:
        raise CommandError(NAME_ONE(problem=translated(error))) from error

    async def run() -> int:
        client = Client(transport(found))
        try:
            return await work(client, found.server)
        finally:
            await client.close()

    try:
        return asyncio.run(run())
    except errors.Unauthorized as error:
        raise CommandError(UNKNOWN_HERE(server=found.server, problem=translated(error.message))) from error
    except (errors.Timeout, errors.ServiceUnavailable) as error:
        raise CommandError(GOES_ON(problem=translated(error.message))) from error
    except errors.ApiError as error:
        raise CommandError(translated(error.message)) from error


def agreed(question: str, yes: bool) -> bool:
    """Whether whoever types says yes. Without anybody to ask, `--yes` has to say so beforehand."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise CommandError(NOBODY_TO_ASK())
    return input(f"{question} [y/N] ").strip().lower() in YES_WORDS
