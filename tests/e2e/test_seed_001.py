"""Every command of the document "basics of training large models", sections 2.3, 5, 6.1, 7 and 8, in its order.

Stand-ins, as the example's README documents them: a virtual node that is said to have a GPU (`--nodes …gpu=1`) for the
GPU, `danlu images build -t` for `docker build` and `docker push`, drawn pictures for CIFAR-10, and a made-up key for
Weights & Biases. The program (examples/00-training-basics/train.py) is real torch.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from danlu.embedded.node.images import Catalogue

from tests.running import ROOT, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
EXAMPLE = ROOT / "examples/00-training-basics"
NAMESPACE = "model-training-basics"
IN = ("-n", NAMESPACE)
JOB = "cifar10-training-basic"


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    if not Catalogue(Path("/nonexistent")).environments()["torch"].is_built:
        pytest.skip("the environment `torch` is not built; `danlu images build torch` makes it")
    return make_danlu("--nodes", "gpu-node:cpu=8,memory=32Gi,gpu=1")


@pytest.fixture(scope="module")
def pod(danlu: Danlu) -> str:
    """Steps 1 to 6 of section 7.1, as written; then the name of the training pod once it trains."""
    for manifest in ("namespace.yaml", "nvidia-device-plugin.yaml", "storage.yaml"):
        assert "created" in danlu.kubectl("apply", "-f", str(EXAMPLE / manifest))
    built = danlu.command(
        "images", "build", "-t", "your-registry/model-training:basic", "-f", str(EXAMPLE / "Dockerfile.training-base"), str(EXAMPLE)
    )
    assert "environment torch" in built.stdout
    made = danlu.kubectl("create", "secret", "generic", "wandb-secret", "--from-literal=api-key=your-wandb-api-key", *IN)
    assert made == "secret/wandb-secret created\n"
    job = (EXAMPLE / "training-job.yaml").read_text()
    # So many epochs that the commands below find it training; the job is ended by `rm` of a file in section 7.3.
    env = "        - {name: EPOCHS, value: '400'}\n        - {name: SAMPLES, value: '512'}\n      volumes:\n      - name: training-data\n"
    job = job.replace("      volumes:\n      - name: training-data\n", env, 1)
    assert danlu.kubectl("apply", "-f", "-", stdin=job) == f"job.batch/{JOB} created\n"
    name = str(
        danlu.wait(
            "the training pod to run",
            lambda: danlu.kubectl(
                "get", "pods", *IN, "-l", f"job-name={JOB}", "--field-selector=status.phase=Running",
                "-o", "jsonpath={.items[*].metadata.name}",
            ),
        )
    )  # fmt: skip
    danlu.wait(
        "the first saved model",
        lambda: "model.pth" in danlu.kubectl("exec", name, *IN, "--", "ls", "/workspace/output/", check=False),
        120,
    )
    return name


def test_2_3_namespace_and_quota(danlu: Danlu, pod: str) -> None:
    shown = danlu.kubectl("get", "namespace", NAMESPACE, "--show-labels")
    assert "Active" in shown
    assert "purpose=model-training-tutorial" in shown
    quota = danlu.kubectl("describe", "quota", "training-quota", *IN)
    assert re.search(r"requests\.cpu\s+2\s+8\n", quota)
    assert re.search(r"requests\.nvidia\.com/gpu\s+1\s+1\n", quota)
    assert re.search(r"limits\.memory\s+16Gi\s+64Gi\n", quota)


def test_5_1_claims_of_a_class_that_nobody_made_are_bound(danlu: Danlu, pod: str) -> None:
    shown = danlu.kubectl("get", "pvc", *IN)
    assert re.search(r"training-data-pvc\s+Bound\s+pvc-\S+\s+100Gi\s+RWO\s+fast-ssd", shown)
    assert re.search(r"model-output-pvc\s+Bound\s+pvc-\S+\s+50Gi\s+RWO\s+fast-ssd", shown)


def test_6_1_the_secret_as_a_manifest(danlu: Danlu, pod: str) -> None:
    manifest = """
apiVersion: v1
kind: Secret
metadata:
  name: wandb-secret-2
  namespace: model-training-basics
type: Opaque
data:
  api-key: {}
"""
    problem = danlu.fails("apply", "-f", "-", stdin=manifest.format("<base64-encoded-wandb-api-key>"))
    assert "illegal base64 data at input byte 0" in problem
    assert danlu.kubectl("apply", "-f", "-", stdin=manifest.format("eW91ci1rZXk=")) == "secret/wandb-secret-2 created\n"


def test_7_1_the_device_plugin_runs(danlu: Danlu, pod: str) -> None:
    shown = danlu.wait(
        "the DaemonSet to be ready",
        lambda: re.search(
            r"nvidia-device-plugin-daemonset\s+1\s+1\s+1\s+1\s+1\s",
            danlu.kubectl("get", "daemonsets", "-n", "kube-system", "nvidia-device-plugin-daemonset"),
        ),
    )
    assert shown
    assert "stand-in" in danlu.kubectl("logs", "-n", "kube-system", "ds/nvidia-device-plugin-daemonset")


def test_7_2_states(danlu: Danlu, pod: str) -> None:
    assert re.search(rf"{JOB}\s+Running\s+0/1\s+", danlu.kubectl("get", "jobs", *IN))
    assert re.search(rf"{pod}\s+1/1\s+Running\s+0\s+", danlu.kubectl("get", "pods", *IN))


def test_7_2_logs_are_followed_by_label(danlu: Danlu, pod: str) -> None:
    follower = subprocess.Popen(
        ["kubectl", "logs", "-f", *IN, "-l", f"job-name={JOB}"], stdout=subprocess.PIPE, text=True, env=danlu.environment
    )
    assert follower.stdout is not None
    stop = threading.Timer(60, follower.kill)
    stop.start()
    try:
        epochs = [line for line, _ in zip((l for l in follower.stdout if l.startswith("Epoch")), range(3), strict=False)]
    finally:
        stop.cancel()
        follower.kill()
        follower.wait()
    assert len(epochs) == 3
    assert all(re.fullmatch(r"Epoch \d+/400: Loss=\d+\.\d{4}, Accuracy=\d+\.\d\d% \(.* s\)\n", line) for line in epochs)


def test_7_2_gpu_and_disk_inside_the_pod(danlu: Danlu, pod: str) -> None:
    assert "/workspace/output" in danlu.kubectl("exec", "-i", pod, *IN, "--", "df", "-h")
    environment = danlu.kubectl("exec", pod, *IN, "--", "env")
    assert re.search(r"^NVIDIA_VISIBLE_DEVICES=.+$", environment, re.M)
    assert "WANDB_API_KEY=your-wandb-api-key" in environment
    # Without a driver nvidia-smi is not there, and exec says so as a container would.
    if danlu.run("sh", "-c", "command -v nvidia-smi", check=False).returncode != 0:
        problem = danlu.fails("exec", "-i", pod, *IN, "--", "nvidia-smi")
        assert 'exec: "nvidia-smi": executable file not found in $PATH' in problem


def test_7_3_results(danlu: Danlu, pod: str) -> None:
    listing = danlu.kubectl("exec", "-i", pod, *IN, "--", "ls", "-la", "/workspace/output/")
    assert "model.pth" in listing
    program = """
import torch
model = torch.load('/workspace/output/model.pth')
print('模型加载成功!')
print(f'模型大小: {len(str(model))} 字节')
"""
    loaded = danlu.kubectl("exec", "-i", pod, *IN, "--", "python3", "-c", program)
    assert "模型加载成功!" in loaded
    assert re.search(r"模型大小: \d+ 字节", loaded)


def test_8_1_gpus_are_short(danlu: Danlu, pod: str) -> None:
    assert "gpu-node" in danlu.kubectl("get", "nodes", "-l", "nvidia.com/gpu.present=true")
    described = danlu.kubectl("describe", "nodes")
    assert [line for line in described.splitlines() if re.search(r"nvidia\.com/gpu:?\s+1", line)]
    greedy = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "greedy"},
        "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["true"], "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(greedy))
    reason = danlu.wait(
        "the scheduler's reason",
        lambda: danlu.kubectl("get", "pod", "greedy", "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"),
    )
    assert str(reason).startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    danlu.kubectl("delete", "pod", "greedy")


def test_8_2_disk(danlu: Danlu, pod: str) -> None:
    danlu.kubectl("exec", "-i", pod, *IN, "--", "sh", "-c", "touch /tmp/rubbish && rm -rf /tmp/*")
    grow = '{"spec":{"resources":{"requests":{"storage":"200Gi"}}}}'
    assert danlu.kubectl("patch", "pvc", "training-data-pvc", *IN, "-p", grow) == "persistentvolumeclaim/training-data-pvc patched\n"
    danlu.wait(
        "the volume to have grown",
        lambda: danlu.kubectl("get", "pvc", "training-data-pvc", *IN, "-o", "jsonpath={.status.capacity.storage}") == "200Gi",
    )
    shrink = '{"spec":{"resources":{"requests":{"storage":"10Gi"}}}}'
    assert "field can not be less than status.capacity" in danlu.fails("patch", "pvc", "training-data-pvc", *IN, "-p", shrink)


def test_8_3_dns_and_proxy(danlu: Danlu, pod: str) -> None:
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: proxied}
spec:
  restartPolicy: Never
  dnsConfig:
    nameservers:
      - 8.8.8.8
      - 8.8.4.4
  containers:
  - name: training
    image: busybox
    command: [sh, -c, "cat /etc/resolv.conf; echo $HTTP_PROXY $HTTPS_PROXY"]
    env:
    - name: HTTP_PROXY
      value: "http://proxy.company.com:8080"
    - name: HTTPS_PROXY
      value: "http://proxy.company.com:8080"
"""
    danlu.kubectl("apply", "-f", "-", stdin=manifest)
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/proxied", "--timeout=30s")
    said = danlu.kubectl("logs", "proxied")
    assert "http://proxy.company.com:8080 http://proxy.company.com:8080" in said
    assert "nameserver 8.8.8.8" in said
    assert "nameserver 8.8.4.4" in said


def test_9_the_job_ends_and_the_model_stays(danlu: Danlu, pod: str) -> None:
    """The same job with three epochs runs to its end; what it saved outlives its pod."""
    danlu.kubectl("delete", "job", JOB, *IN)
    danlu.wait("its pods to be gone", lambda: not danlu.kubectl("get", "pods", *IN, "-l", f"job-name={JOB}", "-o", "name"))
    danlu.kubectl("apply", "-f", str(EXAMPLE / "training-job.yaml"))
    begun = time.time()
    danlu.kubectl("wait", "--for=condition=Complete", f"job/{JOB}", *IN, "--timeout=180s", timeout=200)
    assert re.search(rf"{JOB}\s+Complete\s+1/1\s+", danlu.kubectl("get", "jobs", *IN))
    log = danlu.kubectl("logs", *IN, "-l", f"job-name={JOB}", "--tail=-1")
    accuracies = [float(found) for found in re.findall(r"Epoch \d/3: .*Accuracy=([\d.]+)%", log)]
    assert len(accuracies) == 3
    assert accuracies[-1] > 90  # the pictures are easy; a model that does not learn stays near 10
    volume = danlu.kubectl("get", "pvc", "model-output-pvc", *IN, "-o", "jsonpath={.spec.volumeName}")
    folder = Path(danlu.kubectl("get", "pv", volume, "-o", "jsonpath={.spec.hostPath.path}"))
    assert (folder / "model.pth").stat().st_mtime >= begun - 1
