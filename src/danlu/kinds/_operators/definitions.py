"""Definitions of ours that somebody deleted or replaced come back, as they would with the next start.

Deleting a definition deletes its objects, as everywhere: only the kind comes back. One that another operator's
manifests have replaced takes away rules, defaults and columns; ours is put back, and an event says so. Whether it is
still ours the server itself tells: in managedFields, who applied the versions last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from danlu.diagnose import stated
from danlu.kinds import crd
from danlu.kinds.platform import PlatformKind
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

GAP_S = 10.0  # between two times: whoever puts theirs back again and again is not fought at full speed


class Definitions:
    def __init__(self, manager: Manager, kinds: Sequence[PlatformKind], owner: str) -> None:
        """`owner`: the field manager that has applied them."""
        self._manager = manager
        self._kinds: Mapping[str, PlatformKind] = {f"{one.kind.plural}.{one.kind.group}": one for one in kinds}
        self._owner = owner
        self._informer = manager.informer(CUSTOM_RESOURCE_DEFINITION)
        self._recorder = manager.recorder("danlu-operator")
        self._restored: dict[str, float] = {}  # when each was put back last
        self.controller = Controller("definitions", self.reconcile, workers=1)
        self.controller.watches(self._informer)

    async def reconcile(self, request: Request) -> Outcome | None:
        name = request.name
        if name not in self._kinds:
            return None
        found = self._informer.get(None, name)
        if found is not None and (objects.is_deleting(found) or is_applied_by(self._owner, found)):
            return None  # one that is being deleted tells us when it is gone
        now = asyncio.get_running_loop().time()
        wait_s = self._restored.get(name, -GAP_S) + GAP_S - now
        if wait_s > 0:
            return Outcome(requeue_after=wait_s)
        self._restored[name] = now
        wanted = crd.definition(self._kinds[name])
        restored = await self._manager.client.patch(
            CUSTOM_RESOURCE_DEFINITION, name, None, wanted, type="apply", manager=self._owner, force=True
        )
        code = "DL-DEFINITION-BACK" if found is None else "DL-DEFINITION-OURS"
        self._recorder.warning(restored, "DefinitionRestored", stated(code, name=name))
        return None


def is_applied_by(owner: str, definition: Object) -> bool:
    """Whether the versions that it has are those that `owner` applied."""
    for entry in definition["metadata"].get("managedFields") or ():
        if entry.get("manager") == owner and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return "f:versions" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    return False
