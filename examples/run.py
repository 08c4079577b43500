"""Runs one example on the Danlu of this account: creates what its manifest says, follows the log, tells how it ended.

    python examples/run.py examples/02-parallel-training/job.yaml --code torch_mnist_trainingjob.py

It uses Danlu's own client, so it needs nothing but `scripts/setup`; with kubectl the same is `kubectl apply` and
`kubectl logs -f`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from danlu.client import Client
from danlu.client.config import from_kubeconfig
from danlu.client.http import HttpTransport
from danlu.embedded.datadir import Running
from danlu.embedded.settings import default_home
from danlu.errors import ApiError, NotFound
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, EVENT, JOB, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from danlu.standalone import consolelink

NAMESPACE = "default"
TRAINING_JOBS = tuple(
    Kind("batch.tensorstack.dev", "v1beta1", name, f"{name.lower()}s")
    for name in ("PyTorchTrainingJob", "TensorFlowTrainingJob", "TensorFlowJob")
)
TENSORBOARD = Kind("tensorstack.dev", "v1beta1", "TensorBoard", "tensorboards")
KINDS = {kind.kind: kind for kind in (CONFIG_MAP, JOB, PERSISTENT_VOLUME_CLAIM, *TRAINING_JOBS)}
MODELS = ("*.pt", "*.pth", "*.keras", "saved_model.pb")
EPOCH = re.compile(r"Epoch (\d+)/(\d+)(?: \[ *(\d+)%\])?")
PERCENT = re.compile(r"\[ *(\d+)%\]")
ACCURACY = re.compile(r"accuracy\D{0,3}(\d\.\d+)", re.IGNORECASE)
WIDTH = 30
LOOK_S, GRACE_S = 0.2, 60.0


class Screen:
    """Log lines scroll; at a terminal one line below them says how far it is, and moves while nothing is logged."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._done = 0.0  # share of the whole
        self._where = ""
        self._shown = False
        self._terminal = sys.stdout.isatty()
        self.accuracy = ""

    def line(self, text: str) -> None:
        self.clear()
        print(text, flush=True)
        if found := EPOCH.search(text):
            epoch, of, percent = int(found[1]), int(found[2]), found[3]
            self._done = (epoch if percent is None else epoch - 1 + int(percent) / 100) / of
            self._where = f"epoch {epoch} of {of}"
        elif found := PERCENT.search(text):
            self._done, self._where = int(found[1]) / 100, f"{found[1]} %"
        if told := ACCURACY.search(text):
            self.accuracy = told[1]
        self._draw()

    def begins(self, pod: str) -> None:
        if not self._done:
            self._where = "the program starts"
        self.line(f"pod {pod} runs; its log:")

    def waiting(self, reason: str) -> None:
        """Said once; below the log it stays until the training itself tells how far it is."""
        if reason and reason != self._where and not self._done:
            self._where = reason
            self.line(f"waiting: {reason}")

    async def keep_moving(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            self.clear()
            self._draw()

    def _draw(self) -> None:
        if self._terminal:
            sys.stdout.write(self._progress()[: shutil.get_terminal_size().columns - 1])
            sys.stdout.flush()
            self._shown = True

    def _progress(self) -> str:
        passed = time.monotonic() - self._begun
        filled = int(WIDTH * self._done)
        bar = "█" * filled + "·" * (WIDTH - filled)
        if not self._done:
            return f"[{bar}] {self._where or 'starting'}, {passed:.0f} s"
        left = passed / self._done * (1 - self._done)
        return f"[{bar}] {self._where}, {passed:.0f} s, about {left:.0f} s left"

    def clear(self) -> None:
        if self._shown:
            sys.stdout.write("\r\033[K")
            self._shown = False


class Example(ABC):
    """One job and what belongs to it; its kind decides where the program goes and how the job tells of itself."""

    pods: str  # labels of those whose log is followed

    def __init__(self, client: Client, job: Object, objects: list[Object]) -> None:
        self.client, self.objects, self.kind = client, objects, KINDS[job["kind"]]
        self.name = str(job["metadata"]["name"])

    @abstractmethod
    async def put_program(self, name: str, text: str) -> None: ...

    @abstractmethod
    async def ending(self) -> str:
        """How it has ended; "" while it has not."""

    @abstractmethod
    async def waits_for(self, pod: Object | None) -> str: ...

    @abstractmethod
    async def conclude(self, began: float, screen: Screen) -> None: ...

    async def volumes(self) -> list[Path]:
        """The folders of its claims on this machine."""
        found = []
        for obj in self.objects:
            if obj["kind"] == PERSISTENT_VOLUME_CLAIM.kind:
                claim = await _bound(self.client, obj["metadata"]["name"])
                volume = await self.client.get(PERSISTENT_VOLUME, claim["spec"]["volumeName"])
                found.append(Path((volume["spec"].get("hostPath") or volume["spec"].get("local"))["path"]))
        return found


class PlainJob(Example):
    def __init__(self, client: Client, job: Object, objects: list[Object]) -> None:
        super().__init__(client, job, objects)
        self.pods = f"batch.kubernetes.io/job-name={self.name}"

    async def put_program(self, name: str, text: str) -> None:
        """A ConfigMap holds it, as the manifest says."""
        program = {"metadata": {"name": f"{self.name}-code"}, "data": {name: text}}
        await replace(self.client, CONFIG_MAP, program)

    async def ending(self) -> str:
        conditions = ((await self.client.get(JOB, self.name, NAMESPACE)).get("status") or {}).get("conditions") or []
        over = (one["type"] for one in conditions if one["type"] in ("Complete", "Failed") and one["status"] == "True")
        return next(over, "")

    async def waits_for(self, pod: Object | None) -> str:
        if pod is None:
            return ""
        about = f"involvedObject.uid={pod['metadata']['uid']}"
        events = (await self.client.list(EVENT, NAMESPACE, fields=about)).items
        bad = [event for event in events if event.get("type") == "Warning"]
        return str(bad[-1]["message"]) if bad else ""

    async def conclude(self, began: float, screen: Screen) -> None:
        for folder in await self.volumes():
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                print(f"  saved         {file} ({file.stat().st_size / 1024:.0f} KiB)")


class TrainingJob(Example):
    def __init__(self, client: Client, job: Object, objects: list[Object]) -> None:
        super().__init__(client, job, objects)
        self.pods = f"tensorstack.dev/owner-name={self.name},job-role=master"

    async def put_program(self, name: str, text: str) -> None:
        """It lies on the claim, where a notebook would have left it."""
        for folder in await self.volumes():
            (folder / name).write_text(text)

    async def _status(self) -> Object:
        found: Object = (await self.client.get(self.kind, self.name, NAMESPACE)).get("status") or {}
        return found

    async def ending(self) -> str:
        phase = str((await self._status()).get("phase") or "")
        return phase if phase in ("Succeeded", "Failed") else ""

    async def waits_for(self, pod: Object | None) -> str:
        conditions = (await self._status()).get("conditions") or ()
        waits = (one["message"] for one in conditions if one["type"] == "Running" and one["status"] != "True")
        return str(next(waits, ""))

    async def conclude(self, began: float, screen: Screen) -> None:
        if screen.accuracy:
            print(f"  accuracy      {screen.accuracy}")
        for folder in await self.volumes():
            made = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_mtime >= began]
            for file in sorted(path for path in made if any(path.match(one) for one in MODELS)):
                print(f"  model         {file} ({file.stat().st_size / 1024:.0f} KiB)")
        if address := await self._tensorboard(screen):
            print(f"  TensorBoard   {address}")

    async def _tensorboard(self, screen: Screen) -> str:
        ends = time.monotonic() + GRACE_S
        while time.monotonic() < ends:
            told = (await self._status()).get("tensorboard")
            if not told:
                return ""
            if told.get("ready"):
                board = await self.client.get(TENSORBOARD, told["name"], NAMESPACE)
                return str(board["status"]["url"])
            screen.waiting("the TensorBoard starts")
            await asyncio.sleep(LOOK_S)
        return "not ready yet: `kubectl get tb -o wide` shows its address"


async def _bound(client: Client, name: str) -> Object:
    for _ in range(100):
        claim = await client.get(PERSISTENT_VOLUME_CLAIM, name, NAMESPACE)
        if claim["spec"].get("volumeName"):
            return claim
        await asyncio.sleep(0.1)
    raise SystemExit(f"the claim {name} is not bound to a volume; `kubectl describe pvc {name}` says why")


async def replace(client: Client, kind: Kind, obj: Object) -> str:
    """A job of an earlier run makes way; a volume stays. What was done, in a word."""
    name = obj["metadata"]["name"]
    try:
        found = await client.get(kind, name, NAMESPACE)
    except NotFound:
        await client.create(kind, obj, NAMESPACE)
        return "created"
    if kind is PERSISTENT_VOLUME_CLAIM:
        return "found"
    await client.delete(kind, name, NAMESPACE, propagation=None if kind is CONFIG_MAP else "Foreground")
    for _ in range(600):
        try:
            if (await client.get(kind, name, NAMESPACE))["metadata"]["uid"] != found["metadata"]["uid"]:
                break
        except NotFound:
            break
        await asyncio.sleep(0.1)
    await client.create(kind, obj, NAMESPACE)
    return "created again:"


async def wait_for_pod(client: Client, example: Example, seen: set[str], screen: Screen) -> Object | None:
    """The job's next pod once it runs or has ended; None when the job is over. Says why while it waits."""
    while True:
        over = await example.ending()
        pods = (await client.list(POD, NAMESPACE, labels=example.pods)).items
        fresh = [pod for pod in pods if pod["metadata"]["uid"] not in seen]
        fresh.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        if fresh and fresh[0]["status"].get("phase") != "Pending":
            return fresh[0]
        if over:
            return None
        screen.waiting(await example.waits_for(fresh[0] if fresh else None))
        await asyncio.sleep(LOOK_S)


async def log_lines(client: Client, pod: str) -> AsyncIterator[str]:
    answer = await client.request("GET", POD.path(NAMESPACE, pod, "log"), [("follow", "true")])
    rest = b""
    assert not isinstance(answer.body, bytes)
    async for chunk in answer.body:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


async def run(manifest: Path, code: str, kubeconfig: Path) -> int:
    client = Client(HttpTransport(from_kubeconfig([kubeconfig])), manager="danlu-example")
    screen = Screen()
    moving = asyncio.create_task(screen.keep_moving())
    files = [path for path in (manifest.with_name("pvc.yaml"), manifest) if path.exists()]
    objects = [obj for path in files for obj in yaml.safe_load_all(path.read_text()) if obj]
    job = next(obj for obj in objects if KINDS[obj["kind"]] in (JOB, *TRAINING_JOBS))
    example = (PlainJob if job["kind"] == JOB.kind else TrainingJob)(client, job, objects)
    try:
        for obj in sorted(objects, key=lambda one: one is job):  # the job last: what it needs is there then
            if obj is job:
                await example.put_program(code, (manifest.parent / code).read_text())
            done = await replace(client, KINDS[obj["kind"]], obj)
            screen.line(f"{done} {obj['kind']} {obj['metadata']['name']}")
        return await follow(client, example, screen, kubeconfig.parent)
    finally:
        moving.cancel()
        screen.clear()
        await client.close()


def console_link(home: Path) -> str:
    running = Running.read(home / "running.json")
    return consolelink.link(home, running.pid) if running else ""


async def follow(client: Client, example: Example, screen: Screen, home: Path) -> int:
    """The log of each pod of the job in turn, until the job has ended."""
    began, begun = time.time(), time.monotonic()
    seen: set[str] = set()
    while True:
        pod = await wait_for_pod(client, example, seen, screen)
        if pod is None:
            break
        seen.add(pod["metadata"]["uid"])
        screen.begins(str(pod["metadata"]["name"]))
        async for line in log_lines(client, pod["metadata"]["name"]):
            screen.line(line)
    finished = await example.ending()
    screen.clear()
    print(f"\n{example.kind.kind} {example.name}: {finished} after {time.monotonic() - begun:.1f} s")
    if finished == "Failed":
        print(f"  look closer   kubectl describe {example.kind.kind.lower()} {example.name}")
        return 1
    await example.conclude(began, screen)
    if console := console_link(home):
        print(f"  console       {console}     (signs you in, also for TensorBoard)")
    print("  look closer   kubectl get danlu,jobs,pods     (after `export KUBECONFIG=$(.venv/bin/danlu kubeconfig)`)")
    print("  stop          .venv/bin/danlu down")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run an example on the Danlu of this account.")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--code", required=True, help="the program beside the manifest that the job runs")
    parser.add_argument("--kubeconfig", type=Path, default=default_home() / "kubeconfig")
    arguments = parser.parse_args()
    try:
        return asyncio.run(run(arguments.manifest, arguments.code, arguments.kubeconfig))
    except (ApiError, OSError) as error:
        print(f"danlu: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe job goes on; `kubectl get danlu,jobs` shows it, and `kubectl logs -f POD` follows it again.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
