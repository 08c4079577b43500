"""`danlu get KIND [NAME...]`: objects in columns, as YAML or JSON, once or for as long as they change."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

from danlu.cli.command import argument, flag, option
from danlu.cli.language import Text
from danlu.cli.objects import objecttext, tabletext
from danlu.cli.objects.completion import OBJECT_WORDS
from danlu.cli.objects.session import ClusterSession, ListOptions, NamedObjects, named, on_cluster
from danlu.cli.valuetypes import Choice
from danlu.meta.kind import Object
from danlu.resources import printedtable
from danlu.resources.printedtable import PrintedTable, Selection, TableRow

NONE_IN = Text(
    "no {what} in namespace {namespace}; -A shows those of all namespaces",
    "命名空间 {namespace} 中没有 {what}；-A 列出所有命名空间",
)
NONE_AT_ALL = Text("no {what}", "没有 {what}")
KIND_HEAD = (Text("Name", "名称"), Text("Short names", "简称"), Text("API version", "API 版本"), Text("Kind", "类型"))


@dataclass(frozen=True)
class Options(ListOptions):
    words: tuple[str, ...] = argument(
        "KIND|KIND/NAME|NAME",
        many=True,
        type=OBJECT_WORDS,
        default=(),
        help=Text(
            "as kubectl takes it: pods, pod x y, pytorchjob/mnist, pods,services, all; none: the kinds there are",
            "与 kubectl 的写法相同：pods、pod x y、pytorchjob/mnist、pods,services、all；不写则列出全部类型",
        ),
    )
    output: str = option(
        "-o",
        "--output",
        type=Choice(("wide", "yaml", "json", "name")),
        default="",
        help=Text("default: a table", "默认：表格"),
    )
    watch: bool = flag("-w", "--watch", help=Text("go on as they change", "持续显示变化"))
    fields: str = option(
        "--field-selector",
        metavar="FIELDS",
        default="",
        help=Text("those with these fields: status.phase=Running", "字段符合条件的对象：status.phase=Running"),
    )
    bare: bool = flag("--no-headers", help=Text("without the first line", "不显示表头"))


def run(options: Options) -> int:
    return on_cluster(options, lambda session: _work(session, options))


async def _work(session: ClusterSession, options: Options) -> int:
    if not options.words:
        print("\n".join(await _kinds(session)))
        return 0
    found = await named(session.kinds, options.words)
    if options.output in ("yaml", "json", "name"):
        return await _objects(session, options, found)
    selections = [_selection(session, options, one) for one in found]
    tables = await asyncio.gather(*(printedtable.read(session.client, one) for one in selections))
    if options.watch:
        await asyncio.gather(*(
            _follow(session, options, one, table) for one, table in zip(selections, tables, strict=True)
        ))  # fmt: skip
        return 0
    shown = [(one, table) for one, table in zip(selections, tables, strict=True) if table.rows]
    if not shown:
        print(_nothing(options, session, found), file=sys.stderr)
    for number, (one, table) in enumerate(shown):
        print("\n" if number else "", end="")
        print("\n".join(_lines(options, table, one, prefix=len(found) > 1)))
    return 0


def _selection(session: ClusterSession, options: Options, one: NamedObjects) -> Selection:
    namespace = None if options.all_namespaces else session.home(one.kind)
    return Selection(one.kind, namespace, one.names, options.selector, options.fields)


def _nothing(options: Options, session: ClusterSession, found: list[NamedObjects]) -> str:
    what = ", ".join(one.kind.plural for one in found)
    if options.all_namespaces or not any(one.kind.namespaced for one in found):
        return NONE_AT_ALL(what=what)
    return NONE_IN(what=what, namespace=session.namespace)


def _lines(options: Options, table: PrintedTable, one: Selection, *, prefix: bool) -> list[str]:
    wide, everywhere = options.output == "wide", one.kind.namespaced and options.all_namespaces
    head = [] if options.bare else tabletext.head_of(table, wide, everywhere)
    rows = [tabletext.row_of(table, row, wide, everywhere) for row in table.rows]
    if prefix:  # of several kinds in one answer: which is which
        place = 1 if everywhere else 0
        for cells, row in zip(rows, table.rows, strict=True):
            cells[place] = tabletext.object_name(one.kind.group, one.kind.singular_name, row.object)
    return [*tabletext.lines(head, rows)]


async def _follow(session: ClusterSession, options: Options, one: Selection, table: PrintedTable) -> None:
    """On a terminal the table stays in its place; elsewhere each change is a line more."""
    live = sys.stdout.isatty() and len(options.words) >= 1 and "," not in options.words[0]
    screen = tabletext.Screen()
    head, *rows = _lines(options, table, one, prefix=False) or [""]
    if live:
        screen.draw([head, *rows])
    else:
        print("\n".join([head, *rows]), flush=True)
    async for event, row in printedtable.changes(session.client, one, table.resource_version):
        table.changed_by(event, row)
        if live:
            screen.draw(_lines(options, table, one, prefix=False))
        else:
            print(_last(options, table, one, row), flush=True)


def _last(options: Options, table: PrintedTable, one: Selection, row: TableRow) -> str:
    """One row, in the columns of all."""
    every = PrintedTable(table.columns, [*table.rows, row])
    return _lines(options, every, one, prefix=False)[-1]


async def _objects(session: ClusterSession, options: Options, found: list[NamedObjects]) -> int:
    items: list[Object] = []
    for one in found:
        selected = _selection(session, options, one)
        type_of = {"apiVersion": one.kind.api_version, "kind": one.kind.kind}
        if one.names:
            got = [await session.client.get(one.kind, name, selected.namespace) for name in one.names]
        else:
            given = {"labels": options.selector, "fields": options.fields, "limit": printedtable.PAGE}
            got = (await session.client.list(one.kind, selected.namespace, **given)).items  # type: ignore[arg-type]
        items += [{**type_of, **obj} for obj in got]
        if options.output == "name":
            for obj in got:
                print(tabletext.object_name(one.kind.group, one.kind.singular_name, obj))
    if options.output != "name":
        single = len(items) == 1 and any(one.names for one in found)
        print(objecttext.dumped(items[0] if single else objecttext.as_list(items), options.output))
    return 0


async def _kinds(session: ClusterSession) -> list[str]:
    rows = [
        [kind.plural, ",".join(kind.short_names), kind.api_version, kind.kind] for kind in await session.kinds.served()
    ]
    return [*tabletext.lines([text().upper() for text in KIND_HEAD], rows)]
