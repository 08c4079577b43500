"""PyTorchJob and TFJob on the embedded Kubernetes, with real processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.kinds.jobs import Jobs, job, role
from tests.running import ORDINARY, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TELL = (
    "import os\nfor name in os.environ:\n"
    "    if name.startswith(('MASTER', 'PET', 'WORLD', 'RANK', 'TF_CONFIG')): print(name, os.environ[name], sep='=')\n"
)
SLEEP = "import time; time.sleep(600)"


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu()


@pytest.fixture
def jobs(danlu: Danlu) -> Jobs:
    return Jobs(danlu)


def test_each_replica_is_told_where_the_master_is(jobs: Jobs) -> None:
    roles = {"Master": role("PyTorchJob", TELL), "Worker": role("PyTorchJob", TELL, 2)}
    what = jobs.submit(job("PyTorchJob", "told", roles))
    done = jobs.until(what, "Succeeded")
    assert done["message"] == "PyTorchJob told is successfully completed."
    port = jobs.services("told")["told-master-0"]["spec"]["ports"][0]["port"]
    said = jobs.danlu.kubectl("logs", "told-worker-1").splitlines()
    assert said == [
        f"MASTER_PORT={port}", f"PET_MASTER_PORT={port}", "MASTER_ADDR=told-master-0", "PET_MASTER_ADDR=told-master-0",
        "WORLD_SIZE=3", "RANK=2", "PET_NODE_RANK=2", "PET_NPROC_PER_NODE=auto", "PET_NNODES=3",
    ]  # fmt: skip
    found = jobs.danlu.kubectl("get", "pods", "-l", "job-name=told", "-o", "name").split()
    assert len(found) == 3
    master = jobs.danlu.kubectl("get", "pods", "-l", "training.kubeflow.org/job-role=master", "-o", "name").split()
    assert master == ["pod/told-master-0"]


def test_names_resolve_from_the_first_moment(jobs: Jobs) -> None:
    """A program that asks once and gives up has to find the master, and the master itself."""
    ask = "getent hosts $MASTER_ADDR"
    stays = {"image": "busybox", "command": ["sh", "-c", f"{ask} && sleep inf"]}
    asks = {"image": "busybox", "command": ["sh", "-c", ask]}
    roles = {
        "Master": role("PyTorchJob", "", container=stays),
        "Worker": role("PyTorchJob", "", 3, "Never", container=asks),
    }
    what = jobs.submit(job("PyTorchJob", "asks", roles))
    ended = ("Succeeded", "Failed")

    def workers() -> list[str]:
        found = [pod["status"].get("phase") for name, pod in jobs.pods("asks").items() if "worker" in name]
        return found if len(found) == 3 and all(phase in ended for phase in found) else []

    assert jobs.danlu.wait("the workers", workers) == ["Succeeded"] * 3
    jobs.danlu.wait("the master's answer", lambda: "asks-master-0" in jobs.danlu.kubectl("logs", "asks-master-0"))
    jobs.danlu.kubectl("delete", what)


def test_tensorflow_replicas_have_ports_of_their_own(jobs: Jobs) -> None:
    roles = {"Chief": role("TFJob", TELL), "Worker": role("TFJob", TELL, 2), "PS": role("TFJob", TELL + SLEEP)}
    what = jobs.submit(job("TFJob", "tf", roles, runPolicy={"cleanPodPolicy": "Running"}))
    done = jobs.until(what, "Succeeded")
    assert done["message"] == "TFJob default/tf successfully completed."
    config = json.loads(jobs.danlu.kubectl("logs", "tf-chief-0").strip().removeprefix("TF_CONFIG="))
    assert config["task"] == {"type": "chief", "index": 0}
    assert {role: len(hosts) for role, hosts in config["cluster"].items()} == {"chief": 1, "ps": 1, "worker": 2}
    ports = [host.rpartition(":")[2] for hosts in config["cluster"].values() for host in hosts]
    assert len(set(ports)) == 4
    jobs.danlu.wait("the parameter server to go", lambda: "tf-ps-0" not in jobs.pods("tf"))


def test_two_jobs_at_once_never_share_a_port(jobs: Jobs) -> None:
    explicit = {"ports": [{"name": "pytorchjob-port", "containerPort": 21500}]}
    for name in ("one", "two", "three"):
        jobs.submit(job("PyTorchJob", name, {"Master": role("PyTorchJob", SLEEP, container=explicit)}))
    for name in ("one", "two", "three"):
        jobs.until(f"pytorchjob/{name}", "Running")
    ports = [jobs.services(name)[f"{name}-master-0"]["spec"]["ports"][0]["port"] for name in ("one", "two", "three")]
    assert len(set(ports)) == 3
    assert 21500 in ports  # the first keeps the port that its template names
    jobs.danlu.kubectl("delete", "pytorchjob", "one", "two", "three")


def test_a_replica_that_dies_in_an_import_shows_its_last_lines(jobs: Jobs) -> None:
    roles = {"Worker": role("PyTorchJob", "import no_such_package", restart="Never")}
    what = jobs.submit(job("PyTorchJob", "dies", roles))
    failed = jobs.until(what, "Failed")
    head, *rest = failed["message"].splitlines()
    assert head == "PyTorchJob dies is failed because 1 Worker replica(s) failed."
    assert rest[-1] == "ModuleNotFoundError: No module named 'no_such_package'"
    assert "exit code 1" in rest[0]
    assert jobs.get(what)["status"]["replicaStatuses"]["Worker"]["failed"] == 1
    jobs.danlu.wait(
        "the event",
        lambda: ("Normal", "ExitedWithCode", "Pod: default.dies-worker-0 exited with code 1") in jobs.events(what),
    )


def test_exit_codes_above_128_are_tried_again_and_counted(jobs: Jobs) -> None:
    roles = {"Worker": role("PyTorchJob", "import sys; sys.exit(137)", restart="ExitCode")}
    what = jobs.submit(job("PyTorchJob", "again", roles, runPolicy={"backoffLimit": 1}))
    failed = jobs.until(what, "Failed")
    assert failed["message"].startswith("Job again has failed because it has reached the specified backoff limit\n")
    assert "of pod again-worker-0 was killed (exit code 137)" in failed["message"]
    assert [one["code"] for one in failed["causes"]] == ["DL-JOB-BACKOFF", "DL-KILLED"]
    assert jobs.get(what)["status"]["completionTime"]
    made = [event for event in jobs.events(what) if event[1] == "SuccessfulCreatePod"]
    assert made, "the pod was made"
    assert any(event[1] == "PyTorchJobRestarting" for event in jobs.events(what))


def test_exit_codes_below_128_are_for_good(jobs: Jobs) -> None:
    roles = {"Worker": role("PyTorchJob", "import sys; sys.exit(3)", restart="ExitCode")}
    what = jobs.submit(job("PyTorchJob", "permanent", roles))
    failed = jobs.until(what, "Failed")
    assert failed["message"].startswith('job "permanent" is failing because "Worker" replica(s) failed.')
    assert jobs.get(what)["status"]["completionTime"]


def test_restarts_in_place_are_limited(jobs: Jobs) -> None:
    roles = {"Master": role("PyTorchJob", "raise SystemExit(1)", restart="OnFailure")}
    what = jobs.submit(job("PyTorchJob", "loops", roles, runPolicy={"backoffLimit": 1}))
    failed = jobs.until(what, "Failed")
    assert "backoff limit" in failed["message"]
    jobs.danlu.wait("its pods to go", lambda: not jobs.pods("loops"))
    time.sleep(0.5)
    assert not jobs.pods("loops"), "nothing is made again after the end"


def test_the_deadline_is_kept_although_nothing_happens(jobs: Jobs) -> None:
    roles = {"Master": role("PyTorchJob", SLEEP)}
    what = jobs.submit(job("PyTorchJob", "late", roles, runPolicy={"activeDeadlineSeconds": 2}))
    failed = jobs.until(what, "Failed")
    first, second = failed["message"].splitlines()
    assert first == "Job late has failed because it was active longer than specified deadline"
    assert second.startswith("It ran longer than activeDeadlineSeconds (2 s); raise activeDeadlineSeconds")
    jobs.danlu.wait("its pods to go", lambda: not jobs.pods("late"))


def test_time_to_live(jobs: Jobs) -> None:
    what = jobs.submit(
        job("PyTorchJob", "brief", {"Master": role("PyTorchJob", "")}, runPolicy={"ttlSecondsAfterFinished": 1})
    )

    def gone() -> bool:
        return jobs.danlu.run("kubectl", "get", what, check=False).returncode != 0

    jobs.danlu.wait("the job to go", gone)
    jobs.danlu.wait("its pods to go", lambda: not jobs.pods("brief"))


def test_suspend_and_resume(jobs: Jobs) -> None:
    what = jobs.submit(job("PyTorchJob", "held", {"Master": role("PyTorchJob", SLEEP)}, runPolicy={"suspend": True}))
    jobs.until(what, "Suspended")
    assert not jobs.pods("held")
    jobs.danlu.kubectl("patch", what, "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":false}}}')
    jobs.until(what, "Running")
    assert jobs.conditions(what)["Suspended"]["reason"] == "PyTorchJobResumed"
    jobs.danlu.kubectl("patch", what, "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":true}}}')
    jobs.until(what, "Suspended")
    jobs.danlu.wait("its pods to go", lambda: not jobs.pods("held"))
    assert jobs.conditions(what)["Running"]["reason"] == "PyTorchJobSuspended"
    jobs.danlu.kubectl("delete", what)


def test_scale(jobs: Jobs) -> None:
    what = jobs.submit(
        job("PyTorchJob", "grows", {"Worker": role("PyTorchJob", SLEEP)}, elasticPolicy={"maxReplicas": 3})
    )
    jobs.until(what, "Running")
    jobs.danlu.kubectl("scale", what, "--replicas=3")
    jobs.danlu.wait("three pods", lambda: len(jobs.pods("grows")) == 3)
    jobs.danlu.kubectl("scale", what, "--replicas=1")
    jobs.danlu.wait("one pod", lambda: list(jobs.pods("grows")) == ["grows-worker-0"])
    jobs.danlu.kubectl("delete", what)


def test_a_pod_or_service_deleted_by_hand_comes_back(jobs: Jobs) -> None:
    what = jobs.submit(job("PyTorchJob", "back", {"Master": role("PyTorchJob", SLEEP)}))
    jobs.until(what, "Running")
    before, service = jobs.pods("back")["back-master-0"], jobs.services("back")["back-master-0"]
    jobs.danlu.kubectl("delete", "pod", "back-master-0", "--wait=false")
    jobs.danlu.kubectl("delete", "service", "back-master-0", "--wait=false")

    def another() -> bool:
        now = jobs.pods("back").get("back-master-0")
        return now is not None and now["metadata"]["uid"] != before["metadata"]["uid"]

    jobs.danlu.wait("another pod", another)
    jobs.danlu.wait("the service", lambda: jobs.services("back"))
    assert jobs.services("back")["back-master-0"]["spec"]["ports"] == service["spec"]["ports"]
    assert jobs.state(what) != "Failed"
    jobs.danlu.kubectl("delete", what)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no-claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]},
        'persistentvolumeclaim "nowhere" not found',
    ),
    "no-secret": ({"volumes": [{"name": "v", "secret": {"secretName": "hidden"}}]}, 'secret "hidden" not found'),
    "no-map": (
        {"container": {"envFrom": [{"configMapRef": {"name": "unknown-map"}}]}}, 'configmap "unknown-map" not found',
    ),
    "no-account": ({"serviceAccountName": "nobody"}, 'serviceaccount "nobody" not found'),
    "no-priority": ({"priorityClassName": "urgent"}, "no PriorityClass with name urgent was found"),
    "no-room": ({"container": {"resources": {"requests": {"cpu": "1000"}}}}, "Insufficient cpu"),
    "no-program": ({"container": {"command": ["no-such-program"]}}, '"no-such-program": executable file not found'),
    "no-package": (
        {"container": {"command": ["python3", "-c", "import no_such_package"]}}, "No module named 'no_such_package'",
    ),
}  # fmt: skip


def test_what_is_missing_is_named_and_delays_nobody_else(jobs: Jobs) -> None:
    broken = [
        job("PyTorchJob", name, {"Master": role("PyTorchJob", SLEEP, **pod)}) for name, (pod, _) in BROKEN.items()
    ]
    jobs.danlu.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": broken}))
    for what in (f"pytorchjob/{name}" for name in BROKEN):
        jobs.until_condition(what, "Blocked")
    jobs.until(jobs.submit(job("PyTorchJob", "well", {"Master": role("PyTorchJob", "")})), "Succeeded")
    for name, (_, expected) in BROKEN.items():
        what = f"pytorchjob/{name}"
        assert expected in jobs.until_condition(what, "Blocked")["message"]

        def told(what: str = what, expected: str = expected) -> bool:
            return any(expected in message for type, _, message in jobs.events(what) if type == "Warning")

        jobs.danlu.wait("the event", told)
    jobs.danlu.kubectl("delete", "pytorchjob", *BROKEN, "--wait=false")


def test_a_quota_is_named_and_waited_for(jobs: Jobs) -> None:
    jobs.danlu.kubectl("create", "quota", "few", "--hard=pods=0")
    try:
        what = jobs.submit(job("PyTorchJob", "many", {"Master": role("PyTorchJob", "")}))
        blocked = jobs.until_condition(what, "Blocked")
        assert "exceeded quota: few" in blocked["message"]
        assert any(event[1] == "FailedCreatePod" for event in jobs.events(what))
    finally:
        jobs.danlu.kubectl("delete", "quota", "few")
    jobs.until(what, "Succeeded")
    assert "Blocked" not in jobs.conditions(what)


def test_a_crash_of_danlu_changes_nothing_about_running_jobs(jobs: Jobs) -> None:
    until_told = "import os, time\nwhile not os.path.exists('/tmp/end'): time.sleep(0.1)"
    roles = {"Master": role("PyTorchJob", until_told), "Worker": role("PyTorchJob", SLEEP, 2)}
    what = jobs.submit(job("PyTorchJob", "survives", roles, runPolicy={"cleanPodPolicy": "Running", "backoffLimit": 0}))
    jobs.until(what, "Running")
    jobs.danlu.wait("all of them", lambda: len(jobs.pods("survives")) == 3)
    before = {name: pod["metadata"]["uid"] for name, pod in jobs.pods("survives").items()}
    jobs.danlu.kill()
    jobs.danlu.up()
    assert {name: pod["metadata"]["uid"] for name, pod in jobs.pods("survives").items()} == before
    jobs.danlu.kubectl("exec", "survives-master-0", "--", "touch", "/tmp/end")
    jobs.until(what, "Succeeded")
    master = jobs.pods("survives")["survives-master-0"]
    assert master["metadata"]["uid"] == before["survives-master-0"]
    assert master["status"]["containerStatuses"][0]["restartCount"] == 0


def test_without_a_right_to_root_jobs_run_as_well(make_danlu: Callable[..., Danlu]) -> None:
    jobs = Jobs(make_danlu(user=ORDINARY))
    roles = {"Master": role("PyTorchJob", TELL), "Worker": role("PyTorchJob", TELL, 2)}
    jobs.until(jobs.submit(job("PyTorchJob", "ordinary", roles)), "Succeeded")
    assert "RANK=0" in jobs.danlu.kubectl("logs", "ordinary-master-0").splitlines()
