"""Names, hashes and annotations by which the replica sets of a deployment are told apart; pure."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.embedded.controllers._shared.hashes import short_hash
from danlu.meta import objects
from danlu.meta.integers import decimal
from danlu.meta.kind import Object

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"
NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)
HISTORY_LENGTH = 2000  # characters
LONGEST_NAME = 253


def template_hash(template: Object, collisions: int | None) -> str:
    return short_hash(_plain(template), collisions)


def name_of(deployment: str, hashed: str) -> str:
    return f"{deployment[: LONGEST_NAME - 1 - len(hashed)]}-{hashed}"


def same_template(one: Object, other: Object) -> bool:
    return bool(_plain(one) == _plain(other))


def _plain(template: Object) -> Object:
    """Without the hash label, and without the nulls that clients write."""
    meta = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in (meta.pop("labels", None) or {}).items() if key != HASH_LABEL}
    plain: Object = _without_nulls({**template, "metadata": {**meta, "labels": labels}})
    return plain


def _without_nulls(value: object) -> Object:
    def clean(part: object) -> object:
        if isinstance(part, dict):
            return {key: clean(inner) for key, inner in part.items() if inner is not None}
        if isinstance(part, list):
            return [clean(inner) for inner in part]
        return part

    cleaned = clean(value)
    assert isinstance(cleaned, dict)
    return cleaned


def number(obj: Object, annotation: str) -> int | None:
    text = objects.annotations_of(obj).get(annotation, "")
    return decimal(text) if text.isascii() and text.isdigit() and decimal(text) < 2**31 else None


def revision(replica_set: Object) -> int:
    text = objects.annotations_of(replica_set).get(REVISION, "")
    try:
        return decimal(text)
    except ValueError:
        return 0


def newest(replica_sets: Iterable[Object]) -> int:
    return max(map(revision, replica_sets), default=0)


def annotations_for(deployment: Object, replica_set: Object, number: int) -> dict[str, str]:
    """The annotations of the replica set that is (or becomes again) revision `number`."""
    wanted = dict(objects.annotations_of(replica_set))
    for key, value in objects.annotations_of(deployment).items():
        if key not in NOT_COPIED:
            wanted[key] = value
    held = wanted.get(REVISION, "")
    if held and not held.lstrip("-").isdigit():
        return wanted
    if decimal(held or "0") < number:
        wanted[REVISION] = str(number)
        if held:
            wanted[REVISION_HISTORY] = _with_revision(wanted.get(REVISION_HISTORY, ""), held)
    return wanted


def _with_revision(history: str, held: str) -> str:
    parts = [*(history.split(",") if history else ()), held]
    while len(parts) > 1 and len(",".join(parts)) > HISTORY_LENGTH:
        parts.pop(0)
    return ",".join(parts)


def size_annotations(desired: int, most: int) -> dict[str, str]:
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)}
