"""Objects in columns as the server puts them there: of every kind, also of those that we have never heard of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import orjson

from danlu import errors
from danlu.client import watch as watching
from danlu.client.client import Client
from danlu.meta.kind import Kind, Object

ACCEPT = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PAGE = 500
AS_OBJECTS = [
    {"name": "Name", "priority": 0},
    {"name": "Created At", "priority": 0},
]  # what kubectl shows of a server that makes no tables


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of one kind."""

    kind: Kind
    namespace: str | None = None  # None: of all
    names: tuple[str, ...] = ()  # none: all that the selectors match
    labels: str = ""
    fields: str = ""

    def query(self) -> list[tuple[str, str]]:
        pairs = (("labelSelector", self.labels), ("fieldSelector", self.fields))
        return [pair for pair in pairs if pair[1]]

    def path(self, name: str = "") -> str:
        return self.kind.path(self.namespace if self.kind.namespaced else None, quote(name, safe=":") or None)


@dataclass(slots=True)
class TableRow:
    cells: list[Any]
    object: Object  # its metadata alone

    @property
    def key(self) -> str:
        return str(self.object["metadata"].get("uid") or self.object["metadata"].get("name"))


@dataclass(slots=True)
class PrintedTable:
    columns: list[Object] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    resource_version: str = ""

    def changed_by(self, event: str, row: TableRow) -> None:
        """What a watch says, put into the rows."""
        place = next((number for number, one in enumerate(self.rows) if one.key == row.key), None)
        if event == "DELETED":
            if place is not None:
                del self.rows[place]
        elif place is None:
            self.rows.append(row)
        else:
            self.rows[place] = row


async def read(client: Client, wanted: Selection) -> PrintedTable:
    if not wanted.names:
        return await _listed(client, wanted)
    table = PrintedTable()
    for name in wanted.names:
        _add(table, await _ask(client, wanted.path(name), []))
    return table


async def changes(client: Client, wanted: Selection, since: str) -> AsyncIterator[tuple[str, TableRow]]:
    """("ADDED", row), … from a list's resourceVersion on, for as long as the server and the network let us.

    A watch that the server ends (it does, after minutes) goes on where it ended; one whose history is gone ends here.
    """
    if len(wanted.names) == 1:
        wanted = replace(wanted, fields=f"metadata.name={wanted.names[0]}")
    while True:
        query = [*wanted.query(), ("watch", "true"), ("resourceVersion", since), ("allowWatchBookmarks", "true")]
        response = await client.request("GET", wanted.path(), query, headers=ACCEPT)
        async for event in watching.events(response.body):  # type: ignore[arg-type]  # a watch is a stream
            found = PrintedTable()
            _add(found, event.object)
            for row in found.rows:
                since = row.object["metadata"].get("resourceVersion") or since
                if event.type != "BOOKMARK" and (not wanted.names or row.object["metadata"]["name"] in wanted.names):
                    yield event.type, row


async def _listed(client: Client, wanted: Selection) -> PrintedTable:
    table, token = PrintedTable(), ""
    while True:
        query = [*wanted.query(), ("limit", str(PAGE)), *([("continue", token)] if token else [])]
        page = await _ask(client, wanted.path(), query)
        _add(table, page)
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return table


async def _ask(client: Client, path: str, query: list[tuple[str, str]]) -> Object:
    response = await client.request("GET", path, query, headers=ACCEPT)
    return dict(orjson.loads(response.body))  # type: ignore[arg-type]  # no stream was asked for


def _add(table: PrintedTable, page: Object) -> None:
    table.resource_version = (page.get("metadata") or {}).get("resourceVersion") or table.resource_version
    if page.get("kind") != "Table":
        table.columns = AS_OBJECTS
        found = page.get("items", [page])
        table.rows += [
            TableRow([one["metadata"]["name"], one["metadata"].get("creationTimestamp")], one) for one in found
        ]
        return
    table.columns = page.get("columnDefinitions") or table.columns
    for row in page.get("rows") or ():
        if row.get("object") is None:
            raise errors.InternalError("the server's table says not which objects its rows are")
        table.rows.append(TableRow(row["cells"], row["object"]))
