"""What Danlu itself listens on, written down for the shims: no pod may listen there, not even while Danlu is down."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

RESERVED_PORTS = "reserved-ports"  # a file of the data directory: [[address, first port, last port], …]

Entry = tuple[str, int, int]


class ReservedPorts:
    """Those of the last start stay reserved until `settle`: this one takes them again one after the other."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / RESERVED_PORTS
        self._old: list[Entry] | None = None
        self._entries: list[Entry] = []

    def add(self, address: str, first: int, last: int = 0) -> None:
        if self._old is None:
            self._old = []
            with suppress(OSError, ValueError):
                self._old = [(str(a), int(b), int(c)) for a, b, c in json.loads(self._path.read_text())]
        self._entries.append((address, first, last or first))
        self._write([*self._old, *self._entries])

    def settle(self) -> None:
        """All that this start listens on has been added."""
        self._old = []
        self._write(self._entries)

    def _write(self, entries: list[Entry]) -> None:
        new = self._path.with_name(self._path.name + ".new")
        new.write_text(json.dumps(list(dict.fromkeys(entries))))
        new.rename(self._path)
