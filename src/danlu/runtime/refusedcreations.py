"""`Refusals`: what the server would not create. `decide` sees it in a second look, so the status can tell of it."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.runtime.reconcile import Outcome, Refusal

RETRY_S = 5.0  # a quota may be raised, a name may become free: nobody tells us


class Refusals:
    """Of creations that nobody waited for (`deferred`): kept until the object is looked at again."""

    def __init__(self) -> None:
        self._by_uid: dict[str, list[Refusal]] = {}

    def put(self, uid: str, refused: Sequence[Refusal]) -> None:
        if refused:
            self._by_uid.setdefault(uid, []).extend(refused)

    def take(self, uid: str) -> list[Refusal]:
        return [*self._by_uid.pop(uid, ())]

    def forget(self, uid: str) -> None:
        self._by_uid.pop(uid, None)


def retry(outcome: Outcome) -> None:
    """What is refused is told at once, and tried again before long."""
    outcome.status_delay_s = 0.0
    outcome.requeue_within(RETRY_S)
