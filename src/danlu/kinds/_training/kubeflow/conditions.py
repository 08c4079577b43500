"""The conditions of a Kubeflow job. Their order is part of the API: the STATE column shows the last one in the list.

- At most one of a type; one that changes moves to the end; the same type, status and reason again changes nothing.
- Running and Restarting take each other's place. The end turns Running to "False" and leaves it in the list.
- After Failed nothing more is added.

`Blocked` is ours: something keeps the job from running. It stands first, so that STATE says what it always said, and is
there only as long as it is true.
"""

from __future__ import annotations

from danlu.kinds._training.trouble import Trouble
from danlu.meta import conditions
from danlu.meta.kind import Object

CREATED, RUNNING, RESTARTING, SUSPENDED = "Created", "Running", "Restarting", "Suspended"
SUCCEEDED, FAILED, BLOCKED = "Succeeded", "Failed", "Blocked"


class JobConditions:
    def __init__(self, present: list[Object] | None, kind: str, now: str) -> None:
        self.items = [dict(one) for one in present or ()]
        self._kind = kind
        self._now = now

    def is_true(self, type: str) -> bool:
        return conditions.is_true(self.items, type)

    @property
    def finished(self) -> bool:
        return self.is_true(SUCCEEDED) or self.is_true(FAILED)

    def add(self, type: str, message: str, *, status: str = "True", reason: str = "") -> bool:
        """Whether anything changed. `reason` is the type, unless said otherwise; the kind goes before it."""
        reason = f"{self._kind}{reason or type}"
        found = conditions.get(self.items, type)
        if self.is_true(FAILED) or (found and (found.get("status"), found.get("reason")) == (status, reason)):
            return False
        since = found["lastTransitionTime"] if found and found.get("status") == status else self._now
        added: Object = {
            "type": type,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": self._now,
            "lastTransitionTime": since,
        }
        replaced = {RUNNING: RESTARTING, RESTARTING: RUNNING}.get(type)
        self.items = [one for one in self.items if one["type"] not in (type, replaced)]
        if type in (SUCCEEDED, FAILED):
            for one in self.items:
                if one["type"] == RUNNING and one["status"] == "True":
                    one.update(status="False", lastUpdateTime=self._now, lastTransitionTime=self._now)
        self.items.append(added)
        return True

    def block(self, trouble: Trouble | None) -> bool:
        """Whether there is a reason now that was not there before."""
        found = conditions.get(self.items, BLOCKED)
        self.items = [one for one in self.items if one["type"] != BLOCKED]
        if trouble is None:
            return False
        same = found is not None and found.get("reason") == trouble.reason
        unchanged = same and found is not None and found.get("message") == trouble.message
        self.items.insert(
            0,
            {
                "type": BLOCKED,
                "status": "True",
                "reason": trouble.reason,
                "message": trouble.message,
                "lastUpdateTime": found["lastUpdateTime"] if unchanged and found else self._now,
                "lastTransitionTime": found["lastTransitionTime"] if found else self._now,
            },
        )
        return not same
