"""CronJobs: which time is due after a rest, and a Job for each with the clock turned on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.embedded.controllers.conftest import World

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers import cronjob
from danlu.meta import cron, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CRON_JOB, JOB
from danlu.runtime import Manager

MADE = "2026-01-01T00:00:00Z"


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}").replace(tzinfo=UTC)


def made(last: str | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"creationTimestamp": MADE, "name": "c"},
        "spec": spec,
        "status": {"lastScheduleTime": last} if last else {},
    }


@pytest.mark.parametrize(
    ("schedule", "now", "last", "missed"),
    [
        ("*/10 * * * *", "00:05", None, 0),
        ("*/10 * * * *", "00:10", "00:10", 0),
        ("*/10 * * * *", "00:19", "00:10", 0),
        ("*/10 * * * *", "00:45", "00:40", 4),
        ("30 6-16/4 * * *", "23:00", "14:30", 5),  # 06:30, 10:30, 14:30: counted by the first gap
        ("@every 7m", "01:00", "00:56", 8),
        ("* * * * *", "03:00", "03:00", 180),
    ],
)
def test_of_missed_times_the_last_is_due(schedule: str, now: str, last: str | None, missed: int) -> None:
    found = cronjob.due(made(), cron.parse(schedule, "UTC"), at(now), deadline=True)
    assert found.at == (None if last is None else at(last))
    assert found.missed == missed


def test_nothing_before_the_deadline_is_due() -> None:
    found = cronjob.due(made(startingDeadlineSeconds=60), cron.parse("0 * * * *", "UTC"), at("05:30"), deadline=True)
    assert found.at is None
    found = cronjob.due(made(startingDeadlineSeconds=3600), cron.parse("0 * * * *", "UTC"), at("05:30"), deadline=True)
    assert found.at == at("05:00")


def test_the_next_look_is_just_after_the_next_time() -> None:
    schedule = cron.parse("0 * * * *", "UTC")
    wait = cronjob.wait_for_next(made(last="2026-01-01T05:00:00Z"), schedule, at("05:30"))
    assert wait == pytest.approx(1800 + cronjob.AFTER_S)


def test_a_schedule_without_times_is_never_due() -> None:
    with pytest.raises(cronjob.NeverDue):
        cronjob.due(made(), cron.parse("0 0 31 2 *", "UTC"), at("05:30"), deadline=True)


async def test_a_job_for_each_time(cluster: Cluster) -> None:
    world = World(cluster.client)
    manager = Manager(cluster.component("system:kube-controller-manager"), clock=world.clock)
    manager.add_all((cronjob.make,))
    await manager.start()
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}}
    await world.create(CRON_JOB, "c", {"schedule": "0 * * * *", "jobTemplate": template})

    async def jobs(count: int) -> list[Object] | None:
        found = await world.client.list(JOB, "default")
        return found.items if len(found.items) == count else None

    for count in (1, 2):
        world.ahead += timedelta(hours=1)
        await _touch(world.client, count)  # a turned clock wakes nobody
        await world.until(partial(jobs, count), f"{count} jobs")
        await world.until(partial(_active, world, count), f"{count} are active")
    (first, second) = sorted((await world.client.list(JOB, "default")).items, key=objects.name)
    names = [int(objects.name(job).removeprefix("c-")) for job in (first, second)]
    assert names[1] - names[0] == 60  # minutes
    found = await world.until(lambda: _active(world, 2), "both are active")
    assert [one["name"] for one in found] == [objects.name(first), objects.name(second)]
    await manager.stop()


async def _touch(client: Client, count: int) -> None:
    await client.patch(CRON_JOB, "c", "default", {"metadata": {"annotations": {"touched": str(count)}}})


async def _active(world: World, count: int) -> list[Object] | None:
    active: list[Object] = objects.get(await world.get(CRON_JOB, "c"), "status.active", [])
    return active if len(active) == count else None
