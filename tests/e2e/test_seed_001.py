"""Every command of the document "basics of training large models", sections 2.3, 5, 6.1, 7 and 8, in its order.

Commands stand here as the document has them and go through a shell, those with `-it` at a terminal. Stand-ins, as the
example's README documents them: a virtual node that is said to have a GPU (`--nodes …gpu=1`), `danlu images build -t`
for `docker build` and `docker push`, drawn pictures for CIFAR-10, and a made-up key for Weights & Biases. The program
(examples/00-training-basics/train.py) is real torch.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.running import ROOT, Danlu

from danlu.environments.catalogue import Catalogue

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


def shell(danlu: Danlu, command: str) -> str:
    """One command of the document, in the example's folder."""
    return danlu.run("bash", "-c", f"cd {EXAMPLE} && {command}").stdout


@pytest.fixture(scope="module")
def pod(danlu: Danlu) -> str:
    """Steps 1 to 6 of section 7.1; then the name of the training pod once it has saved its first model."""
    assert shell(danlu, "kubectl apply -f namespace.yaml") == (
        f"namespace/{NAMESPACE} created\nresourcequota/training-quota created\n"
    )
    assert shell(danlu, "kubectl apply -f nvidia-device-plugin.yaml") == (
        "daemonset.apps/nvidia-device-plugin-daemonset created\n"
    )
    assert shell(danlu, "kubectl apply -f storage.yaml") == (
        "persistentvolumeclaim/training-data-pvc created\npersistentvolumeclaim/model-output-pvc created\n"
    )
    build = "images build -t your-registry/model-training:basic -f Dockerfile.training-base ."
    built = shell(danlu, f"{sys.executable} -m danlu {build} --data-dir {danlu.data}")
    assert "on the environment torch" in built  # no registry is asked in tests
    secret = shell(
        danlu,
        """kubectl create secret generic wandb-secret \\
    --from-literal=api-key=your-wandb-api-key \\
    -n model-training-basics""",
    )
    assert secret == "secret/wandb-secret created\n"
    # So many epochs that the commands below find it training.
    longer = "        - {name: EPOCHS, value: '4000'}\n        - {name: SAMPLES, value: '512'}\n      volumes:\n"
    job = (EXAMPLE / "training-job.yaml").read_text().replace("      volumes:\n", longer, 1)
    assert danlu.kubectl("apply", "-f", "-", stdin=job) == f"job.batch/{JOB} created\n"
    running = "kubectl get pods -n model-training-basics --field-selector=status.phase=Running -o name"
    name = str(danlu.wait("the training pod to run", lambda: shell(danlu, running))).strip().removeprefix("pod/")
    danlu.wait(
        "the first saved model",
        lambda: "model.pth\n" in danlu.kubectl("exec", name, *IN, "--", "ls", "/workspace/output/", check=False),
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
    jobs = shell(danlu, "kubectl get jobs -n model-training-basics")
    assert re.match(r"NAME\s+STATUS\s+COMPLETIONS\s+DURATION\s+AGE\n", jobs)
    assert re.search(rf"{JOB}\s+Running\s+0/1\s+", jobs)
    pods = shell(danlu, "kubectl get pods -n model-training-basics")
    assert re.search(rf"{pod}\s+1/1\s+Running\s+0\s+", pods)


def test_7_2_logs_are_followed_by_label(danlu: Danlu, pod: str) -> None:
    command = "kubectl logs -f -n model-training-basics -l job-name=cifar10-training-basic"
    follower = subprocess.Popen(command.split(), stdout=subprocess.PIPE, text=True, env=danlu.environment)
    assert follower.stdout is not None
    stop = threading.Timer(60, follower.kill)
    stop.start()
    epochs: list[str] = []
    try:
        for line in follower.stdout:
            if line.startswith("Epoch"):
                epochs.append(line)
            if len(epochs) == 3:
                break
    finally:
        stop.cancel()
        follower.kill()
        follower.wait()
    numbers = [int(found[1]) for line in epochs if (found := re.match(r"Epoch (\d+)/4000: Loss=\d", line))]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_7_2_gpu_and_disk_inside_the_pod(danlu: Danlu, pod: str) -> None:
    # df names a device once, whatever is mounted from it; asked for a folder, it names its volume.
    disks = danlu.terminal(f"kubectl exec -it {pod} -n model-training-basics -- df -h")
    assert re.search(r"^Filesystem\s+Size\s+Used\s+Avail\s+Use%\s+Mounted on$", disks, re.M)
    assert "/workspace/output" in danlu.kubectl("exec", pod, *IN, "--", "df", "-h", "/workspace/output")
    environment = danlu.kubectl("exec", pod, *IN, "--", "env")
    assert re.search(r"^NVIDIA_VISIBLE_DEVICES=.+$", environment, re.M)
    assert "WANDB_API_KEY=your-wandb-api-key" in environment
    command = f"kubectl exec -it {pod} -n model-training-basics -- nvidia-smi"
    if shutil.which("nvidia-smi"):
        assert "NVIDIA-SMI" in danlu.terminal(command)
    else:  # without a driver it is not there, and exec says so as a container would
        problem = danlu.fails(*command.replace("-it ", "").split()[1:])
        assert 'exec: "nvidia-smi": executable file not found in $PATH' in problem


def test_7_3_results(danlu: Danlu, pod: str) -> None:
    listing = danlu.terminal(f"kubectl exec -it {pod} -n model-training-basics -- ls -la /workspace/output/")
    assert "model.pth" in listing
    loaded = danlu.terminal(
        f"""kubectl exec -it {pod} -n model-training-basics -- python3 -c "
import torch
model = torch.load('/workspace/output/model.pth')
print('模型加载成功!')
print(f'模型大小: {{len(str(model))}} 字节')
"
"""
    )
    assert "模型加载成功!" in loaded
    assert re.search(r"模型大小: \d+ 字节", loaded)


def test_8_1_gpus_are_short(danlu: Danlu, pod: str) -> None:
    assert "gpu-node" in shell(danlu, "kubectl get nodes -l nvidia.com/gpu.present=true")
    plugin = shell(danlu, "kubectl get daemonsets -n kube-system nvidia-device-plugin-daemonset")
    assert re.match(r"NAME\s+DESIRED\s+CURRENT\s+READY\s+UP-TO-DATE\s+AVAILABLE\s+NODE SELECTOR", plugin)
    described = shell(danlu, "kubectl describe nodes | grep -i nvidia")
    # Capacity, Allocatable, and what is requested of it
    assert len(re.findall(r"nvidia\.com/gpu:?\s+1", described)) == 3
    limits = '{"spec":{"containers":[{"name":"c","image":"busybox","resources":{"limits":{"nvidia.com/gpu":1}}}]}}'
    danlu.kubectl("run", "greedy", "--image=busybox", f"--overrides={limits}")
    reason = danlu.wait(
        "the scheduler's reason",
        lambda: danlu.kubectl(
            "get", "pod", "greedy", "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
        ),
    )
    assert str(reason).startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    danlu.kubectl("delete", "pod", "greedy")


def test_8_2_disk(danlu: Danlu, pod: str) -> None:
    # The document names no namespace here: its reader has chosen one.
    shell(danlu, "kubectl config set-context --current --namespace=model-training-basics")
    try:
        assert "Mounted on" in danlu.terminal(f"kubectl exec -it {pod} -- df -h")
        rubbish = Path(f"/tmp/rubbish-of-{pod}")
        danlu.kubectl("exec", pod, "--", "touch", str(rubbish))
        assert not rubbish.exists(), "the pod has this machine's /tmp; what follows would empty it"
        danlu.terminal(f"kubectl exec -it {pod} -- rm -rf /tmp/*")
        grow = """kubectl patch pvc training-data-pvc -p '{"spec":{"resources":{"requests":{"storage":"200Gi"}}}}'"""
        assert shell(danlu, grow) == "persistentvolumeclaim/training-data-pvc patched\n"
    finally:
        shell(danlu, "kubectl config set-context --current --namespace=default")
    size = ("get", "pvc", "training-data-pvc", *IN, "-o", "jsonpath={.status.capacity.storage}")
    danlu.wait("the volume to have grown", lambda: danlu.kubectl(*size) == "200Gi")
    shrink = '{"spec":{"resources":{"requests":{"storage":"10Gi"}}}}'
    problem = danlu.fails("patch", "pvc", "training-data-pvc", *IN, "-p", shrink)
    assert "field can not be less than status.capacity" in problem


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
    danlu.wait(
        "its pods to be gone", lambda: not danlu.kubectl("get", "pods", *IN, "-l", f"job-name={JOB}", "-o", "name")
    )
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
