"""Why what makes pods does not run: jobs, notebooks, TensorBoards.

Its pods say it; else its conditions, which carry the causes that its controller found in the same way; else what is
said about it by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from danlu.diagnose import podtemplates, quotaroom
from danlu.diagnose.cause import Cause, causes_in, worst_first
from danlu.diagnose.contract import IDLE, SUBSTITUTED, TELLING
from danlu.diagnose.evidence import Evidence, message_of
from danlu.diagnose.pods import explain_pod, substituted
from danlu.diagnose.reading import recognise
from danlu.meta import conditions
from danlu.meta.kind import Object


def explain_owner(obj: Object, evidence: Evidence) -> list[Cause]:
    status = obj.get("status") or {}
    phase, told = str(status.get("phase") or ""), status.get("conditions") or []
    if phase == "Succeeded" or conditions.is_true(told, "Succeeded"):
        return [*_of_images(obj, told)]
    if phase == "Paused" or conditions.is_true(told, "Paused"):
        return [_own(obj, "DL-PAUSED", "Paused")]
    if phase == "Suspended" or conditions.is_true(told, "Suspended"):
        idle = [one for one in causes_in(conditions.get(told, "Suspended") or {}, _about(obj)) if one.code == IDLE]
        return idle or [_own(obj, "DL-SUSPENDED", "Suspended")]
    stored = [*_stored(obj, told)]
    progress = [cause for cause in stored if cause.severity == "info"]  # that it is on its way explains nothing
    stored = [cause for cause in stored if cause.severity != "info"]
    failed = phase == "Failed" or conditions.is_true(told, "Failed")
    stored += [cause for cause in _of_images(obj, told) if not _says(stored, cause)]
    if failed and stored:
        return stored
    found = of_pods(evidence.pods, evidence)
    known = {one.code for one in found}
    found += [cause for cause in stored if cause.code not in known and not _says(found, cause)]
    found = worst_first(found) if failed else _of_the_whole(found, obj, evidence)
    if found or phase == "Running" or any(conditions.is_true(told, type) for type in ("Running", "Ready")):
        return found
    return [*_said_by_others(obj, told, evidence)] if not progress or _refused(evidence) else progress


def _of_the_whole(found: list[Cause], obj: Object, evidence: Evidence) -> list[Cause]:
    """Beside what keeps single pods."""
    found = worst_first(_of_quotas(found, obj, evidence))
    wanted = sum(number for _, number in podtemplates.of_roles(obj))
    if partial := partly(evidence.pods, wanted, found, _about(obj)):
        return [partial, *(cause for cause in found if cause.code != partial.code)]
    return found


def _of_quotas(found: list[Cause], obj: Object, evidence: Evidence) -> list[Cause]:
    """A quota that is short says so in numbers, also before anybody was refused; that it can never do goes before all
    that an API server says."""
    short = quotaroom.short(obj, evidence)
    if short is None or (short.code == quotaroom.QUOTA and any(map(quotaroom.is_quota, found))):
        return found
    return [short, *(cause for cause in found if not quotaroom.is_quota(cause))]


def of_pods(pods: Iterable[Object], evidence: Evidence, *, starting: bool = True) -> list[Cause]:
    """One cause for all pods that have the same, which names the first of them; the worst first."""
    found: dict[str, Cause] = {}
    counts: dict[str, int] = {}
    for pod in sorted(pods, key=lambda one: str(one["metadata"]["name"])):
        for cause in explain_pod(pod, evidence, starting=starting):
            key = cause.sentence() if cause.severity == "warning" else cause.code
            counts[key] = counts.get(key, -1) + 1
            found.setdefault(key, cause)
    return worst_first(_counted(cause, counts[key]) for key, cause in found.items())


def replaced_images(pods: Iterable[Object]) -> list[Cause]:
    """Of pods that run in another image than the one they name: each image once, without the pods' names."""
    found = {cause.sentence(): cause for pod in pods for cause in substituted(pod)}
    return [Cause(cause.code, cause.params, reason=SUBSTITUTED) for cause in found.values()]


def _counted(cause: Cause, more: int) -> Cause:
    return Cause(cause.code, {**cause.params, "more": more}, cause.about, cause.reason) if more else cause


def partly(pods: Sequence[Object], wanted: int, causes: Sequence[Cause], about: str) -> Cause | None:
    """Some replicas run while others are kept from it: a distributed job hangs there, however well it looks."""
    running = sum((pod.get("status") or {}).get("phase") == "Running" for pod in pods)
    done = sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods)
    kept = any(cause.keeps for cause in causes)
    if not running or not kept or running + done >= wanted:
        return None
    return Cause("DL-PARTIAL", {"running": running, "wanted": wanted}, about, "Pending")


def _stored(obj: Object, told: Sequence[Object]) -> Iterator[Cause]:
    """What its controller found, from the first condition that carries something."""
    for type, status in TELLING:
        condition = conditions.get(told, type)
        if condition is None or condition.get("status") != status:
            continue
        causes = causes_in(condition, _about(obj))
        if causes:
            yield from causes
            return


def _of_images(obj: Object, told: Sequence[Object]) -> list[Cause]:
    condition = conditions.get(told, SUBSTITUTED) or {}
    return causes_in(condition, _about(obj)) if condition.get("status") == "True" else []


def _says(causes: Iterable[Cause], cause: Cause) -> bool:
    return any(one.params.get("replaced") == cause.carried() for one in causes)


def _said_by_others(obj: Object, told: Sequence[Object], evidence: Evidence) -> Iterator[Cause]:
    """Another operator's conditions, and events: that of whatever makes its pods (a StatefulSet) first."""
    if (refused := _refused(evidence)) is not None:
        yield by_message(message_of(refused), _about(obj), "FailedCreate")
        return
    for type, status in TELLING:
        condition = conditions.get(told, type)
        if condition and condition.get("status") == status and condition.get("message"):
            yield by_message(str(condition["message"]), _about(obj), str(condition.get("reason") or ""))
            return
    for event in evidence.about(obj["metadata"].get("uid")):
        if event.get("type") == "Warning":
            yield from causes_in(event, _about(obj)) or [by_message(message_of(event), _about(obj), "")]
            return
    if not evidence.pods and _may_make_pods(obj):
        yield _own(obj, "DL-NO-PODS", "Creating")


def _may_make_pods(obj: Object) -> bool:
    """Not Kubernetes' own kinds outside of `apps` and `batch`: that a ConfigMap has no pods is worth no word."""
    group, slash, _ = str(obj.get("apiVersion", "")).partition("/")
    if not slash:
        return obj.get("apiVersion") is None or obj.get("kind") == "ReplicationController"
    return not group.endswith(".k8s.io")


def _refused(evidence: Evidence) -> Object | None:
    """What whatever makes its pods was told, as long as there are none."""
    found = (event for event in evidence.events if event.get("reason") == "FailedCreate")
    return None if evidence.pods else next(found, None)


def by_message(message: str, about: str, reason: str) -> Cause:
    code, told = recognise(message) or ("DL-SAID", {})
    if code == quotaroom.QUOTA:
        told = quotaroom.with_left(told)
    return Cause(code, {**told, "message": message}, about, reason)


def _own(obj: Object, code: str, reason: str) -> Cause:
    return Cause(code, {}, _about(obj), reason)


def _about(obj: Object) -> str:
    return f"{obj.get('kind')}/{obj['metadata']['name']}"
