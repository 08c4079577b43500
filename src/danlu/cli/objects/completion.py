"""What a shell completes besides commands and options: kinds, and names of objects, as the cluster has them.

Nothing is said when that fails: a cluster that does not answer must not write into the line that somebody types.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from danlu.cli.objects.session import ClusterSession

ANSWER_WITHIN_S = 2.0
Completing = Callable[["ClusterSession", str], Awaitable[list[str]]]


class _FromCluster(click.ParamType[str]):
    name = "text"

    def __init__(self, default_kind: str = "") -> None:
        self.default_kind = default_kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        typed = ctx.params.get(param.name or "") or ()
        before = list(typed) if isinstance(typed, tuple | list) else []
        try:
            found = _asked(ctx, lambda session, word: self.candidates(session, before, word), incomplete)
        except Exception:
            return []
        return [CompletionItem(one) for one in found if one.startswith(incomplete)]

    async def candidates(self, session: ClusterSession, before: list[str], incomplete: str) -> list[str]:
        raise NotImplementedError


class ObjectWords(_FromCluster):
    """KIND, then NAME..., or KIND/NAME."""

    async def candidates(self, session: ClusterSession, before: list[str], incomplete: str) -> list[str]:
        if "/" in incomplete:
            kind = incomplete.partition("/")[0]
            return [f"{kind}/{name}" for name in await _names(session, kind)]
        if before and "/" not in before[0]:
            return [name for name in await _names(session, before[0]) if name not in before]
        names = await _names(session, self.default_kind) if self.default_kind else []
        return [*names, *sorted({kind.plural for kind in await session.kinds.served()})]


class ObjectNames(_FromCluster):
    """Names of one kind."""

    async def candidates(self, session: ClusterSession, before: list[str], incomplete: str) -> list[str]:
        return [name for name in await _names(session, self.default_kind) if name not in before]


async def _names(session: ClusterSession, word: str) -> list[str]:
    from danlu.resources.printedtable import Selection, read

    kind = (await session.kinds.called(word))[0]
    found = await read(session.client, Selection(kind, session.home(kind)))
    return [row.object["metadata"]["name"] for row in found.rows]


def _asked(ctx: click.Context, complete: Completing, incomplete: str) -> list[str]:
    from danlu.cli.objects.session import ClusterSession, WorkOptions, kubeconfig_of
    from danlu.client import config
    from danlu.client.briefhttp import BriefHttpTransport
    from danlu.client.client import Client
    from danlu.resources.kindfinder import KindFinder

    given = {name: ctx.params.get(name) for name in ("data_dir", "kubeconfig", "context", "namespace")}
    options = WorkOptions(**{name: value for name, value in given.items() if value})
    found = config.load(kubeconfig_of(options), options.context)

    async def ask() -> list[str]:
        client = Client(BriefHttpTransport(found))
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                session = ClusterSession(client, KindFinder(client), options.namespace or found.namespace)
                return await complete(session, incomplete)
        finally:
            await client.close()

    return asyncio.run(ask())


NAMESPACE_NAMES = ObjectNames("namespaces")
OBJECT_WORDS = ObjectWords()
POD_WORDS = ObjectWords("pods")
