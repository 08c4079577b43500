"""What the everyday commands share: which cluster and namespace, which kinds are meant, how refusals are told."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from danlu import errors
from danlu.cli import clusterclient
from danlu.cli.command import flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, translated
from danlu.cli.objects.completion import NAMESPACE_NAMES
from danlu.cli.sharedoptions import ClusterOptions
from danlu.client.briefhttp import BriefHttpTransport
from danlu.client.client import Client
from danlu.embedded.settings import default_home
from danlu.meta.kind import Kind
from danlu.resources.kindfinder import KindFinder, UnknownKind

NO_KIND = Text(
    "this cluster serves no kind {word!r}{perhaps}; `danlu get` without a name lists the kinds",
    "这个集群没有 {word!r} 这种类型{perhaps}；`danlu get` 不带名称时列出全部类型",
)
PERHAPS = Text(", perhaps {similar}", "，您指的可能是 {similar}")
NOT_THERE = Text(
    "{problem} in namespace {namespace}; `danlu get {word} -A` shows those of all namespaces",
    "命名空间 {namespace} 中没有（{problem}）；`danlu get {word} -A` 列出所有命名空间中的对象",
)
NOT_THERE_AT_ALL = Text("{problem}; `danlu get {word}` lists them", "不存在（{problem}）；`danlu get {word}` 列出全部")
FORBIDDEN = Text(
    "you may not do that: {problem}; ask whoever manages the cluster for the right, or sign in as somebody else "
    "(`danlu login`)",
    "您没有权限：{problem}；请向集群管理员申请，或换一个账号登录（`danlu login`）",
)
NO_NAMES = Text(
    "{word!r} names no object; write KIND NAME or KIND/NAME, for example pod/mnist-0",
    "{word!r} 没有指明对象；请写 类型 名称 或 类型/名称，例如 pod/mnist-0",
)
MIXED = Text(
    "{word!r} stands among KIND/NAME; write either KIND/NAME for each or KIND NAME...",
    "{word!r} 与 类型/名称 混用；请全部写成 类型/名称，或写成 类型 名称...",
)


@dataclass(frozen=True)
class WorkOptions(ClusterOptions):
    namespace: str = option(
        "-n",
        "--namespace",
        metavar="NAME",
        type=NAMESPACE_NAMES,
        default="",
        help=Text("default: that of the context", "默认：上下文中的命名空间"),
    )


@dataclass(frozen=True)
class ListOptions(WorkOptions):
    all_namespaces: bool = flag("-A", "--all-namespaces", help=Text("of all namespaces", "所有命名空间"))
    selector: str = option(
        "-l",
        "--selector",
        metavar="LABELS",
        default="",
        help=Text("those with these labels: app=x,tier!=db", "带有这些标签的对象：app=x,tier!=db"),
    )


@dataclass(frozen=True)
class ClusterSession:
    client: Client
    kinds: KindFinder
    namespace: str

    def home(self, kind: Kind) -> str | None:
        return self.namespace if kind.namespaced else None


@dataclass(frozen=True)
class NamedObjects:
    """Objects of one kind; no names: all of it."""

    kind: Kind
    names: tuple[str, ...]


KUBECONFIG = "kubeconfig"  # in the data directory of `danlu up`


def on_cluster(options: WorkOptions, work: Callable[[ClusterSession], Awaitable[int]]) -> int:
    async def run(client: Client, _server: str) -> int:
        assert isinstance(client.transport, BriefHttpTransport)
        session = ClusterSession(client, KindFinder(client), options.namespace or client.transport.config.namespace)
        try:
            return await work(session)
        except UnknownKind as error:
            raise CommandError(_no_kind(error)) from error
        except errors.NotFound as error:
            raise CommandError(not_there(error, session.namespace)) from error
        except errors.Forbidden as error:
            raise CommandError(FORBIDDEN(problem=translated(error.message))) from error

    return clusterclient.on_cluster(replace(options, kubeconfig=kubeconfig_of(options)), run, BriefHttpTransport)


def kubeconfig_of(options: ClusterOptions) -> Path | None:
    """That of `danlu up` where it is asked for, and where this machine has no other: after `danlu up` the next command
    works without anything being set. None: as kubectl finds one."""
    if options.kubeconfig is not None:
        return options.kubeconfig
    own = (options.data_dir or default_home()) / KUBECONFIG
    if options.data_dir is not None:
        return own
    others = os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST")
    if others or Path("~/.kube/config").expanduser().exists() or not own.exists():
        return None
    return own


async def named(kinds: KindFinder, words: Sequence[str]) -> list[NamedObjects]:
    """What `pods`, `pods,svc`, `pod x y`, `pod/x job/y` mean."""
    if "/" not in words[0]:
        if mixed := next((word for word in words[1:] if "/" in word), ""):
            raise UsageError(MIXED(word=mixed))
        found = [kind for word in words[0].split(",") for kind in await kinds.called(word)]
        return [NamedObjects(kind, tuple(words[1:])) for kind in found]
    if mixed := next((word for word in words if not all(word.partition("/"))), ""):
        raise UsageError(MIXED(word=mixed))
    pairs = [word.split("/", 1) for word in words]
    return [NamedObjects((await kinds.called(kind))[0], (name,)) for kind, name in pairs]


async def one_named(kinds: KindFinder, words: Sequence[str], default: str = "") -> tuple[Kind, str]:
    """The one object that is meant; `default`: the kind where a name stands alone."""
    if default and len(words) == 1 and "/" not in words[0]:
        words = (default, words[0])
    found = await named(kinds, words)
    if len(found) != 1 or len(found[0].names) != 1:
        raise UsageError(NO_NAMES(word=" ".join(words)))
    return found[0].kind, found[0].names[0]


def not_there(error: errors.NotFound, namespace: str) -> str:
    word = error.details.get("kind") or ""
    if error.details.get("group"):
        word = f"{word}.{error.details['group']}"
    if not word or not error.details.get("name"):
        return translated(error.message)
    namespaced = not any(word == one for one in ("namespaces", "nodes", "persistentvolumes", "storageclasses"))
    say = NOT_THERE if namespaced else NOT_THERE_AT_ALL
    facts = {"namespace": namespace} if namespaced else {}
    return say(problem=translated(error.message), word=word, **facts)


def _no_kind(error: UnknownKind) -> str:
    import difflib

    similar = difflib.get_close_matches(error.word.lower(), error.served, 2)
    return NO_KIND(word=error.word, perhaps=PERHAPS(similar=", ".join(similar)) if similar else "")
