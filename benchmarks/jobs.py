"""Training jobs and notebooks on `danlu up`, beside the same programs started by hand."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from fakecluster import open_client
from figures import Figures, say
from operators import NAMESPACE, create_all, has_condition, job, seen, timed
from servers import ROOT, Danlu, cpu_seconds, descendants, free_port

from danlu.environments.catalogue import Catalogue, data_folder
from danlu.kinds.notebook.schema import NOTEBOOK as NOTEBOOK_KIND
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

JOBS, REPLICAS = 200, 4
TIMES = 9
WAIT_S = 300.0
MARK = "date +%s.%N > /shared/{name}.new; mv /shared/{name}.new /shared/{name}"
TRAIN = f"{MARK.format(name='$RANK.begin')}; {{command}}; {MARK.format(name='$RANK.end')}"
NOTEBOOK = ROOT / "src/danlu/kinds/notebook/example.yaml"
CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mnist"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}  # fmt: skip


class JobBench:
    def __init__(self, folder: Path, path: str, rounds: int) -> None:
        self.folder = folder
        self.path = path
        self.rounds = rounds
        self.figures = Figures()

    def rate(self) -> None:
        """200 jobs of four replicas of `true`, all at once, to their end; each round on a fresh server."""
        for number in range(self.rounds):
            say(f"jobs, round {number + 1} of {self.rounds}: {JOBS} PyTorchJobs of {REPLICAS} replicas")
            with Up(self.folder / f"rate-{number}", self.path) as server:
                before = server.cpu()
                taken = asyncio.run(_finish(server, [job(f"job-{n}", REPLICAS) for n in range(JOBS)]))
                self.figures.add("jobs_per_s", JOBS / taken)
                self.figures.add("cpu_ms_per_job", (server.cpu() - before) / JOBS * 1000)

    def latency(self) -> None:
        """Four ranks of a job, and four plain pods, in turns: until the last process runs."""
        say("jobs: submit → all ranks run")
        with Up(self.folder / "latency", self.path) as server:
            for number in range(TIMES):
                pods = [_marked_pod(f"plain-{number}-{n}", n) for n in range(REPLICAS)]
                self.figures.add("pods_ms", asyncio.run(_until_marked(server, POD, pods)))
                self.figures.add("ranks_ms", asyncio.run(_until_marked(server, PYTORCHJOB, [_marked_job(number)])))
        differences = [
            ranks - pods for ranks, pods in zip(*(self.figures.seen[n] for n in ("ranks_ms", "pods_ms")), strict=True)
        ]
        self.figures.add("above_pods_ms", *differences)

    def training(self) -> None:
        """Example 03 as a job and under torchrun, in turns; and what Danlu itself uses meanwhile."""
        torch = _environment("torch")
        with Up(self.folder / "training", self.path) as server:
            for number in range(self.rounds):
                say(f"training, round {number + 1} of {self.rounds}: torchrun")
                self.figures.add("torchrun_s", _torchrun(torch))
                say(f"training, round {number + 1} of {self.rounds}: a PyTorchJob")
                taken, percent = _train(server, number)
                self.figures.add("job_s", taken)
                self.figures.add("own_percent", percent)

    def notebook(self) -> None:
        torch = _environment("torch")
        # Without the console, whose login would stand before it: the notebook's own address is asked.
        with Up(self.folder / "notebook", self.path, "--no-console") as server:
            server.run("create", "-f", "-", manifest=CLAIM)
            for number in range(self.rounds + 1):  # the first time the files are not in memory: it does not count
                say(f"notebook, round {number} of {self.rounds}")
                by_hand, by_danlu = _jupyter(torch), _notebook(server)
                if number:
                    self.figures.add("jupyter_s", by_hand)
                    self.figures.add("notebook_s", by_danlu)


class Up:
    def __init__(self, folder: Path, path: str, *flags: str) -> None:
        self._server = Danlu(folder, path)
        self._server.flags = flags

    def __enter__(self) -> Danlu:
        self._server.start()
        # The API answers a moment before the platform's kinds are served.
        _wait_for(
            "PyTorchJobs", lambda: self._server.run("get", "pytorchjobs.kubeflow.org", check=False).returncode == 0
        )
        return self._server

    def __exit__(self, *_: object) -> None:
        self._server.stop()


# -- many small jobs


async def _finish(server: Danlu, jobs: list[Object]) -> float:
    async with open_client(server.kubeconfig) as client:
        done = seen(client, PYTORCHJOB, len(jobs), has_condition("Succeeded"))
        return (await timed(create_all(client, PYTORCHJOB, jobs), done))[0]


def _shared(container: Object, folder: str) -> Object:
    mounts = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    return {
        "containers": [{**container, **mounts}],
        "volumes": [{"name": "shared", "hostPath": {"path": folder}}],
        "restartPolicy": "Never",
    }


def _marking(name: str) -> Object:
    return {"name": "pytorch", "image": "busybox", "command": ["sh", "-c", MARK.format(name=name)]}


def _marked_pod(name: str, rank: int) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": _shared(_marking(str(rank)), ""),
    }  # fmt: skip


def _marked_job(number: int) -> Object:
    made = job(f"ranks-{number}", REPLICAS)
    for role in made["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"] = _shared(_marking("$RANK"), "")
        del role["template"]["spec"]["restartPolicy"]
    return made


async def _until_marked(server: Danlu, kind: Any, objects: list[Object]) -> float:
    """Milliseconds from the request being sent to the last process's first word."""
    with tempfile.TemporaryDirectory() as folder:
        for obj in objects:
            _point_at(obj, folder)
        async with open_client(server.kubeconfig) as client:
            begun = time.time()
            await create_all(client, kind, objects)
            marks = [Path(folder) / str(rank) for rank in range(REPLICAS)]
            while not all(mark.exists() for mark in marks):
                if time.time() - begun > WAIT_S:
                    raise RuntimeError("the processes did not start")
                await asyncio.sleep(0.002)
        return (max(float(mark.read_text()) for mark in marks) - begun) * 1000


def _point_at(obj: Any, folder: str) -> None:
    if isinstance(obj, dict):
        if "hostPath" in obj:
            obj["hostPath"]["path"] = folder
        for value in obj.values():
            _point_at(value, folder)
    elif isinstance(obj, list):
        for value in obj:
            _point_at(value, folder)


# -- training


def _environment(name: str) -> Path:
    found = Catalogue(Path("/nonexistent")).environments()[name]
    if not found.is_built or found.folder is None:
        raise SystemExit(f"bench: the environment `{name}` is not built; `danlu images build {name}` makes it")
    return found.folder


def _seconds(folder: str) -> float:
    """From the first rank's first word to the last rank's last."""
    begins, ends = ([float(p.read_text()) for p in Path(folder).glob(f"*.{word}")] for word in ("begin", "end"))
    return max(ends) - min(begins)


def _torchrun(torch: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = f"python3 {ROOT}/examples/03-kubeflow-pytorchjob/mnist.py --epochs=1"
        words = TRAIN.format(command=script).replace("/shared", folder)
        path = f"{torch}/bin:{os.environ['PATH']}"
        subprocess.run(
            [torch / "bin/torchrun", "--nproc-per-node", "2", "--no-python", "sh", "-c", words],
            check=True, cwd=folder, capture_output=True, timeout=1800,
            env={**os.environ, "PATH": path, "DANLU_DATA": str(data_folder())},
        )  # fmt: skip
        return _seconds(folder)


def _train(server: Danlu, number: int) -> tuple[float, float]:
    words = TRAIN.format(command="python3 /opt/pytorch-mnist/mnist.py --epochs=1")
    image = "docker.io/kubeflowkatib/pytorch-mnist:v1beta1-45c5727"
    made = job(f"train-{number}", 2)
    with tempfile.TemporaryDirectory() as folder:
        for role in made["spec"]["pytorchReplicaSpecs"].values():
            container = {"name": "pytorch", "image": image, "command": ["sh", "-c", words]}
            role["template"]["spec"] = {**_shared(container, folder)}
            del role["template"]["spec"]["restartPolicy"]
        server.run("create", "-f", "-", manifest=made)
        _wait_for("both ranks to begin", lambda: len(list(Path(folder).glob("*.begin"))) == 2)
        time.sleep(5)
        used, at = _own_cpu(server), time.monotonic()
        _wait_for("the end of the training", lambda: len(list(Path(folder).glob("*.end"))) == 2, 1800)
        percent = (_own_cpu(server) - used) / (time.monotonic() - at) * 100
        return _seconds(folder), percent


def _own_cpu(server: Danlu) -> float:
    """Of Danlu's own processes: the server, the one that starts pods, and one beside each pod."""
    main = server.processes[0].pid
    own = [main]
    for pid in descendants(main)[1:]:
        words = Path(f"/proc/{pid}/cmdline")
        if words.exists() and b"\0-I\0-S\0-X\0utf8\0" in words.read_bytes():
            own.append(pid)
    return sum(cpu_seconds(pid) for pid in own)


def _wait_for(what: str, check: Callable[[], bool], seconds: float = WAIT_S) -> None:
    ends = time.monotonic() + seconds
    while not check():
        if time.monotonic() > ends:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.05)


# -- notebooks


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return "version" in json.loads(answer.read())
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _jupyter(torch: Path) -> float:
    port = free_port()
    with tempfile.TemporaryDirectory() as home:
        begun = time.monotonic()
        words = ["lab", "--no-browser", "--allow-root", f"--port={port}", f"--ServerApp.root_dir={home}"]
        process = subprocess.Popen(
            [torch / "bin/jupyter", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home, "JUPYTER_TOKEN": "benchmark", "PATH": f"{torch}/bin:{os.environ['PATH']}"},
        )  # fmt: skip
        try:
            _wait_for("jupyter lab by hand", lambda: _answers(f"http://127.0.0.1:{port}/api"))
            return time.monotonic() - begun
        finally:
            process.kill()
            process.wait()


def _notebook(server: Danlu) -> float:
    made = yaml.safe_load(NOTEBOOK.read_text())

    async def start() -> float:
        async with open_client(server.kubeconfig) as client:
            begun = time.monotonic()
            await client.create(NOTEBOOK_KIND, made, NAMESPACE)
            while time.monotonic() - begun < WAIT_S:
                found = await client.get(NOTEBOOK_KIND, made["metadata"]["name"], NAMESPACE)
                address = (found.get("status") or {}).get("url", "").removesuffix("lab")
                if address and await asyncio.to_thread(_answers, f"{address}api"):
                    return time.monotonic() - begun
                await asyncio.sleep(0.05)
        raise RuntimeError("waited in vain for the notebook")

    try:
        return asyncio.run(start())
    finally:
        server.run("delete", "notebook", made["metadata"]["name"], "--wait=false")
        _wait_for("the notebook's pod to go", lambda: not server.run("get", "pods", "-o", "name").stdout.strip())
