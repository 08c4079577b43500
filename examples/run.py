"""Runs one example on the Danlu of this account: creates what its manifest says, follows the log, tells how it ended.

    python examples/run.py examples/00-training-basics/first-job.yaml --code train.py

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
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from danlu.client import Client
from danlu.client.config import from_kubeconfig
from danlu.client.http import HttpTransport
from danlu.errors import ApiError, NotFound
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import CONFIG_MAP, EVENT, JOB, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from danlu.settings import default_home

NAMESPACE = "default"
KINDS = {kind.kind: kind for kind in (CONFIG_MAP, JOB, PERSISTENT_VOLUME_CLAIM)}
PROGRESS = re.compile(r"Epoch (\d+)/(\d+)")
WIDTH = 30


class Screen:
    """Log lines scroll; at a terminal one line below them says how far it is, and moves while nothing is logged."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._done, self._of = 0, 0
        self._shown = False
        self._terminal = sys.stdout.isatty()

    def line(self, text: str) -> None:
        self.clear()
        print(text, flush=True)
        found = PROGRESS.search(text)
        if found:
            self._done, self._of = int(found[1]), int(found[2])
        self._draw()

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
        if not self._of:
            return f"[{'·' * WIDTH}] starting, {passed:.0f} s"
        filled = WIDTH * self._done // self._of
        left = passed / self._done * (self._of - self._done)
        bar = "█" * filled + "·" * (WIDTH - filled)
        return f"[{bar}] epoch {self._done} of {self._of}, {passed:.0f} s, about {left:.0f} s left"

    def clear(self) -> None:
        if self._shown:
            sys.stdout.write("\r\033[K")
            self._shown = False


async def replace(client: Client, kind: Kind, obj: Object) -> None:
    """A job of an earlier run makes way; a volume stays."""
    name = obj["metadata"]["name"]
    try:
        found = await client.get(kind, name, NAMESPACE)
    except NotFound:
        await client.create(kind, obj, NAMESPACE)
        return
    if kind is PERSISTENT_VOLUME_CLAIM:
        return
    await client.delete(kind, name, NAMESPACE, propagation="Foreground" if kind is JOB else None)
    for _ in range(600):
        try:
            if (await client.get(kind, name, NAMESPACE))["metadata"]["uid"] != found["metadata"]["uid"]:
                break
        except NotFound:
            break
        await asyncio.sleep(0.1)
    await client.create(kind, obj, NAMESPACE)


async def wait_for_pod(client: Client, job: str, seen: set[str], screen: Screen) -> Object | None:
    """The job's next pod once it runs or has ended; None when the job is over. Says why while it waits."""
    said = ""
    while True:
        over = _ending(await client.get(JOB, job, NAMESPACE))
        pods = (await client.list(POD, NAMESPACE, labels=f"batch.kubernetes.io/job-name={job}")).items
        fresh = [pod for pod in pods if pod["metadata"]["name"] not in seen]
        fresh.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        if fresh and fresh[0]["status"].get("phase") != "Pending":
            return fresh[0]
        if over:
            return None
        if fresh:
            reason = await why(client, fresh[0])
            if reason and reason != said:
                said = reason
                screen.line(f"waiting: {reason}")
        await asyncio.sleep(0.1)


async def why(client: Client, pod: Object) -> str:
    events = (await client.list(EVENT, NAMESPACE, fields=f"involvedObject.uid={pod['metadata']['uid']}")).items
    bad = [event for event in events if event.get("type") == "Warning"]
    return str(bad[-1]["message"]) if bad else ""


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
    objects = [obj for obj in yaml.safe_load_all(manifest.read_text()) if obj]
    job = next(obj for obj in objects if obj["kind"] == "Job")
    program = {"metadata": {"name": f"{job['metadata']['name']}-code"}}
    try:
        await replace(client, CONFIG_MAP, {**program, "data": {code: (manifest.parent / code).read_text()}})
        for obj in objects:
            await replace(client, KINDS[obj["kind"]], obj)
            screen.line(f"created {obj['kind']} {obj['metadata']['name']}")
        return await follow(client, job["metadata"]["name"], objects, screen)
    finally:
        moving.cancel()
        screen.clear()
        await client.close()


async def follow(client: Client, name: str, objects: list[Object], screen: Screen) -> int:
    """The log of each pod of the job in turn, until the job has ended."""
    begun = time.monotonic()
    seen: set[str] = set()
    while True:
        pod = await wait_for_pod(client, name, seen, screen)
        if pod is None:
            break
        seen.add(pod["metadata"]["name"])
        async for line in log_lines(client, pod["metadata"]["name"]):
            screen.line(line)
    finished = _ending(await client.get(JOB, name, NAMESPACE))
    screen.clear()
    print(f"\nJob {name}: {finished} after {time.monotonic() - begun:.1f} s")
    if finished != "Complete":
        print(f"  look closer   kubectl describe job {name}")
        return 1
    await _where(client, objects)
    return 0


def _ending(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    return next((c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), "")


async def _where(client: Client, objects: list[Object]) -> None:
    for obj in objects:
        if obj["kind"] == "PersistentVolumeClaim":
            claim = await client.get(PERSISTENT_VOLUME_CLAIM, obj["metadata"]["name"], NAMESPACE)
            volume = await client.get(PERSISTENT_VOLUME, claim["spec"]["volumeName"])
            folder = Path((volume["spec"].get("hostPath") or volume["spec"].get("local"))["path"])
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    print(f"  saved         {file} ({file.stat().st_size / 1024:.0f} KiB)")
    print("  look closer   kubectl get jobs,pods     (after `export KUBECONFIG=$(.venv/bin/danlu kubeconfig)`)")
    print("  stop          .venv/bin/danlu down")


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
        print("\nThe job goes on; `kubectl logs -f job/NAME` follows it again.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
