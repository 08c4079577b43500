"""Kubeflow's own SDK (`kubeflow-training` from PyPI) is a user whom we must please: create, wait, logs, delete.

It lives in a virtual environment of its own, made once for each machine: its dependencies are none of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

VERSION = "1.9.4"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "danlu/test-environments"

SCRIPT = """
import os, sys

# The SDK takes a machine that has this folder for a pod; hosts on which pods have run may have it, empty.
isdir = os.path.isdir
os.path.isdir = lambda path: not str(path).startswith("/var/run/secrets/kubernetes.io") and isdir(path)

from kubeflow.training import (
    KubeflowOrgV1PyTorchJob, KubeflowOrgV1PyTorchJobSpec, KubeflowOrgV1ReplicaSpec, KubeflowOrgV1RunPolicy,
    TrainingClient,
)
from kubernetes.client import V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec

client = TrainingClient(config_file=sys.argv[1])
KIND = {"job_kind": "PyTorchJob"}
WAIT = {"polling_interval": 0.2, "timeout": 60}


def job(name, script, restart="OnFailure"):
    container = V1Container(name="pytorch", image="python", command=["python3", "-c", script])
    template = V1PodTemplateSpec(spec=V1PodSpec(containers=[container]))
    replica = KubeflowOrgV1ReplicaSpec(replicas=1, template=template, restart_policy=restart)
    roles = {"Master": replica, "Worker": replica}
    spec = KubeflowOrgV1PyTorchJobSpec(
        run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"), pytorch_replica_specs=roles
    )
    meta = V1ObjectMeta(name=name, namespace="default")
    return KubeflowOrgV1PyTorchJob(api_version="kubeflow.org/v1", kind="PyTorchJob", metadata=meta, spec=spec)


client.create_job(job("sdk", "import os; print('rank', os.environ['RANK'])"))
done = client.wait_for_job_conditions("sdk", **KIND, **WAIT)
print("conditions", [one.type for one in done.status.conditions][-1], client.is_job_succeeded("sdk", **KIND))
print("pods", client.get_job_pod_names("sdk", is_master=True), sorted(client.get_job_pod_names("sdk")))
print("logs", client.get_job_logs("sdk", **KIND)[0])
print("worker", client.get_job_logs("sdk", **KIND, is_master=False, replica_type="worker", replica_index=0)[0])
print("list", [one.metadata.name for one in client.list_jobs(**KIND)])
client.delete_job("sdk", **KIND)


def train(parameters):
    print("learning at", parameters["rate"])


client.create_job(name="function", train_func=train, parameters={"rate": 0.1}, base_image="python", num_workers=1)
client.wait_for_job_conditions("function", **KIND, **WAIT)
print("function", client.get_job_logs("function", **KIND)[0])

client.create_job(job("bad", "raise SystemExit(1)", "Never"))
try:
    client.wait_for_job_conditions("bad", **KIND, **WAIT)
except RuntimeError as error:
    print("failed", "is Failed" in str(error))
"""


@pytest.fixture(scope="module")
def sdk_python() -> Path:
    folder = CACHE / f"kubeflow-training-{VERSION}"
    python, made = folder / "bin/python", folder / "made"
    if not made.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        quiet = ["install", "--quiet", "--disable-pip-version-check", f"kubeflow-training=={VERSION}"]
        done = subprocess.run([python, "-m", "pip", *quiet], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"kubeflow-training cannot be installed here: {done.stderr.strip()[-300:]}")
        made.touch()
    return python


def test_create_wait_logs_delete(make_danlu: Callable[..., Danlu], sdk_python: Path) -> None:
    danlu = make_danlu()
    script = danlu.home / "script.py"  # a file: the SDK reads the source of the function that is to run
    script.write_text(SCRIPT)
    said = danlu.run(str(sdk_python), str(script), str(danlu.kubeconfig), timeout=300).stdout.splitlines()
    assert said == [
        "conditions Succeeded True",
        "pods ['sdk-master-0'] ['sdk-master-0', 'sdk-worker-0']",
        r"logs {'sdk-master-0': 'rank 0\n'}",
        r"worker {'sdk-worker-0': 'rank 1\n'}",
        "list ['sdk']",
        r"function {'function-master-0': 'learning at 0.1\n'}",
        "failed True",
    ]
