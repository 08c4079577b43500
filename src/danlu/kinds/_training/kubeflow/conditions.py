"""The conditions of a Kubeflow job. Their order is part of the API: the STATE column shows the last one in the list.

- At most one of a type; one that changes moves to the end; the same type, status and reason again changes nothing.
- Running and Restarting take each other's place. The end turns Running to "False" and leaves it in the list.
- After Failed nothing more is added.

`Blocked` is ours: something keeps the job from running. So is `ImageSubstituted`: it runs in another image than its
own. They stand first, so that STATE says what it always said, and are there only as long as they are true.
"""

from __future__ import annotations

from danlu.diagnose.contract import SUBSTITUTED
from danlu.kinds._training.trouble import Trouble
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.said import CAUSES, carried

CREATED, RUNNING, RESTARTING, SUSPENDED = "Created", "Running", "Restarting", "Suspended"
SUCCEEDED, FAILED, BLOCKED = "Succeeded", "Failed", "Blocked"


class JobConditions:
    def __init__(self, present: list[Object] | None, kind: str, now: str) -> None:
        self.items = [dict(one) for one in present or ()]
        self._kind = kind
        self._now = now

    def is_true(self, type: str) -> bool:
        return conditions.is_true(self.items, type)

    def has(self, type: str) -> bool:
        return conditions.get(self.items, type) is not None

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
            **_causes(message),
        }
        replaced = {RUNNING: RESTARTING, RESTARTING: RUNNING}.get(type)
        self.items = [one for one in self.items if one["type"] not in (type, replaced)]
        if type in (SUCCEEDED, FAILED):
            for one in self.items:
                if one["type"] == RUNNING and one["status"] == "True":
                    one.update(status="False", lastUpdateTime=self._now, lastTransitionTime=self._now)
        self.items.append(added)
        return True

    def note_images(self, message: str) -> bool:
        """Whether `ImageSubstituted` says something now that it did not say before; "": it goes."""
        found = conditions.get(self.items, SUBSTITUTED)
        if found is not None and found.get("message") == message:
            return False
        self.items = [one for one in self.items if one["type"] != SUBSTITUTED]
        if message:
            told = {"type": SUBSTITUTED, "status": "True", "reason": SUBSTITUTED, "message": message}
            since = {"lastUpdateTime": self._now, "lastTransitionTime": self._now}
            self.items.insert(0, {**told, **since, **_causes(message)})
        return bool(message)

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
                **_causes(trouble.message),
            },
        )
        return not same


def _causes(message: str) -> Object:
    found = carried(message)
    return {CAUSES: found} if found else {}
