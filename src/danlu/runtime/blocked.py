"""`Blocked`, reason `MissingRight`: an object says which right its controller lacks, as long as it does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from danlu import errors
from danlu.diagnose.reading import recognise
from danlu.meta import conditions
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.said import CAUSES, carried
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome
from danlu.runtime.recorder import EventRecorder

BLOCKED, REASON = "Blocked", "MissingRight"
REFUSED = "Refused"  # of an event: a change that the server did not take
OVER = ("Succeeded", "Failed", "Completed")  # conditions of a job that has ended: it waits for nobody


class MissingRights:
    """Tells of them in a condition beside what the kind's own `decide` says."""

    def __init__(
        self, manager: Manager, recorder: EventRecorder, kinds: Collection[Kind], explain: Callable[[str], str]
    ) -> None:
        """`kinds`: what must be readable."""
        self._manager = manager
        self._recorder = recorder
        self._kinds = kinds
        self._explain = explain

    def unreadable(self, obj: Object) -> str:
        """What the server says of a kind that we may not read; "" where the object does not care any more."""
        found = self._manager.forbidden(self._kinds)
        return found[0] if found and not is_over(conditions_of(obj.get("status"))) else ""

    def is_cause(self, obj: Object, error: errors.ApiError) -> bool:
        """Whether a right of ours is what is missing; else a warning says what was refused."""
        if not isinstance(error, errors.Forbidden):
            return False
        # Every other refusal is about the object, not about us.
        is_right = (recognise(error.message) or ("", {}))[0] == "DL-RIGHT"
        if is_right and not is_over(conditions_of(obj.get("status"))):
            return True
        self.warn(obj, error)
        return False

    def warn(self, obj: Object, error: errors.ApiError) -> None:
        self._recorder.warning(obj, REFUSED, self._explain(error.message))

    def tell(self, obj: Object, outcome: Outcome, said: str) -> None:
        """`said`: by the server; "" when no right is missing, and then the condition goes."""
        status = outcome.status
        if status is None:
            return
        present = conditions_of(status)
        if not said:
            if is_told(present):
                status["conditions"] = freed(present)
            return
        message, before = self._explain(said), conditions_of(obj.get("status"))
        status["conditions"] = told(present, message, before, rfc3339(self._manager.clock()))
        if not is_told(before, message):
            outcome.status_delay_s = 0.0
            self._recorder.warning(obj, REASON, message)


def conditions_of(status: Object | None) -> Sequence[Object]:
    return (status or {}).get("conditions") or ()


def is_over(present: Sequence[Object]) -> bool:
    return any(conditions.is_true(present, type) for type in OVER)


def is_told(present: Sequence[Object], message: str = "") -> bool:
    """Whether they say it; with a message: in these words."""
    found = conditions.get(present, BLOCKED)
    return found is not None and found.get("reason") == REASON and message in ("", found.get("message"))


def told(present: Sequence[Object], message: str, before: Sequence[Object], now: str) -> list[Object]:
    """The same and `Blocked`, first: of a job's conditions the last one is shown as its state."""
    said: Object = {"type": BLOCKED, "status": "True", "reason": REASON, "message": message}
    if causes := carried(message):
        said[CAUSES] = causes
    since = {"lastUpdateTime": now, "lastTransitionTime": now}
    found = conditions.get(before, BLOCKED) if is_told(before, message) else None
    return [found or {**said, **since}, *_without(present)]


def freed(present: Sequence[Object]) -> list[Object]:
    return _without(present) if is_told(present) else [*present]


def _without(present: Sequence[Object]) -> list[Object]:
    return [one for one in present if one["type"] != BLOCKED]
