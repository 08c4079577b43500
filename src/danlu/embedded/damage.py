"""What a start found damaged, told where people look: an Event for each finding, and one line for `danlu status`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from danlu.client.client import Client
from danlu.embedded.storage.quarantine import FILE, HISTORY, LOSS, OBJECT, Finding
from danlu.errors import ApiError
from danlu.meta import clock
from danlu.meta.kind import Object
from danlu.meta.wellknown import EVENT

log = logging.getLogger("danlu.damage")

NAMESPACE = "kube-system"
TOLD = 50  # events of one start; the rest is in `danlu repair`
REASONS = {OBJECT: "StoredObjectDamaged", HISTORY: "StoredHistoryDamaged", LOSS: "AcknowledgedWritesLost"}


async def tell(client: Client, findings: Sequence[Finding]) -> None:
    """Never fails: the server starts whether or not an event can be written."""
    for finding in findings[:TOLD]:
        try:
            await client.create(EVENT, _event(finding), NAMESPACE)
        except ApiError as error:
            log.warning("cannot write an event about %s: %s", finding.what, error)


def _event(finding: Finding) -> Object:
    now = clock.now_rfc3339()
    about = {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "damage-", "namespace": NAMESPACE},
        "involvedObject": {**about, "namespace": NAMESPACE},
        "type": "Warning",
        "reason": REASONS.get(finding.kind, "FileDamaged"),
        "message": f"{finding.what}: {finding.reason}; `danlu repair show {finding.id}` tells more"[:1024],
        "source": {"component": "danlu-storage"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def summary(findings: Iterable[Finding]) -> str:
    """ "" when there is nothing to tell."""
    found = list(findings)
    count = Counter(one.kind for one in found)
    parts = []
    if count[OBJECT]:
        parts.append(_plural(count[OBJECT], "damaged object in quarantine", "damaged objects in quarantine"))
    lost = sum(one.count for one in found if one.kind == LOSS)
    if lost:
        parts.append(_plural(lost, "acknowledged write lost", "acknowledged writes lost"))
    for kind, one, many in (
        (LOSS, "doubt about the end of the log", "doubts about the end of the log"),
        (HISTORY, "damaged old version", "damaged old versions"),
        (FILE, "damaged file replaced", "damaged files replaced"),
    ):
        number = sum(1 for finding in found if finding.kind == kind and not finding.count)
        if number:
            parts.append(_plural(number, one, many))
    return f"{', '.join(parts)}; `danlu repair` tells more" if parts else ""


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
