"""PyTorchTrainingJob and TensorFlowTrainingJob on the embedded Kubernetes, with small real processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TELL = (
    "import os\n"
    "for name in ('MASTER_ADDR', 'MASTER_PORT', 'RANK', 'WORLD_SIZE'): print(name, os.environ[name], sep='=')"
)
SLEEP = "import time; time.sleep(600)"


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu("--nodes", "big:cpu=16,memory=16Gi")


def role(type: str, script: str, replicas: int = 1, restart: str = "Never", **pod: Any) -> dict[str, Any]:
    container = {"name": "tensorflow", "image": "python", "command": ["python3", "-c", script]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1, **pod}
    return {"type": type, "replicas": replicas, "restartPolicy": restart, "template": {"spec": spec}}


def submit(danlu: Danlu, name: str, *roles: dict[str, Any], kind: str = "PyTorchTrainingJob", **spec: Any) -> str:
    body = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": kind, "metadata": {"name": name}}
    danlu.kubectl("create", "-f", "-", stdin=json.dumps({**body, "spec": {"replicaSpecs": roles, **spec}}))
    return f"{kind.lower()}/{name}"


def get(danlu: Danlu, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", what, "-o", "json"))
    return found


def conditions(danlu: Danlu, what: str) -> dict[str, dict[str, Any]]:
    return {one["type"]: one for one in (get(danlu, what).get("status") or {}).get("conditions") or ()}


def until(danlu: Danlu, what: str, phase: str) -> dict[str, Any]:
    def look() -> bool:
        now = (get(danlu, what).get("status") or {}).get("phase")
        if now in ("Succeeded", "Failed") and now != phase:
            raise AssertionError(f"{what} is {now}, not {phase}: {json.dumps(conditions(danlu, what), indent=1)}")
        return bool(now == phase)

    danlu.wait(f"{what} to be {phase}", look)
    status: dict[str, Any] = get(danlu, what)["status"]
    return status


def pods(danlu: Danlu, name: str) -> dict[str, dict[str, Any]]:
    text = danlu.kubectl("get", "pods", "-l", f"tensorstack.dev/owner-name={name}", "-o", "json")
    return {pod["metadata"]["name"]: pod for pod in json.loads(text)["items"]}


def events(danlu: Danlu, name: str, kind: str = "PyTorchTrainingJob") -> list[tuple[str, str]]:
    text = danlu.kubectl("get", "events", "-o", "json", "--field-selector", f"involvedObject.name={name}")
    return [(e["reason"], e["message"]) for e in json.loads(text)["items"] if e["involvedObject"]["kind"] == kind]


def test_replicas_are_told_and_the_master_speaks_for_the_job(danlu: Danlu) -> None:
    what = submit(danlu, "told", role("worker", TELL, 3))
    status = until(danlu, what, "Succeeded")
    names = [one["name"] for one in status["tasks"][0]["replicas"]]
    prefix = names[0].removesuffix("-worker-0")
    assert names == [f"{prefix}-worker-{n}" for n in range(3)]
    assert prefix.startswith("told-")
    assert len(prefix) == len("told-") + 5
    danlu.wait("worker 2 to end", lambda: get(danlu, f"pod/{names[2]}")["status"]["phase"] == "Succeeded")
    said = dict(line.split("=") for line in danlu.kubectl("logs", names[2]).split())
    assert (said["MASTER_ADDR"], said["RANK"], said["WORLD_SIZE"]) == (names[0], "2", "3")
    master = danlu.kubectl("get", "pods", "-l", "job-role=master,tensorstack.dev/owner-name=told", "-o", "name")
    assert master.split() == [f"pod/{names[0]}"]
    found = conditions(danlu, what)
    assert (found["Completed"]["status"], found["Completed"]["reason"]) == ("True", "Succeeded")
    assert found["Completed"]["message"] == "The job has finished successfully."
    told = events(danlu, "told")
    assert ("Created", "A PyTorchTrainingJob has been created: told") in told
    assert ("NewReplica", f"Create the replica[{', '.join(names)}] for the first time.") in told
    assert "Succeeded" in danlu.kubectl("get", "pj", "told")


def test_a_replica_that_fails_is_made_again_until_restarts_are_spent(danlu: Danlu) -> None:
    what = submit(danlu, "fails", role("worker", "import sys; print('bad luck'); sys.exit(3)", 1, "OnFailure"),
                  runPolicy={"backoffLimit": 1})  # fmt: skip
    status = until(danlu, what, "Failed")
    assert status["backoffCount"] == 1
    assert status["tasks"][0]["restartCount"] == 1
    failed = conditions(danlu, what)["Failed"]["message"].splitlines()
    name = status["tasks"][0]["replicas"][0]["name"]
    first, second = failed
    assert first == f"PyTorchTrainingJob fails has failed: {name} failed with exit code 3"
    assert second.startswith(
        f"Container tensorflow of pod {name} ended with exit code 3: bad luck; `kubectl logs {name}"
    )
    assert conditions(danlu, what)["ReplicaFailure"]["message"] == f"Pod[{name}] exited with error code 3"


def test_a_replica_that_dies_in_an_import_shows_its_last_lines(danlu: Danlu) -> None:
    what = submit(danlu, "dies", role("worker", "import no_such_package"))
    until(danlu, what, "Failed")
    assert conditions(danlu, what)["Failed"]["message"].splitlines()[-1] == (
        "ModuleNotFoundError: No module named 'no_such_package'"
    )


def test_pause_and_resume(danlu: Danlu) -> None:
    resume = [{"type": "worker", "command": ["python3", "-c", "print('resumed')"]}]
    pause = {"pause": {"enabled": False, "resumeSpecs": resume}}
    what = submit(danlu, "pausing", role("worker", SLEEP, 2), runMode=pause)
    danlu.wait("both to run", lambda: (get(danlu, what).get("status") or {}).get("aggregate", {}).get("running") == 2)
    danlu.kubectl("patch", what, "--type", "merge", "-p", '{"spec":{"runMode":{"pause":{"enabled":true}}}}')
    until(danlu, what, "Paused")
    danlu.wait("the pods to go", lambda: not pods(danlu, "pausing"))
    danlu.wait("both to be counted", lambda: get(danlu, what)["status"]["aggregate"]["deleted"] == 2)
    refused = danlu.fails(
        "patch", what, "--type", "merge", "-p", '{"spec":{"runMode":{"pause":{"resumeSpecs":[]}}}}'
    )  # fmt: skip
    assert "resumeSpecs cannot be changed once the job exists" in refused
    danlu.kubectl("patch", what, "--type", "merge", "-p", '{"spec":{"runMode":{"pause":{"enabled":false}}}}')
    status = until(danlu, what, "Succeeded")
    assert danlu.kubectl("logs", status["tasks"][0]["replicas"][0]["name"]) == "resumed\n"


def test_debug_makes_pods_that_wait(danlu: Danlu) -> None:
    what = submit(danlu, "look", role("worker", "raise SystemExit(1)"), runMode={"debug": {"enable": True}})
    status = until(danlu, what, "Running")
    name = status["tasks"][0]["replicas"][0]["name"]
    assert get(danlu, f"pod/{name}")["spec"]["containers"][0]["command"] == ["sleep", "inf"]
    danlu.kubectl("delete", what)


def test_deadline_and_clean_up(danlu: Danlu) -> None:
    late = submit(danlu, "late", role("worker", SLEEP), runPolicy={"activeDeadlineSeconds": 1})
    until(danlu, late, "Failed")
    assert "activeDeadlineSeconds (1 s)" in conditions(danlu, late)["Failed"]["message"]
    danlu.wait("its pod to go", lambda: not pods(danlu, "late"))
    what = submit(danlu, "clean", role("chief", "pass"), role("ps", SLEEP), kind="TensorFlowTrainingJob",
                  runPolicy={"cleanUpPolicy": "unfinished"})  # fmt: skip
    until(danlu, what, "Succeeded")
    danlu.wait("the server to be gone", lambda: len(pods(danlu, "clean")) == 1)
    danlu.wait("it to be told", lambda: get(danlu, what)["status"]["aggregate"]["deleted"] == 1)


def test_tensorflow_replicas_have_ports_of_their_own(danlu: Danlu) -> None:
    script = "import os; print(os.environ['TF_CONFIG'])"
    what = submit(danlu, "tf", role("worker", script, 4), kind="TensorFlowJob")
    status = until(danlu, what, "Succeeded")
    config = json.loads(danlu.kubectl("logs", status["tasks"][0]["replicas"][0]["name"]))
    assert config["task"] == {"type": "worker", "index": 0}
    assert len({address.rpartition(":")[2] for address in config["cluster"]["worker"]}) == 4


def test_a_claim_that_does_not_exist_is_named(danlu: Danlu) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}
    what = submit(danlu, "waits", role("worker", "pass", volumes=[volume]))
    danlu.wait(
        "the condition", lambda: 'claim "nowhere"' in conditions(danlu, what).get("Running", {}).get("message", "")
    )
    danlu.wait("the event", lambda: any('"nowhere"' in message for _, message in events(danlu, "waits")))
    danlu.kubectl("delete", what)


def test_what_is_refused(danlu: Danlu) -> None:
    body = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob"}
    for problem, roles, spec in (
        ("a type twice", [role("worker", ""), role("worker", "")], {}),
        ("must be None, Unfinished or All", [role("worker", "")], {"runPolicy": {"cleanUpPolicy": "Some"}}),
        ("an elastic job needs torchrun", [role("worker", "")], {"elastic": {"enabled": True}}),
        ("minReplicas must not be greater", [role("worker", "")], {"elastic": {"minReplicas": 3, "maxReplicas": 2}}),
        ("set logDir, or trainingLogFilesets", [role("worker", "")], {"tensorboardSpec": {"image": "x"}}),
        ("should be greater than or equal to 1", [role("worker", "", 0)], {}),
    ):
        obj = {**body, "metadata": {"name": "bad"}, "spec": {"replicaSpecs": roles, **spec}}
        assert problem in danlu.fails("create", "-f", "-", stdin=json.dumps(obj))
    nobody = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "TensorFlowTrainingJob",
        "metadata": {"name": "bad"},
    }
    odd = role("helper", "")
    refused = danlu.fails("create", "-f", "-", stdin=json.dumps({**nobody, "spec": {"replicaSpecs": [odd]}}))
    assert 'type "helper" is not known' in refused


def test_a_job_keeps_its_tensorboard_as_it_says_and_leaves_the_rest(danlu: Danlu) -> None:
    logs = {"image": "python", "trainingLogFilesets": ["t9k://pvc/nowhere/first"]}
    what = submit(danlu, "shown", role("worker", SLEEP), tensorboardSpec=logs)
    danlu.wait(
        "its TensorBoard", lambda: (get(danlu, what).get("status") or {}).get("tensorboard", {}).get("dependent")
    )
    board = f"tb/{get(danlu, what)['status']['tensorboard']['name']}"
    danlu.kubectl("patch", board, "--type", "merge", "-p", '{"spec":{"suspend":true}}')
    other = {"trainingLogFilesets": None, "logDir": {"pvc": [{"name": "nowhere", "subPath": ["second"]}]}}
    danlu.kubectl("patch", what, "--type", "merge", "-p", json.dumps({"spec": {"tensorboardSpec": other}}))
    danlu.wait("the change", lambda: "logDir" in get(danlu, board)["spec"])
    assert get(danlu, board)["spec"] == {"image": "python", "logDir": other["logDir"], "suspend": True}
    danlu.kubectl("patch", what, "--type", "json", "-p", '[{"op":"remove","path":"/spec/tensorboardSpec"}]')
    danlu.wait("it to go", lambda: "NotFound" in danlu.run("kubectl", "get", board, check=False).stderr)
    danlu.kubectl("delete", what)


def test_a_crash_of_danlu_changes_nothing_about_running_jobs(danlu: Danlu) -> None:
    """Placed as a gang, by a queue: the group, the restarts and the ports are as before."""
    queue = {"t9kScheduler": {"queue": "default"}}
    what = submit(danlu, "survives", role("worker", SLEEP, 3, "OnFailure"), scheduler=queue)
    danlu.wait("all of them", lambda: conditions(danlu, what).get("Running", {}).get("status") == "True")

    def picture() -> tuple[object, ...]:
        found = {name: (pod["metadata"]["uid"], pod["spec"]) for name, pod in pods(danlu, "survives").items()}
        group = get(danlu, "podgroups.scheduler.tensorstack.dev/survives")
        return found, group["metadata"]["uid"], get(danlu, what)["status"]["backoffCount"]

    before = picture()
    told = len(events(danlu, "survives"))
    danlu.kill()
    danlu.up()
    danlu.wait("the controllers to have looked", lambda: danlu.kubectl("get", "nodes").count(" Ready ") == 1)
    danlu.kubectl("annotate", what, "looked=once")  # one more look at it, by the new controller
    until(danlu, what, "Running")
    assert picture() == before
    assert len(events(danlu, "survives")) == told
    danlu.kubectl("delete", what)
