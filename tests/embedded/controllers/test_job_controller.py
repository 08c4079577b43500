"""Jobs on a real API server: counted exactly once, ended for the right reason, in Kubernetes' words."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.embedded.controllers.conftest import World, template

from danlu.embedded.controllers.job import jobspec
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import JOB, POD


def spec(restart: str = "Never", **fields: Any) -> Object:
    made = template()
    made["spec"]["restartPolicy"] = restart
    return {"template": made, **fields}


async def test_a_job_from_creation_to_completion(world: World) -> None:
    await world.create(JOB, "j", spec(parallelism=2, completions=3))
    first = await world.some_pods(2, **{"batch.kubernetes.io/job-name": "j"})
    assert all(jobspec.TRACKING_FINALIZER in pod["metadata"]["finalizers"] for pod in first)
    assert all(pod["metadata"]["name"].startswith("j-") for pod in first)
    await world.run(*first)
    await world.status(JOB, "j", active=2, ready=2, terminating=0)
    await world.finish(first[0])
    await world.status(JOB, "j", active=2, succeeded=1)
    running = [pod for pod in await world.pods() if pod["status"]["phase"] != "Succeeded"]
    for pod in running:
        await world.finish(pod)
    complete = await world.condition(JOB, "j", "Complete")
    assert complete["reason"] == "CompletionsReached"
    assert complete["message"] == "Reached expected number of succeeded pods"
    job = await world.get(JOB, "j")
    assert job["status"]["succeeded"] == 3
    assert job["status"]["completionTime"]
    assert job["status"]["uncountedTerminatedPods"] == {}
    assert "active" not in job["status"]
    assert [held["type"] for held in job["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert all(not pod["metadata"].get("finalizers") for pod in await world.pods())
    reasons = await world.until(lambda: _has(world, "j", "Completed"))
    assert reasons.count("SuccessfulCreate") == 3


async def _has(world: World, name: str, reason: str) -> list[str] | None:
    reasons = await world.reasons(name)
    return reasons if reason in reasons else None


async def test_failures_are_retried_after_a_pause_and_then_end_the_job(world: World) -> None:
    await world.create(JOB, "j", spec(backoffLimit=1))
    (pod,) = await world.some_pods(1)
    await world.finish(pod, code=1)
    await world.status(JOB, "j", failed=1)
    await asyncio.sleep(0.2)
    assert len(await world.pods()) == 1  # the pause has not passed
    world.ahead += timedelta(seconds=11)
    await world.client.patch(JOB, "j", "default", {"metadata": {"labels": {"look": "again"}}})
    pods = await world.some_pods(2)
    (second,) = [one for one in pods if one["metadata"]["name"] != pod["metadata"]["name"]]
    await world.finish(second, code=1)
    failed = await world.condition(JOB, "j", "Failed")
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    await world.until(lambda: _has(world, "j", "BackoffLimitExceeded"))
    job = await world.get(JOB, "j")
    assert job["status"]["failed"] == 2
    assert conditions.is_true(job["status"]["conditions"], "FailureTarget")


async def test_indexed_pods_know_their_index(world: World) -> None:
    await world.create(JOB, "j", spec(parallelism=3, completions=3, completionMode="Indexed"))
    pods = await world.some_pods(3)
    by_index = {pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: pod for pod in pods}
    assert set(by_index) == {"0", "1", "2"}
    one = by_index["1"]
    assert one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert one["metadata"]["name"].startswith("j-1-")
    assert one["spec"]["hostname"] == "j-1"
    (env,) = [e for e in one["spec"]["containers"][0]["env"] if e["name"] == "JOB_COMPLETION_INDEX"]
    assert "job-completion-index" in env["valueFrom"]["fieldRef"]["fieldPath"]
    await world.finish(by_index["0"])
    await world.finish(by_index["2"])
    await world.status(JOB, "j", completedIndexes="0,2", succeeded=2)
    await world.finish(one)
    await world.condition(JOB, "j", "Complete")
    assert (await world.get(JOB, "j"))["status"]["completedIndexes"] == "0-2"


async def test_one_failing_index_does_not_end_the_others(world: World) -> None:
    limits: dict[str, Any] = {"backoffLimitPerIndex": 0, "completionMode": "Indexed"}
    await world.create(JOB, "j", spec(parallelism=2, completions=2, **limits))
    pods = await world.some_pods(2)
    by_index = {pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod for pod in pods}
    await world.finish(by_index["0"], code=1)
    await world.status(JOB, "j", failedIndexes="0", active=1)
    await world.finish(by_index["1"])
    failed = await world.condition(JOB, "j", "Failed")
    assert failed["reason"] == "FailedIndexes"
    job = await world.get(JOB, "j")
    assert (job["status"]["completedIndexes"], job["status"]["failedIndexes"]) == ("1", "0")


async def test_the_deadline_ends_running_pods(world: World) -> None:
    await world.create(JOB, "j", spec(activeDeadlineSeconds=60))
    (pod,) = await world.some_pods(1)
    await world.run(pod)
    await world.status(JOB, "j", ready=1)
    world.ahead += timedelta(seconds=61)
    await world.client.patch(JOB, "j", "default", {"metadata": {"labels": {"look": "again"}}})
    target = await world.condition(JOB, "j", "FailureTarget")
    assert target["reason"] == "DeadlineExceeded"
    await world.some_pods(0)
    await world.bury()
    failed = await world.condition(JOB, "j", "Failed")
    assert failed["message"] == "Job was active longer than specified deadline"
    assert (await world.get(JOB, "j"))["status"]["terminating"] == 0


async def test_suspend_and_resume(world: World) -> None:
    await world.create(JOB, "j", spec(suspend=True))
    held = await world.condition(JOB, "j", "Suspended")
    assert (held["reason"], held["message"]) == ("JobSuspended", "Job suspended")
    assert "startTime" not in (await world.get(JOB, "j"))["status"]
    assert await world.pods() == []
    await world.client.patch(JOB, "j", "default", {"spec": {"suspend": False}})
    (pod,) = await world.some_pods(1)
    await world.run(pod)
    await world.condition(JOB, "j", "Suspended", "False")
    assert (await world.get(JOB, "j"))["status"]["startTime"]
    await world.client.patch(JOB, "j", "default", {"spec": {"suspend": True}})
    await world.some_pods(0)
    await world.bury()
    job = await world.status(JOB, "j", active=None, terminating=0)
    assert job["status"].get("failed") is None  # our own choice is no failure
    reasons = await world.reasons("j")
    assert {"Suspended", "Resumed", "SuccessfulDelete"} <= set(reasons)


async def test_the_failure_policy_ends_the_job_at_once(world: World) -> None:
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    await world.create(JOB, "j", spec(parallelism=2, completions=2, podFailurePolicy=policy))
    first, second = await world.some_pods(2)
    await world.run(second)
    await world.finish(first, code=42)
    await world.condition(JOB, "j", "FailureTarget")
    await world.until(lambda: _gone(world, second))
    await world.bury()
    failed = await world.condition(JOB, "j", "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    assert "failed with exit code 42 matching FailJob rule at index 0" in failed["message"]


async def _gone(world: World, pod: Object) -> bool:
    names = [one["metadata"]["name"] for one in await world.pods()]
    return pod["metadata"]["name"] not in names


async def test_a_deleted_job_lets_its_pods_go(world: World) -> None:
    await world.create(JOB, "j", spec())
    (pod,) = await world.some_pods(1)
    await world.client.delete(JOB, "j", "default", propagation="Background")

    async def free() -> bool:
        live = await world.client.get(POD, pod["metadata"]["name"], "default")
        return not live["metadata"].get("finalizers")

    await world.until(free)


async def test_many_jobs_make_no_pod_too_many(world: World) -> None:
    for n in range(10):
        await world.create(JOB, f"j{n}", spec(parallelism=3, completions=3))
    pods = await world.some_pods(30)
    await asyncio.gather(*(world.finish(pod) for pod in pods))
    for n in range(10):
        await world.condition(JOB, f"j{n}", "Complete")
        assert (await world.get(JOB, f"j{n}"))["status"]["succeeded"] == 3
    assert len(await world.pods()) == 30
