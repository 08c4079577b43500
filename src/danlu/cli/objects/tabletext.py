"""Tables as people read them, and how they stay true on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from danlu.cli import layout
from danlu.cli.language import Text
from danlu.meta.kind import Object
from danlu.resources.printedtable import PrintedTable, TableRow

GAP = 3
NOTHING = "<none>"
# What servers call their columns, for those who read Chinese at a terminal. Programs read -o json or -o name.
HEADINGS = {
    "Name": Text("Name", "名称"),
    "Namespace": Text("Namespace", "命名空间"),
    "Ready": Text("Ready", "就绪"),
    "Status": Text("Status", "状态"),
    "State": Text("State", "状态"),
    "Phase": Text("Phase", "阶段"),
    "Restarts": Text("Restarts", "重启次数"),
    "Age": Text("Age", "存在时间"),
    "Created At": Text("Created At", "创建时间"),
    "Node": Text("Node", "节点"),
    "Type": Text("Type", "种类"),
    "Reason": Text("Reason", "原因"),
    "Object": Text("Object", "对象"),
    "Message": Text("Message", "说明"),
    "Last Seen": Text("Last Seen", "最近一次"),
    "Capacity": Text("Capacity", "容量"),
    "Access Modes": Text("Access Modes", "访问模式"),
    "Completions": Text("Completions", "完成数"),
    "Duration": Text("Duration", "时长"),
    "Roles": Text("Roles", "角色"),
    "Version": Text("Version", "版本"),
    "Volume": Text("Volume", "持久卷"),
    "Data": Text("Data", "数据项"),
    "Queue": Text("Queue", "队列"),
    "Priority": Text("Priority", "优先级"),
}


def heading(name: str) -> str:
    known = HEADINGS.get(name)
    return (known() if known else name).upper()


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as what stands in them; no space behind the last."""
    every = [*([head] if head else []), *rows]
    if not every:
        return
    widths = [max(layout.width(row[place]) for row in every) for place in range(len(every[0]))]
    for row in every:
        cells = [layout.padded(cell, wide + GAP) for cell, wide in zip(row, widths, strict=True)]
        yield "".join(cells).rstrip()


def head_of(table: PrintedTable, wide: bool, with_namespace: bool) -> list[str]:
    before = ["Namespace"] if with_namespace else []
    return [heading(name) for name in [*before, *(table.columns[place]["name"] for place in _shown(table, wide))]]


def row_of(table: PrintedTable, row: TableRow, wide: bool, with_namespace: bool) -> list[str]:
    before = [row.object["metadata"].get("namespace") or ""] if with_namespace else []
    return [*before, *(cell(row.cells[place]) for place in _shown(table, wide))]


def _shown(table: PrintedTable, wide: bool) -> list[int]:
    return [place for place, column in enumerate(table.columns) if wide or not column.get("priority")]


def cell(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return str(value).lower()
    # What a server says is shown on one line, and can move no cursor.
    return "".join(letter if letter.isprintable() else " " for letter in str(value))


def age(since: str, now: datetime | None = None) -> str:
    """As kubectl writes it: two units where the larger is small."""
    if not since:
        return NOTHING
    passed = (now or datetime.now(UTC)) - datetime.fromisoformat(since.replace("Z", "+00:00"))
    seconds = max(int(passed.total_seconds()), 0)
    for unit, length, both_below, smaller, part in (
        ("d", 86400, 8, "h", 3600), ("h", 3600, 8, "m", 60), ("m", 60, 10, "s", 1)
    ):  # fmt: skip
        if seconds >= length and (unit != "m" or seconds >= 120):
            count, rest = divmod(seconds, length)
            more = rest // part
            return f"{count}{unit}{more}{smaller}" if count < both_below and more else f"{count}{unit}"
    return f"{seconds}s"


class Screen:
    """A table that is drawn anew in its place: on a terminal only."""

    def __init__(self) -> None:
        self._height = 0

    def draw(self, shown: Sequence[str]) -> None:
        columns, rows = shutil.get_terminal_size((100, 24))
        visible = [layout.shortened(line, columns - 1) for line in shown]
        if len(visible) > rows - 1:
            visible = [*visible[: rows - 2], f"… +{len(visible) - rows + 2}"]
        up = f"\x1b[{self._height}A\r" if self._height else ""
        sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in visible) + "\x1b[J")
        sys.stdout.flush()
        self._height = len(visible)


def object_name(group: str, singular: str, obj: Object) -> str:
    """As `-o name` and the results of apply say it."""
    return f"{singular}.{group}/{obj['metadata']['name']}" if group else f"{singular}/{obj['metadata']['name']}"
