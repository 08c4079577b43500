"""Jobs: defaults, the generated selector, columns. What a valid Job is, is in `jobrules.py` and `jobstatus.py`."""

from __future__ import annotations

from datetime import UTC, datetime

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, SELECTOR
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import (
    default_template,
    drop_zeros,
    name_warnings,
    spec_of,
    template_labels,
)
from danlu.embedded.builtin.batch import jobrules, jobstatus
from danlu.meta import clock, names, objects
from danlu.meta.conditions import is_true
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB

_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000
_MANY_TEXT = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    default_template(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    labels = template_labels(spec)
    if labels and not objects.labels_of(obj):
        # The very same dict, as in Kubernetes: labels that creation adds to the template then show on the Job, too.
        objects.metadata(obj)["labels"] = labels
    if spec.get("completionMode") is None:
        spec["completionMode"] = "NonIndexed"
    if spec.get("suspend") is None:
        spec["suspend"] = False
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    if spec.get("manualSelector") is None:
        spec["manualSelector"] = False
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"


def prepare_create(obj: Object) -> None:
    """The selector is made from the uid, which the server has given already, so that no two Jobs share pods."""
    spec = spec_of(obj)
    if not spec.get("manualSelector"):
        _generate_selector(obj, spec)
    _own_labels(obj, spec)
    obj["status"] = {}
    first_generation(obj)


def _generate_selector(obj: Object, spec: Object) -> None:
    uid, name = objects.uid(obj), objects.name(obj)
    metadata = spec["template"].setdefault("metadata", {})
    labels = metadata.get("labels")
    if not labels:
        labels = metadata["labels"] = {}
    for label in jobrules.NAME_LABELS:
        labels.setdefault(label, name)
    for label in jobrules.UID_LABELS:
        labels.setdefault(label, uid)
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        selector = spec["selector"] = {}
    if not isinstance(selector.get("matchLabels"), dict):
        selector["matchLabels"] = {}
    selector["matchLabels"].setdefault(jobrules.UID_LABEL, uid)


def _own_labels(obj: Object, spec: Object) -> None:
    """A copy of the template's labels where the Job has none of its own; from here on the two may differ."""
    labels, own = template_labels(spec), objects.labels_of(obj)
    if labels and (not own or own is labels):
        objects.metadata(obj)["labels"] = dict(labels)


def prepare_update(new: Object, old: Object) -> None:
    _own_labels(new, spec_of(new))
    keep_status_and_count(new, old)


def prepare_status(new: Object, old: Object) -> None:
    keep_spec(new, old)
    status = new.get("status") or {}
    drop_zeros(status, ("active", "succeeded", "failed"))
    for condition in status.get("conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def warnings(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    found = name_warnings(obj)
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS and (spec.get("parallelism") or 0) > _MANY_AT_ONCE
    if spec.get("completionMode") == "Indexed" and many:
        found.append(_MANY_TEXT)
    return found


def selectable(obj: Object) -> dict[str, str]:
    return {"status.successful": str(objects.get(obj, "status.succeeded", 0))}


# -- columns


def status_of(obj: Object) -> str:
    held = objects.get(obj, "status.conditions", ())
    if is_true(held, "Complete"):
        return "Complete"
    if is_true(held, "Failed"):
        return "Failed"
    if objects.is_deleting(obj):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_true(held, condition):
            return condition
    return "Running"


def completions_of(obj: Object) -> str:
    succeeded = objects.get(obj, "status.succeeded", 0)
    completions = objects.get(obj, "spec.completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = objects.get(obj, "spec.parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def duration_of(obj: Object) -> str:
    started, ended = objects.get(obj, "status.startTime"), objects.get(obj, "status.completionTime")
    if not started:
        return ""
    until = clock.parse_time(ended) if ended else datetime.now(UTC)
    return clock.human_duration((until - clock.parse_time(started)).total_seconds())


SERVED = ServedKind(
    kind=JOB,
    schema=schema_of("io.k8s.api.batch.v1.Job"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Status", status_of, description="Status of the job."),
        Column("Completions", completions_of, description="How many of the wanted pods succeeded."),
        Column("Duration", duration_of, description="Time required to complete the job."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    default=default,
    validate=jobrules.validate,
    validate_update=jobrules.validate_update,
    validate_status=jobstatus.validate_status,
    warnings=warnings,
    selectable=selectable,
    selectable_names=frozenset({"status.successful"}),
    has_status=True,
    unselectable="field label {} not supported for Job",
    default_propagation="Orphan",
    orphan_warning=(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    ),
)
