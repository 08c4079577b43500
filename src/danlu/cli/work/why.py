"""`danlu why KIND/NAME`: what keeps an object, and the command that mends it; on `danlu up` and on a cluster alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from danlu.cli import clusterclient, layout
from danlu.cli.command import argument, flag, option
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text, language, speaking
from danlu.cli.sharedoptions import FOR_PROGRAMS, ClusterOptions
from danlu.cli.valuetypes import Choice
from danlu.client import config
from danlu.client.client import Client
from danlu.client.evidencereader import gather
from danlu.diagnose import Cause, explain, tables
from danlu.kinds import registry
from danlu.meta import wellknown
from danlu.meta.kind import Kind

WELL = Text("{about}: nothing keeps it", "{about}：没有发现问题")
SEVERITIES = {
    "error": Text("error", "错误"),
    "waiting": Text("waits", "等待"),
    "warning": Text("note", "注意"),
    "info": Text("info", "说明"),
}
NO_NAME = Text(
    "{object!r} is no KIND/NAME; write for example pytorchjob/mnist",
    "{object!r} 不是 类型/名称 的形式；例如 pytorchjob/mnist",
)
NO_KIND = Text(
    "there is no kind {word!r} that could be explained; `kubectl api-resources` lists all kinds",
    "没有可以解释的类型 {word!r}；`kubectl api-resources` 列出全部类型",
)


@dataclass(frozen=True)
class Options(ClusterOptions):
    object: str = argument(
        "KIND/NAME",
        help=Text(
            "as kubectl takes it: pytorchjob/mnist, pod/mnist-0, pvc/data",
            "与 kubectl 的写法相同：pytorchjob/mnist、pod/mnist-0、pvc/data",
        ),
    )
    namespace: str = option(
        "-n",
        "--namespace",
        metavar="NAME",
        default="",
        help=Text("default: that of the context", "默认：上下文中的命名空间"),
    )
    language: str = option(
        "--language",
        type=Choice(tables.LANGUAGES),
        default="",
        help=Text("default: zh where $LANG is Chinese, else en", "默认：$LANG 是中文时为 zh，否则为 en"),
    )
    json: bool = flag("--json", help=FOR_PROGRAMS)


def run(options: Options) -> int:
    word, slash, name = options.object.partition("/")
    if not slash or not name:
        raise UsageError(NO_NAME(object=options.object))
    kind = kind_called(word)

    async def work(client: Client, _server: str) -> int:
        home = options.namespace or config.load(options.kubeconfig, options.context).namespace
        found = await client.get(kind, name, home if kind.namespaced else None)
        causes = explain({"kind": kind.kind, **found}, await gather(client, found))
        if options.json:
            print(json.dumps([cause.as_json() for cause in causes], ensure_ascii=False, indent=2))
        else:
            with speaking(options.language or language()):
                print("\n".join(told(f"{kind.kind}/{name}", causes)))
        return 0

    return clusterclient.on_cluster(options, work)


def told(about: str, causes: Sequence[Cause]) -> Iterable[str]:
    if not causes:
        yield WELL(about=about)
        return
    for cause in causes:
        severity = layout.padded(SEVERITIES[cause.severity](), 6)
        yield f"{severity} {cause.code:<18} {cause.sentence(language())}"
        if remedy := cause.remedy(language()):
            yield f"{'':<6} {'':<18} → {remedy}"


def kind_called(word: str) -> Kind:
    built_in = [value for value in vars(wellknown).values() if isinstance(value, Kind)]
    ours = [one.kind for one in registry.EVERY]
    wanted = word.lower()
    for kind in (*ours, *built_in):
        if wanted in (kind.singular_name, kind.plural, kind.resource, kind.kind.lower(), *kind.short_names):
            return kind
    raise CommandError(NO_KIND(word=word))
