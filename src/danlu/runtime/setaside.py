"""Objects that a controller has set aside: one that cannot be reconciled must not hold up the others, nor the start.

An object comes here when its reconcile says so (`Unreconcilable`), when it fails again and again for no reason that the
API gave, or when it held the event loop up (`watchdog`). Of the last sort the list outlives the process: where that was
killed in the middle, the next start leaves the object alone until it is changed or deleted, and so comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from danlu.meta.clock import now_rfc3339
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Request

if TYPE_CHECKING:
    from danlu.runtime.atwork import Page


@dataclass(frozen=True, slots=True)
class SetAsideEntry:
    controller: str
    kind: str  # of the object; "" where the controller does not say
    namespace: str  # "" for cluster scope
    name: str
    why: str
    since: str = ""
    version: str = ""  # of the object that blocked the event loop: it is left alone as long as it has this one

    @property
    def key(self) -> tuple[str, str, str]:
        return self.controller, self.namespace, self.name

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'object'} {place} ({self.controller} controller, since {self.since}): {self.why}"


def version_of(obj: Object) -> str:
    """Changes with what its owner wants: the generation where there is one, so that a status does not count."""
    meta = obj["metadata"]
    return f"generation {meta['generation']}" if "generation" in meta else str(meta.get("resourceVersion") or "")


class SetAside:
    def __init__(
        self,
        known: Iterable[SetAsideEntry] = (),
        changed: Callable[[list[SetAsideEntry]], None] = lambda _entries: None,
    ) -> None:
        """`known`: of the process before this one."""
        self._entries = {entry.key: entry for entry in known if entry.version}
        self._changed = changed
        self.page: Page | None = None  # where controllers say what they are at; None: nobody watches

    @property
    def entries(self) -> list[SetAsideEntry]:
        return list(self._entries.values())

    def get(self, controller: str, request: Request) -> SetAsideEntry | None:
        if not self._entries:
            return None
        return self._entries.get((controller, request.namespace, request.name))

    def put(self, controller: str, kind: str, request: Request, why: str, version: str = "") -> bool:
        """False when that was known already."""
        before = self.get(controller, request)
        if before is not None and before.why == why and before.version == version:
            return False
        self.put_entry(SetAsideEntry(controller, kind, request.namespace, request.name, why, version=version))
        return True

    def put_entry(self, entry: SetAsideEntry) -> None:
        self._entries[entry.key] = replace(entry, since=now_rfc3339())
        self._changed(self.entries)

    def take_back(self, controller: str, request: Request) -> None:
        if self.get(controller, request) is not None:
            self._entries.pop((controller, request.namespace, request.name), None)
            self._changed(self.entries)
