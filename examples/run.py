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


class Screen:
    """Log lines scroll; below them one line says how far it is."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._bar = ""
        self._terminal = sys.stdout.isatty()

    def line(self, text: str) -> None:
        self._clear()
        print(text, flush=True)
        found = PROGRESS.search(text)
        if found:
            self.progress(int(found[1]), int(found[2]))
        elif self._bar and self._terminal:
            sys.stdout.write(self._bar)
            sys.stdout.flush()

    def progress(self, done: int, of: int) -> None:
        passed = time.monotonic() - self._begun
        width = 30
        filled = width * done // max(of, 1)
        left = passed / done * (of - done) if done else 0
        self._bar = f"[{'█' * filled}{'·' * (width - filled)}] epoch {done} of {of}, {passed:.0f} s, about {left:.0f} s left"
        if self._terminal:
            sys.stdout.write(self._bar[: shutil.get_terminal_size().columns - 1])
            sys.stdout.flush()

    def _clear(self) -> None:
        if self._bar and self._terminal:
            sys.stdout.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")

    def finish(self) -> None:
        self._clear()
        self._bar = ""


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


async def wait_for_pod(client: Client, job: str, screen: Screen) -> Object:
    """The job's newest pod once it runs or has ended; says why while it waits."""
    said = ""
    while True:
        pods = (await client.list(POD, NAMESPACE, labels=f"batch.kubernetes.io/job-name={job}")).items
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        if pods and pods[-1]["status"].get("phase") != "Pending":
            return pods[-1]
        if pods:
            reason = await why(client, pods[-1])
            if reason and reason != said:
                said = reason
                screen.line(f"waiting: {reason}")
        await asyncio.sleep(0.1)


async def why(client: Client, pod: Object) -> str:
    events = (await client.list(EVENT, NAMESPACE, fields=f"involvedObject.uid={pod['metadata']['uid']}")).items
    bad = [event for event in events if event.get("type") == "Warning"]
    return bad[-1]["message"] if bad else ""


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
    begun = time.monotonic()
    objects = [obj for obj in yaml.safe_load_all(manifest.read_text()) if obj]
    job = next(obj for obj in objects if obj["kind"] == "Job")
    name = job["metadata"]["name"]
    program = {"metadata": {"name": f"{name}-code"}, "data": {code: (manifest.parent / code).read_text()}}
    try:
        await replace(client, CONFIG_MAP, program)
        for obj in objects:
            await replace(client, KINDS[obj["kind"]], obj)
            screen.line(f"created {obj['kind']} {obj['metadata']['name']}")
        pod = await wait_for_pod(client, name, screen)
        async for line in log_lines(client, pod["metadata"]["name"]):
            screen.line(line)
        screen.finish()
        while not (finished := _ending(await client.get(JOB, name, NAMESPACE))):
            await asyncio.sleep(0.1)
        print(f"Job {name}: {finished} after {time.monotonic() - begun:.1f} s")
        await _where(client, objects)
        return 0 if finished == "Complete" else 1
    finally:
        await client.close()


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
                    print(f"Saved: {file} ({file.stat().st_size / 1024:.0f} KiB)")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run an example on the Danlu of this account.")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--code", required=True, help="the program beside the manifest that the job runs")
    parser.add_argument("--kubeconfig", type=Path, default=default_home() / "kubeconfig")
    arguments = parser.parse_args()
    try:
        return asyncio.run(run(arguments.manifest, arguments.code, arguments.kubeconfig))
    except ApiError as error:
        print(f"danlu: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
