"""`danlu events [KIND/NAME]`: what happened in a namespace or to one object, the newest last."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from danlu.cli.command import argument, flag
from danlu.cli.language import Text, language
from danlu.cli.objects import tabletext
from danlu.cli.objects.completion import OBJECT_WORDS
from danlu.cli.objects.session import ClusterSession, WorkOptions, on_cluster, one_named
from danlu.diagnose import render
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION
from danlu.meta.wellknown import EVENT
from danlu.resources.dossier import last_seen

HEAD = ("Last Seen", "Type", "Reason", "Object", "Message")
NONE = Text("no events in namespace {namespace}", "命名空间 {namespace} 中没有事件")


@dataclass(frozen=True)
class Options(WorkOptions):
    words: tuple[str, ...] = argument(
        "KIND/NAME",
        many=True,
        type=OBJECT_WORDS,
        default=(),
        help=Text("the object they are about (default: all)", "事件所涉及的对象（默认：全部）"),
    )
    all_namespaces: bool = flag("-A", "--all-namespaces", help=Text("of all namespaces", "所有命名空间"))
    warnings: bool = flag("--warnings", help=Text("warnings alone", "只看警告"))
    watch: bool = flag("-w", "--watch", help=Text("go on as more happen", "持续显示新的事件"))


def run(options: Options) -> int:
    return on_cluster(options, lambda session: _work(session, options))


async def _work(session: ClusterSession, options: Options) -> int:
    fields = ["type=Warning"] if options.warnings else []
    if options.words:
        kind, name = await one_named(session.kinds, options.words)
        found = await session.client.get(kind, name, session.home(kind))
        fields.append(f"involvedObject.uid={found['metadata']['uid']}")
    everywhere = options.all_namespaces
    chosen = ",".join(fields)
    home = None if everywhere else session.namespace
    listed = await session.client.list(EVENT, home, fields=chosen)
    rows = [_row(one, everywhere) for one in sorted(listed.items, key=last_seen)]
    head = [tabletext.heading(name) for name in (["Namespace"] if everywhere else []) + [*HEAD]]
    if not rows:
        print(NONE(namespace="*" if everywhere else session.namespace))
    else:
        print("\n".join(tabletext.lines(head, rows)), flush=True)
    if options.watch:
        since = listed.resource_version
        async for type, event in session.client.watch(EVENT, home, since=since, fields=chosen):
            if type in ("ADDED", "MODIFIED"):
                print([*tabletext.lines(head, [*rows, _row(event, everywhere)])][-1], flush=True)
    return 0


def _row(event: Object, everywhere: bool) -> list[str]:
    about = event.get("involvedObject") or {}
    before = [event["metadata"].get("namespace") or ""] if everywhere else []
    return [
        *before, tabletext.age(last_seen(event)), event.get("type") or "", event.get("reason") or "",
        f"{about.get('kind', '').lower()}/{about.get('name', '')}", tabletext.cell(_message(event)),
    ]  # fmt: skip


def _message(event: Object) -> str:
    carried = (event["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        causes = orjson.loads(carried) if carried else []
    except ValueError:
        causes = []  # somebody else's
    return render(causes, event.get("message") or "", language())
