"""CronJobs: a Job again and again, at the times of a schedule. The times themselves: `meta/cron.py`."""

from __future__ import annotations

import re
from dataclasses import replace

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import CONTAINERS, IMAGES, in_template, text_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin._shared.workloads import counter_errors, default_template, name_warnings, spec_of
from danlu.embedded.builtin.batch import jobrules
from danlu.meta import clock, cron, names, objects
from danlu.meta.fields import FieldError, invalid, not_negative, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import CRON_JOB

LONGEST_NAME = 52  # 63 less the eleven characters that a Job's name has more
_TEMPLATE = "spec.jobTemplate.spec.template"
_POLICIES = ("Allow", "Forbid", "Replace")
_ZONE_PART = re.compile(r"[A-Za-z0-9_.+-]{1,14}")
_ZONE_WARNING = (
    "spec.schedule: CRON_TZ or TZ used in schedule is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def default(obj: Object) -> None:
    spec = spec_of(obj)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    for field, value in (("suspend", False), ("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1)):
        if spec.get(field) is None:
            spec[field] = value
    if not isinstance(spec.get("jobTemplate"), dict):
        spec["jobTemplate"] = {}
    default_template(spec_of(spec["jobTemplate"]))


def prepare_create(obj: Object) -> None:
    obj["status"] = {}
    first_generation(obj)


# -- what is valid


def validate(obj: Object) -> list[FieldError]:
    errors = _spec_errors(obj.get("spec") or {}, None)
    name = objects.name(obj)
    if len(name) > LONGEST_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {LONGEST_NAME} characters"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Names are not looked at again: one that was too long could be changed no more."""
    return _spec_errors(new.get("spec") or {}, old.get("spec") or {})


def _spec_errors(spec: Object, before: Object | None) -> list[FieldError]:
    errors = _schedule_errors(spec, before)
    errors += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if before is None or before.get("timeZone") != spec.get("timeZone"):
        errors += _zone_errors(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy")
    if not policy:
        errors.append(required("spec.concurrencyPolicy"))
    elif policy not in _POLICIES:
        errors.append(not_supported("spec.concurrencyPolicy", policy, _POLICIES))
    errors += _template_errors(objects.get(spec, "jobTemplate.spec", {}))
    return errors + counter_errors(spec, "spec", ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))


def _schedule_errors(spec: Object, before: Object | None) -> list[FieldError]:
    schedule, field = spec.get("schedule") or "", "spec.schedule"
    if not schedule:
        return [required(field)]
    errors: list[FieldError] = []
    try:
        cron.parse(schedule)
    except cron.ScheduleError as why:
        errors.append(invalid(field, schedule, str(why)))
    if "TZ" in schedule:
        if "TZ" not in ((before or {}).get("schedule") or ""):
            text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid(field, schedule, text))
        elif spec.get("timeZone") is not None:
            text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            errors.append(invalid(field, schedule, text))
    return errors


def _zone_errors(zone: str | None) -> list[FieldError]:
    field = "spec.timeZone"
    if zone is None:
        return []
    if not zone:
        return [invalid(field, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [invalid(field, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(field, zone, text)]
    try:
        cron.zone_of(zone)
    except cron.ScheduleError as why:
        return [invalid(field, zone, str(why))]
    return []


def _template_errors(spec: Object) -> list[FieldError]:
    errors = jobrules.template_errors(spec)
    if spec.get("selector") is not None:
        errors.append(invalid("spec.selector", spec["selector"], "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errors.append(not_supported("spec.manualSelector", True, ["nil", "false"]))
    return [replace(error, field=f"spec.jobTemplate.{error.field}") for error in errors]


def warnings(obj: Object) -> list[str]:
    found = name_warnings(obj)
    return [*found, _ZONE_WARNING] if "TZ" in objects.get(obj, "spec.schedule", "") else found


# -- columns


def _last_schedule(obj: Object) -> str:
    stamp = objects.get(obj, "status.lastScheduleTime")
    return clock.age(stamp) if stamp else "<none>"


SERVED = ServedKind(
    kind=CRON_JOB,
    schema=schema_of("io.k8s.api.batch.v1.CronJob"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Schedule", text_at("spec.schedule"), description="When it runs."),
        Column("Timezone", text_at("spec.timeZone", "<none>"), description="Where the schedule's hours are read."),
        Column("Suspend", text_at("spec.suspend", "False"), description="Whether it rests."),
        Column(
            "Active",
            lambda obj: len(objects.get(obj, "status.active", ())),
            type="integer",
            description="How many of its jobs run.",
        ),
        Column("Last Schedule", _last_schedule, description="Time since a job was last due."),
        AGE,
        replace(CONTAINERS, value=in_template("name", _TEMPLATE)),
        replace(IMAGES, value=in_template("image", _TEMPLATE)),
        Column("Selector", lambda _: "<none>", priority=1, description="Each of its jobs has one of its own."),
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    warnings=warnings,
    has_status=True,
)
