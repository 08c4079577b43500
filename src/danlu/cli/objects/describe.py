"""`danlu describe KIND/NAME`: one object with its pods and events, and first of all why it waits or failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from danlu.cli import layout
from danlu.cli.command import argument
from danlu.cli.language import Text, language
from danlu.cli.objects import objecttext, tabletext
from danlu.cli.objects.completion import OBJECT_WORDS
from danlu.cli.objects.session import ClusterSession, WorkOptions, named, on_cluster
from danlu.cli.work.why import told
from danlu.diagnose import render
from danlu.meta.kind import Object
from danlu.resources import dossier, printedtable
from danlu.resources.dossier import Dossier
from danlu.resources.printedtable import Selection

MOST_EVENTS = 15
LONGEST_VALUE = 100
LABEL = 18
WORDS = {
    "name": Text("Name", "名称"),
    "namespace": Text("Namespace", "命名空间"),
    "kind": Text("Kind", "类型"),
    "created": Text("Created", "创建于"),
    "deleting": Text("Being deleted since", "正在删除，始于"),
    "labels": Text("Labels", "标签"),
    "annotations": Text("Annotations", "注解"),
    "owner": Text("Made by", "创建者"),
}
AGO = Text("{time} ({age} ago)", "{time}（{age} 前）")
WHY = Text("Why", "原因")
PODS = Text("Its pods", "所属 Pod")
SPEC = Text("Spec", "规约")
DATA = Text("Data", "数据")
BYTES = Text("{count:byte|bytes}", "{count} 字节")
CONDITIONS = Text("Conditions", "状况")
EVENTS = Text("Events", "事件")
NO_EVENTS = Text("  none in the last hour", "  最近一小时内没有")
CONDITION_HEAD = ("Type", "Status", "Reason", "Age", "Message")
EVENT_HEAD = ("Last Seen", "Type", "Reason", "Message")
POD_HEAD = ("Name", "Phase", "Node", "Age")


@dataclass(frozen=True)
class Options(WorkOptions):
    words: tuple[str, ...] = argument(
        "KIND|KIND/NAME|NAME",
        many=True,
        type=OBJECT_WORDS,
        help=Text(
            "pytorchjob/mnist, pod x y; KIND alone: all of it",
            "pytorchjob/mnist、pod x y；只写类型则描述其全部对象",
        ),
    )


def run(options: Options) -> int:
    return on_cluster(options, lambda session: _work(session, options))


async def _work(session: ClusterSession, options: Options) -> int:
    number = 0
    for one in await named(session.kinds, options.words):
        names: Sequence[str] = one.names
        if not names:
            found = await printedtable.read(session.client, Selection(one.kind, session.home(one.kind)))
            names = [row.object["metadata"]["name"] for row in found.rows]
        for name in names:
            print("\n\n" if number else "", end="")
            known = await dossier.compile_dossier(session.client, one.kind, name, session.home(one.kind))
            print("\n".join(_page(known)))
            number += 1
    return 0


def _page(known: Dossier) -> Iterator[str]:
    yield from layout.facts([*_head(known.object), *_printed(known)], LABEL)
    if known.causes:
        yield from ("", WHY())
        yield from (f"  {line}" for line in told("", known.causes))
    if known.pods and known.object["kind"] != "Pod":
        yield from ("", PODS())
        yield from _indented(POD_HEAD, [_pod(pod) for pod in known.pods])
    if conditions := (known.object.get("status") or {}).get("conditions"):
        yield from ("", CONDITIONS())
        yield from _indented(CONDITION_HEAD, [_condition(one) for one in conditions])
    yield from _content(known.object)
    yield from ("", EVENTS())
    rows = [_event(one) for one in known.events[:MOST_EVENTS]]
    yield from _indented(EVENT_HEAD, rows) if rows else [NO_EVENTS()]


def _indented(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in tabletext.lines([tabletext.heading(name) for name in head], rows))


def _head(obj: Object) -> Iterator[tuple[str, str]]:
    metadata = obj["metadata"]
    yield WORDS["name"](), metadata["name"]
    if metadata.get("namespace"):
        yield WORDS["namespace"](), metadata["namespace"]
    yield WORDS["kind"](), f"{obj['kind']} ({obj['apiVersion']})"
    if since := metadata.get("creationTimestamp"):
        yield WORDS["created"](), AGO(time=since, age=tabletext.age(since))
    if since := metadata.get("deletionTimestamp"):
        yield WORDS["deleting"](), since
    for owner in metadata.get("ownerReferences") or ():
        yield WORDS["owner"](), f"{owner['kind']}/{owner['name']}"
    for what in ("labels", "annotations"):
        for number, (key, value) in enumerate(sorted((metadata.get(what) or {}).items())):
            text = tabletext.cell(layout.shortened(value, LONGEST_VALUE))
            yield ("" if number else WORDS[what]()), f"{key}={text}"


def _printed(known: Dossier) -> Iterator[tuple[str, str]]:
    """The server's own columns: what it holds to be worth seeing of this kind."""
    for row in known.table.rows[:1]:
        for column, value in zip(known.table.columns, row.cells, strict=False):
            if column["name"] not in ("Name", "Age", "Created At") and value not in (None, "", "<none>"):
                words = tabletext.HEADINGS.get(column["name"])
                yield (words() if words else column["name"]), tabletext.cell(value)


def _pod(pod: Object) -> list[str]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    node = (pod.get("spec") or {}).get("nodeName") or tabletext.NOTHING
    return [metadata["name"], status.get("phase") or "", node, tabletext.age(metadata.get("creationTimestamp") or "")]


def _condition(one: Object) -> list[str]:
    since = tabletext.age(one.get("lastTransitionTime") or "")
    message = render(one.get("causes") or [], one.get("message") or "", language())
    return [one.get("type") or "", one.get("status") or "", one.get("reason") or "", since, tabletext.cell(message)]


def _event(one: Object) -> list[str]:
    return [
        tabletext.age(dossier.last_seen(one)), one.get("type") or "", one.get("reason") or "",
        tabletext.cell(one.get("message") or ""),
    ]  # fmt: skip


def _content(obj: Object) -> Iterator[str]:
    """A Secret's data is counted, not shown: a terminal may be looked at by others."""
    if spec := obj.get("spec"):
        yield from ("", SPEC())
        yield from (f"  {line}" for line in objecttext.yaml_text(spec).splitlines())
    data = obj.get("data")
    if isinstance(data, dict) and data:
        from danlu.cli.language import Count

        yield from ("", DATA())
        yield from (f"  {key}: {BYTES(count=Count(_size(obj, str(value))))}" for key, value in sorted(data.items()))


def _size(obj: Object, value: str) -> int:
    return len(value) * 3 // 4 - value.count("=") if obj["kind"] == "Secret" else len(value.encode())
