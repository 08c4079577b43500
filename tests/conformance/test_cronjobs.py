"""CronJobs: what a schedule may be, a Job for each time, one at a time or not, and what is kept of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.conformance.conftest import Kube


def cron_job(name: str = "nightly", schedule: str = "* * * * *", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    # Nowhere to run: that is another's part.
    pod = {"containers": [container], "restartPolicy": "Never", "nodeSelector": {"nowhere": "x"}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"template": {"spec": pod}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def ago(minutes: int) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:00Z")


def last_ran(kube: Kube, name: str, stamp: str) -> None:
    kube("patch", "cronjob", name, "--subresource=status", "--type=merge", "-p",
         f'{{"status": {{"lastScheduleTime": "{stamp}"}}}}')  # fmt: skip


def resume(kube: Kube, name: str) -> None:
    kube("patch", "cronjob", name, "-p", '{"spec": {"suspend": false}}')


def jobs_of(kube: Kube, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kube.get("jobs", "-l", f"app={name}")["items"]
    return found


def end(kube: Kube, job: str, *conditions: str) -> None:
    """As its controller would: decided first, then done."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    held = [{"type": c, "status": "True", "lastTransitionTime": now} for c in conditions]
    times = {"completionTime": now} if conditions[-1] == "Complete" else {}
    patch = {"status": {"active": 0, "ready": 0, "terminating": 0, "startTime": now, "conditions": held, **times}}
    kube("patch", "job", job, "--subresource=status", "--type=merge", "-p", str(patch).replace("'", '"'))


def test_what_is_filled_in_and_shown(kube: Kube) -> None:
    kube.apply(cron_job("shown", "*/5 1-3 * * mon", suspend=True, timeZone="Asia/Shanghai"))
    spec = kube.get("cronjob", "shown")["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert spec["successfulJobsHistoryLimit"] == 3
    assert spec["failedJobsHistoryLimit"] == 1
    job = spec["jobTemplate"]["spec"]
    assert "backoffLimit" not in job  # a Job's own defaults come with the Job
    assert job["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    words = kube("get", "cj", "shown", "-o", "wide")
    header, row = words.splitlines()
    assert header.split("  ")[0] == "NAME"
    assert [word.strip() for word in header.split("   ") if word.strip()] == [
        "NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR",
    ]  # fmt: skip
    cells = [word.strip() for word in row.split("   ") if word.strip()]
    assert cells[:6] == ["shown", "*/5 1-3 * * mon", "Asia/Shanghai", "True", "0", "<none>"]
    assert cells[7:] == ["main", "busybox", "<none>"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": ""}, "spec.schedule: Required value"),
        ({"schedule": "* * * *"}, 'Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'),
        ({"schedule": "61 * * * *"}, 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'),
        ({"schedule": "x * * * *"}, 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ({"schedule": "@soon"}, 'spec.schedule: Invalid value: "@soon": unrecognized descriptor: @soon'),
        ({"schedule": "@every soon"}, "failed to parse duration @every soon: time: invalid duration"),
        ({"schedule": "TZ=UTC * * * * *"}, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        ({"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'),
        ({"timeZone": "Local"}, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        ({"timeZone": "Mars/Base"}, 'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'),
        ({"timeZone": "../etc"}, "unknown time zone ../etc"),
        ({"concurrencyPolicy": "Sometimes"},
         'spec.concurrencyPolicy: Unsupported value: "Sometimes": supported values: "Allow", "Forbid", "Replace"'),
        ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: Invalid value: -1: must be greater"),
        ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater"),
    ],
)  # fmt: skip
def test_what_is_refused(kube: Kube, change: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=cron_job(**{"name": "bad", **change}))


def test_what_is_refused_of_the_job(kube: Kube) -> None:
    made = cron_job("bad")
    made["spec"]["jobTemplate"]["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}
    made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    words = kube.fails("create", "-f", "-", stdin=made)
    assert (
        'spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"' in words
    )
    assert 'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"' in words
    assert "spec.jobTemplate.spec.selector: Invalid value" in words
    assert "`selector` will be auto-generated" in words
    assert "must be no more than 52 characters" in kube.fails("create", "-f", "-", stdin=cron_job("n" * 53))


def test_a_time_that_was_missed_is_made_up_for_once(kube: Kube) -> None:
    kube.apply(cron_job("late", suspend=True))
    last_ran(kube, "late", ago(5))
    resume(kube, "late")
    (job,) = kube.wait("its job", lambda: jobs_of(kube, "late"))
    due = kube.value("cronjob/late", "{.status.lastScheduleTime}")
    minute = int(datetime.fromisoformat(due).timestamp()) // 60
    assert job["metadata"]["name"] == f"late-{minute}"
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] == due
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CronJob", "late", True)
    (active,) = kube.get("cronjob", "late")["status"]["active"]
    assert active["uid"] == job["metadata"]["uid"]
    assert "Created job late-" in kube.wait("the event", lambda: kube("events", "--for=cronjob/late"))


def test_one_at_a_time_or_the_newest(kube: Kube) -> None:
    first: dict[str, dict[str, Any]] = {}
    for name, policy in (("forbid", "Forbid"), ("replace", "Replace")):
        kube.apply(cron_job(name, "@yearly", concurrencyPolicy=policy, suspend=True))
        last_ran(kube, name, ago(2 * 366 * 24 * 60))
        resume(kube, name)
        (first[name],) = kube.wait("this year's job", partial(jobs_of, kube, name))
        kube.until(f"cronjob/{name}", "{.status.active[0].kind}", "Job")
        # From now on every minute; no minute need pass, for one was missed.
        kube("patch", "cronjob", name, "-p", '{"spec": {"suspend": true, "schedule": "* * * * *"}}')
        last_ran(kube, name, ago(5))
        resume(kube, name)
    kept, replaced = first["forbid"]["metadata"], first["replace"]["metadata"]
    kube.wait("a newer one", lambda: [j["metadata"]["uid"] for j in jobs_of(kube, "replace")] != [replaced["uid"]])
    kube.wait("the old one to go", lambda: not kube("get", "job", replaced["name"], "--ignore-not-found"))
    kube.wait("its word", lambda: f"Deleted job {replaced['name']}" in kube("events", "--for=cronjob/replace"))
    kube.wait("its word", lambda: "JobAlreadyActive" in kube("events", "--for=cronjob/forbid"))
    assert [j["metadata"]["uid"] for j in jobs_of(kube, "forbid")] == [kept["uid"]]


def test_what_has_ended_is_counted_and_cleared(kube: Kube) -> None:
    kube.apply(cron_job("kept", suspend=True, successfulJobsHistoryLimit=0))
    last_ran(kube, "kept", ago(5))
    resume(kube, "kept")
    (job,) = kube.wait("its job", lambda: jobs_of(kube, "kept"))
    kube.until("cronjob/kept", "{.status.active[0].name}", job["metadata"]["name"])
    kube("patch", "cronjob", "kept", "-p", '{"spec": {"suspend": true}}')
    kube("patch", "job", job["metadata"]["name"], "-p", '{"spec": {"suspend": true}}')
    kube.wait("its pod to go", lambda: not kube.get("pods", "-l", f"job-name={job['metadata']['name']}")["items"])
    end(kube, job["metadata"]["name"], "SuccessCriteriaMet", "Complete")
    kube.wait("it to be cleared away", lambda: not jobs_of(kube, "kept"))
    kube.wait("nothing active", lambda: not kube.value("cronjob/kept", "{.status.active}"))
    assert kube.value("cronjob/kept", "{.status.lastSuccessfulTime}")


def test_from_a_cronjob_by_hand(kube: Kube) -> None:
    kube.apply(cron_job("hand", suspend=True))
    assert "job.batch/now created" in kube("create", "job", "now", "--from=cronjob/hand")
    assert kube.get("job", "now")["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    kube("delete", "cronjob", "hand", "--wait=true")
    kube.wait("its job to go, too", lambda: not kube("get", "job", "now", "--ignore-not-found"))
