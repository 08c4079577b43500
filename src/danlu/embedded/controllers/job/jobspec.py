"""What a Job's spec says about single pods and single moments; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers.job.indexes import Indexes, completion_index
from danlu.meta import conditions, objects
from danlu.meta.clock import later, parse_time, rfc3339
from danlu.meta.integers import decimal
from danlu.meta.kind import Object

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
FIRST_POD_BACKOFF_S = 10.0
LONGEST_POD_BACKOFF_S = 600.0


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def is_finished(job: Object) -> bool:
    held = (job.get("status") or {}).get("conditions")
    return conditions.is_true(held, "Complete") or conditions.is_true(held, "Failed")


def is_tracked(pod: Object) -> bool:
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def replaces_only_failed(job: Object) -> bool:
    """Whether a pod that is still ending keeps its place."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def has_failed(pod: Object, job: Object) -> bool:
    if states.phase(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    # A pod whose node is gone never reaches the phase Failed.
    return objects.is_deleting(pod) and states.phase(pod) != "Succeeded"


def condition(type: str, reason: str, message: str, now: datetime, status: str = "True") -> Object:
    at = rfc3339(now)
    made = {"type": type, "status": status, "lastProbeTime": at, "lastTransitionTime": at}
    return {**made, "reason": reason, "message": message}


# -- podFailurePolicy


@dataclass(frozen=True, slots=True)
class PodVerdict:
    action: str = ""  # "" when no rule matches
    message: str = ""  # why the whole job fails (FailJob)

    @property
    def counts(self) -> bool:
        return self.action != "Ignore"


def judge(job: Object, pod: Object) -> PodVerdict:
    """What the pod failure policy makes of a failed pod; the first rule that matches decides."""
    policy = job["spec"].get("podFailurePolicy") or {}
    meta = pod["metadata"]
    for index, rule in enumerate(policy.get("rules") or ()):
        action = rule["action"]
        if rule.get("onExitCodes"):
            container = _container_matching(pod, rule["onExitCodes"])
            if container is None:
                continue
            message = (
                f"Container {container['name']} for pod {meta['namespace']}/{meta['name']} failed with exit code "
                f"{container['state']['terminated']['exitCode']} matching {action} rule at index {index}"
            )
        else:
            matched = _condition_matching(pod, rule.get("onPodConditions") or ())
            if matched is None:
                continue
            message = (
                f"Pod {meta['namespace']}/{meta['name']} has condition {matched['type']} "
                f"matching {action} rule at index {index}"
            )
        return PodVerdict(action, message if action == "FailJob" else "")
    return PodVerdict()


def _container_matching(pod: Object, requirement: Object) -> Object | None:
    status = pod.get("status") or {}
    for container in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        ended = (container.get("state") or {}).get("terminated")
        if ended is None or requirement.get("containerName") not in (None, "", container["name"]):
            continue
        code = ended.get("exitCode", 0)
        if code != 0 and (code in requirement["values"]) == (requirement["operator"] == "In"):
            found: Object = container
            return found
    return None


def _condition_matching(pod: Object, patterns: Sequence[Object]) -> Object | None:
    for held in (pod.get("status") or {}).get("conditions") or ():
        for pattern in patterns:
            if held["type"] == pattern["type"] and held["status"] == pattern.get("status", "True"):
                found: Object = held
                return found
    return None


def fail_job_message(job: Object, pods: Iterable[Object]) -> str:
    if job["spec"].get("podFailurePolicy") is None:
        return ""
    for pod in pods:
        if has_failed(pod, job):
            message = judge(job, pod).message
            if message:
                return message
    return ""


# -- successPolicy


def success_message(job: Object, succeeded: Indexes) -> str:
    """Why the success policy is met; empty when it is not."""
    policy = job["spec"].get("successPolicy")
    if policy is None or not succeeded.runs:
        return ""
    for index, rule in enumerate(policy.get("rules") or ()):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is not None:
            required = Indexes.parse(rule["succeededIndexes"], job["spec"]["completions"])
            if not required.runs:
                continue
            common = required.overlap(succeeded)
            met = common == len(required) or (count is not None and common >= count)
        else:
            met = count is not None and len(succeeded) >= count
        if met:
            return f"Matched rules at index {index}"
    return ""


# -- limits


def restarts_exceed_limit(job: Object, pods: Iterable[Object]) -> bool:
    """With restartPolicy OnFailure it is restarts inside of pods that count against backoffLimit."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = 0
    for pod in pods:
        if states.phase(pod) in ("Running", "Pending"):
            status = pod.get("status") or {}
            for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
                restarts += container.get("restartCount", 0)
    limit = job["spec"]["backoffLimit"]
    return restarts > 0 if limit == 0 else restarts >= limit


def deadline_in(job: Object, status: Object, now: datetime) -> float | None:
    """Seconds until activeDeadlineSeconds have passed (0 or less: they have); None where there is no deadline."""
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or not status.get("startTime") or is_suspended(job):
        return None
    return float(limit) - (now - parse_time(status["startTime"])).total_seconds()


# -- back-off between a failure and the next pod


@dataclass(frozen=True, slots=True)
class Backoff:
    failures: int = 0  # in a row, since the last success
    last: datetime | None = None  # when the last of them was

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> Backoff:
        """With the pods that have finished since."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return Backoff(self.failures + len(ends), ends[-1]) if ends else self
        success = max(finished_at(pod) for pod in succeeded)
        later = [end for end in ends if end > success]
        return Backoff(len(later), later[-1]) if later else Backoff()

    def remaining(self, now: datetime) -> float:
        """Seconds until a new pod may be made."""
        return _backoff_left(self.failures, self.last, now)


def _backoff_left(failures: int, last: datetime | None, now: datetime) -> float:
    if failures == 0 or last is None:
        return 0.0
    delay = min(FIRST_POD_BACKOFF_S * 2.0 ** min(failures - 1, 32), LONGEST_POD_BACKOFF_S)
    return max(0.0, delay - (now - last).total_seconds())


def index_backoff_left(replaced: Object | None, now: datetime) -> float:
    """The same for one index of a job with backoffLimitPerIndex; the count travels from pod to pod."""
    if replaced is None:
        return 0.0
    return _backoff_left(absolute_failures(replaced) + 1, finished_at(replaced), now)


def finished_at(pod: Object) -> datetime:
    status = pod.get("status") or {}
    sidecars = {c["name"] for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"}
    watched = [*(status.get("containerStatuses") or ())]
    watched += [c for c in status.get("initContainerStatuses") or () if c["name"] in sidecars]
    ends = [((c.get("state") or {}).get("terminated") or {}).get("finishedAt") for c in watched]
    if ends and all(ends):
        return max(parse_time(end) for end in ends if end)
    ready = conditions.get(status.get("conditions"), "Ready")
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        return later(parse_time(meta["deletionTimestamp"]), -(meta.get("deletionGracePeriodSeconds") or 0))
    return parse_time(meta["creationTimestamp"])


# -- backoffLimitPerIndex


def _count(pod: Object, annotation: str) -> int:
    text = objects.annotations_of(pod).get(annotation, "")
    return decimal(text) if text.isascii() and text.isdigit() and decimal(text) < 2**31 else 0


def absolute_failures(pod: Object) -> int:
    return _count(pod, FAILURE_COUNT) + _count(pod, IGNORED_FAILURE_COUNT)


def index_has_failed(job: Object, pod: Object) -> bool:
    if not has_failed(pod, job):
        return False
    verdict = judge(job, pod)
    if verdict.action == "FailIndex":
        return True
    return verdict.counts and _count(pod, FAILURE_COUNT) >= job["spec"]["backoffLimitPerIndex"]


def failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    """The annotations with which a new pod remembers the failures of the one it replaces."""
    if replaced is None:
        return {FAILURE_COUNT: "0"}
    counted, ignored = _count(replaced, FAILURE_COUNT), _count(replaced, IGNORED_FAILURE_COUNT)
    if judge(job, replaced).counts:
        counted += 1
    else:
        ignored += 1
    return {FAILURE_COUNT: str(counted), **({IGNORED_FAILURE_COUNT: str(ignored)} if ignored else {})}


# -- which pods are too many


def surplus(job: Object, active: Sequence[Object], at_least: int) -> list[Object]:
    """Active pods to remove: of an indexed job first those with a doubled, missing or too high index."""
    if not is_indexed(job):
        return states.deletion_order(active)[:at_least]
    removed: list[Object] = []
    by_index: dict[int, list[Object]] = {}
    for pod in active:
        index = completion_index(pod)
        if index is None or index >= job["spec"]["completions"]:
            removed.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    left = []
    for _, same in sorted(by_index.items()):
        *doubled, kept = states.deletion_order(same)
        removed += doubled
        left.append(kept)
    if len(removed) < at_least:
        removed += states.deletion_order(left)[: at_least - len(removed)]
    return removed
