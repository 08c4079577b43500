"""The main story without root: in user namespaces where the kernel allows them, and without any namespaces.

Run by root, the tests become an account that nobody has; run by anyone else, they are that account already.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.servers import free_port
from tests.running import ORDINARY, ROOT, Danlu

from danlu.environments.catalogue import SHARED_CACHE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
ACCOUNT = ORDINARY if os.geteuid() == 0 else None
KINDS = ROOT / "src/danlu/kinds"

OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  rate: "0.1"
  config.yaml: "depth: 3\\n"
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {token: hidden}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: train
        image: python
        command: [python3, -c]
        args:
        - |
          import os, pathlib, socket
          print("host", socket.gethostname())
          print("rate", os.environ["RATE"])
          print("config", pathlib.Path("/danlu-e2e/config/config.yaml").read_text().strip())
          print("token", pathlib.Path("/danlu-e2e/secret/token").read_text())
          pathlib.Path("/danlu-e2e/models/model.txt").write_text("trained")
          pathlib.Path("/danlu-e2e/scratch/x").write_text("x")
        env:
        - {name: RATE, valueFrom: {configMapKeyRef: {name: settings, key: rate}}}
        volumeMounts:
        - {name: config, mountPath: /danlu-e2e/config}
        - {name: secret, mountPath: /danlu-e2e/secret, readOnly: true}
        - {name: models, mountPath: /danlu-e2e/models}
        - {name: scratch, mountPath: /danlu-e2e/scratch}
      volumes:
      - {name: config, configMap: {name: settings}}
      - {name: secret, secret: {secretName: key}}
      - {name: models, persistentVolumeClaim: {claimName: models}}
      - {name: scratch, emptyDir: {}}
"""


def pod(name: str, *command: str, **spec: Any) -> str:
    labels = {"app": name}
    container: dict[str, Any] = {"name": "c", "image": "python", "command": list(command)}
    container.update(spec.pop("container", {}))
    body = {"terminationGracePeriodSeconds": 1, **spec, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": body})


def model_of(danlu: Danlu) -> Path:
    volume = danlu.kubectl("get", "pvc", "models", "-o", "jsonpath={.spec.volumeName}")
    return Path(danlu.kubectl("get", "pv", volume, "-o", "jsonpath={.spec.hostPath.path}")) / "model.txt"


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    found = make_danlu(user=ACCOUNT)
    if "user namespaces" not in found.command("status").stdout:
        pytest.skip(f"no user namespaces here: {found.command('status').stdout}")
    return found


def run_to_end(danlu: Danlu, name: str, *command: str, **spec: Any) -> str:
    danlu.kubectl("apply", "-f", "-", stdin=pod(name, *command, restartPolicy="Never", **spec))
    danlu.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--timeout=30s")
    return danlu.kubectl("logs", name)


def test_a_job_with_volumes_completes(danlu: Danlu) -> None:
    danlu.kubectl("apply", "-f", "-", stdin=OBJECTS)
    danlu.kubectl("wait", "--for=condition=Complete", "job/train", "--timeout=40s")
    said = danlu.kubectl("logs", "job/train").splitlines()
    name = danlu.kubectl("get", "pods", "-l", "job-name=train", "-o", "jsonpath={.items[0].metadata.name}")
    assert said == [f"host {name}", "rate 0.1", "config depth: 3", "token hidden"]
    assert model_of(danlu).read_text() == "trained"
    assert not Path("/danlu-e2e").exists(), "nothing is made on the host itself"


def test_exec_sees_the_pod(danlu: Danlu) -> None:
    danlu.kubectl("apply", "-f", "-", stdin=pod("sleeper", "sleep", "1000"))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/sleeper", "--timeout=30s")
    assert danlu.kubectl("exec", "sleeper", "--", "hostname") == "sleeper\n"
    assert danlu.kubectl("exec", "-i", "sleeper", "--", "cat", stdin="through") == "through"
    mine = Path(f"/tmp/of-{danlu.folder.name}-{os.getpid()}")
    assert danlu.kubectl("exec", "sleeper", "--", "sh", "-c", f"echo x > {mine} && cat {mine}") == "x\n"
    assert not mine.exists(), "a pod has a /tmp of its own"
    assert "sleeper" in danlu.kubectl("exec", "sleeper", "--", "cat", "/etc/hosts")
    done = danlu.run("kubectl", "exec", "sleeper", "--", "sh", "-c", "exit 9", check=False)
    assert done.returncode == 9
    danlu.kubectl("delete", "pod", "sleeper")


def test_a_service_is_reached_by_its_name(danlu: Danlu) -> None:
    server = (
        "import http.server, os\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers(); self.wfile.write(b'hello from web')\n"
        "http.server.HTTPServer((os.environ['DANLU_POD_IP'], 8000), Handler).serve_forever()\n"
    )
    probe = {"tcpSocket": {"port": 8000}, "periodSeconds": 1}
    manifest = pod(
        "web", "python3", "-c", server, container={"readinessProbe": probe, "ports": [{"containerPort": 8000}]}
    )
    danlu.kubectl("apply", "-f", "-", stdin=manifest)
    danlu.kubectl("expose", "pod", "web", "--port=8080", "--target-port=8000")
    danlu.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
    ask = (
        "import time, urllib.request\n"
        "for _ in range(100):\n"
        "    try: print(urllib.request.urlopen('http://web:8080/', timeout=5).read().decode()); break\n"
        "    except OSError as error: time.sleep(0.1)\n"
    )
    assert run_to_end(danlu, "asks", "python3", "-c", ask) == "hello from web\n"
    danlu.kubectl("delete", "pod,service", "web")


UNCONNECTED = """
import socket, struct, sys
server = next(line.split()[1] for line in open('/etc/resolv.conf') if line.startswith('nameserver'))
name = b''.join(bytes([len(part)]) + part for part in sys.argv[1].encode().split(b'.'))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.settimeout(10)
    client.sendto(struct.pack('!6H', 7, 0x100, 1, 0, 0, 0) + name + bytes(2) + bytes([1, 0, 1]), (server, 53))
    answer, source = client.recvfrom(4096)
    print(source == (server, 53), server, socket.inet_ntoa(answer[-4:]))
"""


def test_low_ports_and_the_port_of_dns(danlu: Danlu) -> None:
    """Pods of an account that may have neither: a server on port 80, its service on port 80, and names from port 53."""
    probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
    port = {"containerPort": 80, "hostPort": free_port()}
    container = {"readinessProbe": probe, "ports": [port]}
    danlu.kubectl("apply", "-f", "-", stdin=pod("low", "python3", "-m", "http.server", "80", container=container))
    danlu.kubectl("expose", "pod", "low", "--port=80")
    danlu.kubectl("wait", "--for=condition=Ready", "pod/low", "--timeout=30s")
    address = danlu.kubectl("get", "service", "low", "-o", "jsonpath={.spec.clusterIP}")
    fetch = "import sys, urllib.request as u; [print(u.urlopen(a, timeout=10).status) for a in sys.argv[1:]]"
    urls = ("http://low/", f"http://{address}/", "http://low.default.svc.cluster.local/")
    assert run_to_end(danlu, "fetches", "python3", "-c", fetch, *urls).split() == ["200"] * 3
    asked = run_to_end(danlu, "looks-up", "python3", "-c", UNCONNECTED, "low.default.svc.cluster.local")
    server = danlu.kubectl("get", "service", "kube-dns", "-n", "kube-system", "-o", "jsonpath={.spec.clusterIP}")
    assert asked == f"True {server} {address}\n"
    with urllib.request.urlopen(f"http://127.0.0.1:{port['hostPort']}/", timeout=10) as answer:
        assert answer.status == 200
    assert "FailedToListen" not in danlu.kubectl("get", "events", "-A")
    danlu.kubectl("delete", "pod,service", "low")


def test_run_as_user_is_explained(danlu: Danlu) -> None:
    said = run_to_end(danlu, "somebody", "id", "-u", securityContext={"runAsUser": 12345})
    assert said.strip().isdigit()
    events = danlu.wait(
        "an event about runAsUser",
        lambda: re.search(r".*runAsUser.*", danlu.kubectl("events", "--for", "pod/somebody")),
    )
    assert events


def test_nothing_is_lost_by_kill_9(danlu: Danlu) -> None:
    count = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.05; done"
    danlu.kubectl("apply", "-f", "-", stdin=pod("counter", "sh", "-c", count))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/counter", "--timeout=30s")
    danlu.kill()
    time.sleep(0.5)
    danlu.up()
    lines = danlu.kubectl("logs", "counter").splitlines()
    assert len(lines) > 5
    assert lines == [str(number) for number in range(len(lines))]
    assert danlu.kubectl("get", "pod", "counter", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "0"
    danlu.down()
    danlu.up()


# -- without namespaces


@pytest.fixture(scope="module")
def degraded(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu(user=ACCOUNT, variables={"DANLU_SANDBOX": "none"})


def test_degraded_status_says_so(degraded: Danlu) -> None:
    assert re.search(r"^pods +containers share the host's file tree", degraded.command("status").stdout, re.M)


def test_degraded_a_job_with_volumes_is_still_useful(degraded: Danlu) -> None:
    """Volumes lie where the container's variables say, or at their mountPath where this account can make that."""
    manifest = OBJECTS.replace("/danlu-e2e", str(degraded.folder / "mounts"))
    degraded.kubectl("apply", "-f", "-", stdin=manifest)
    degraded.kubectl("wait", "--for=condition=Complete", "job/train", "--timeout=40s")
    said = degraded.kubectl("logs", "job/train").splitlines()
    assert said[1:] == ["rate 0.1", "config depth: 3", "token hidden"]
    assert model_of(degraded).read_text() == "trained"
    left = list((degraded.folder / "mounts").rglob("*")) if (degraded.folder / "mounts").exists() else []
    assert not [path for path in left if path.is_symlink()], "links go with their pod"


def test_degraded_exec_and_logs(degraded: Danlu) -> None:
    degraded.kubectl("apply", "-f", "-", stdin=pod("sleeper", "sh", "-c", "echo begun; sleep 1000"))
    degraded.kubectl("wait", "--for=condition=Ready", "pod/sleeper", "--timeout=30s")
    assert degraded.kubectl("logs", "sleeper") == "begun\n"
    assert degraded.kubectl("exec", "sleeper", "--", "echo", "hi") == "hi\n"
    degraded.kubectl("delete", "pod", "sleeper")


# -- the platform's kinds


SAY = ["python3", "-c", "import os; print('I am', os.environ.get('TF_CONFIG') or os.environ['RANK'])"]


def replica(container: str) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [{"name": container, "image": "python", "command": SAY}]}}}


JOBS = {
    "pytorchjob": ("kubeflow.org/v1", "PyTorchJob", {
        "pytorchReplicaSpecs": {role: {"replicas": 1, **replica("pytorch")} for role in ("Master", "Worker")},
    }),
    "tfjob": ("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": 2, **replica("tensorflow")}}}),
    "pytorchtrainingjob": ("batch.tensorstack.dev/v1beta1", "PyTorchTrainingJob", {
        "scheduler": {"t9kScheduler": {"queue": "default"}},
        "replicaSpecs": [{"type": "worker", "replicas": 2, **replica("pytorch")}],
    }),
    "tensorflowtrainingjob": ("batch.tensorstack.dev/v1beta1", "TensorFlowTrainingJob", {
        "replicaSpecs": [{"type": "worker", "replicas": 2, **replica("tensorflow")}],
    }),
}  # fmt: skip


@pytest.mark.parametrize("kind", JOBS)
def test_jobs_of_every_kind_run(danlu: Danlu, kind: str) -> None:
    version, name, spec = JOBS[kind]
    body = {"apiVersion": version, "kind": name, "metadata": {"name": f"every-{kind}"}, "spec": spec}
    danlu.kubectl("create", "-f", "-", stdin=json.dumps(body))

    def ended() -> bool:
        status = json.loads(danlu.kubectl("get", kind, f"every-{kind}", "-o", "json")).get("status") or {}
        true = [one["type"] for one in status.get("conditions") or () if one["status"] == "True"]
        assert "Failed" not in true, status
        return status.get("phase") == "Succeeded" or "Succeeded" in true

    danlu.wait(f"{name} to succeed", ended)
    label = "job-name" if "kubeflow" in version else "tensorstack.dev/owner-name"
    said = danlu.kubectl("logs", "-l", f"{label}=every-{kind},job-role=master")
    assert said.startswith("I am "), said
    assert f"every-{kind}" in danlu.kubectl("get", "danlu", "-o", "name")


def test_a_notebook_or_tensorboard_without_its_program_names_what_mends_it(danlu: Danlu) -> None:
    """This account has built no environment: the message leads to the command that does."""
    if (SHARED_CACHE / "environments").exists():
        pytest.skip(f"somebody has shared environments with every account of this machine, in {SHARED_CACHE}")
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mnist"}, "spec": claim}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    for kind, environment in (("notebook", "torch"), ("tensorboard", "tensorflow")):
        danlu.kubectl("apply", "-f", "-", stdin=(KINDS / kind / "example.yaml").read_text())

        def told(kind: str = kind, environment: str = environment) -> bool:
            found = danlu.kubectl(
                "get", kind, "mnist", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].message}"
            )
            return f"`danlu images build {environment}`" in found

        danlu.wait(f"{kind} to say what is missing", told)
        danlu.kubectl("delete", kind, "mnist")
