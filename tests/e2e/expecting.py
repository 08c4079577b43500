"""Runs an example as its README tells it and holds what happens against the `expect.yaml` beside it.

job      what to look at, as kubectl names it         log        pattern in the master's log; named groups are numbers
manifest if it is not job.yaml                        least      of each such number
claim    where the script is put                      files      that lie in the claim afterwards
script   the program                                  scalars    curves that the job's TensorBoard shows
within   seconds, on a small machine                  aggregate  of status.aggregate, what must be so
fewer    variables for a run that is shorter than a user's
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request

import pytest
import yaml
from tests.running import ROOT, Danlu, fetch

from danlu.environments.catalogue import Catalogue

EXAMPLES = ROOT / "examples"
OWNER = {"pj": "tensorstack.dev/owner-name", "tj": "tensorstack.dev/owner-name", "pytorchjob": "job-name"}
FOLDER = "/mnt"  # of the claim, in the pod that writes into it as a notebook would


def need(environment: str) -> None:
    if not Catalogue(Path("/nonexistent")).environments()[environment].is_built:
        pytest.skip(f"the environment `{environment}` is not built; `danlu images build {environment}` makes it")


def need_mnist(danlu: Danlu) -> None:
    """Into the machine's cache, for the pods."""
    danlu.command("data", "get", "mnist", "--cache")


def get(danlu: Danlu, what: str) -> dict[str, Any]:
    return danlu.with_address(json.loads(danlu.kubectl("get", what, "-o", "json")))


def put(danlu: Danlu, name: str, text: str, claim: str = "mnist") -> None:
    """Into the claim, as a notebook would."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "notebook"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "c", "image": "busybox", "command": ["sleep", "inf"],
                 "volumeMounts": [{"name": "d", "mountPath": FOLDER}]},
            ],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/notebook", "--timeout=60s")
    danlu.kubectl("exec", "-i", "notebook", "--", "sh", "-c", f"cat > {FOLDER}/{name}", stdin=text)


def succeeded(danlu: Danlu, what: str, within: float) -> dict[str, Any]:
    """TensorStack's jobs have a phase, Kubeflow's only conditions."""

    def look() -> bool:
        status = get(danlu, what).get("status") or {}
        true = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
        if "Failed" in true:
            raise AssertionError(json.dumps(status["conditions"], indent=1))
        return status.get("phase") == "Succeeded" or "Succeeded" in true

    danlu.wait(f"{what} to succeed", look, timeout=within)
    status: dict[str, Any] = get(danlu, what)["status"]
    return status


def board_address(danlu: Danlu, board: str) -> str:
    """Of the TensorBoard's own service: the console, which `status.url` leads through, wants people to sign in."""
    url = get(danlu, f"tensorboard/{board}")["status"]["url"]
    services = json.loads(danlu.kubectl("get", "services", "-o", "json"))["items"]
    owners = [(one, one["metadata"].get("ownerReferences") or ()) for one in services]
    service = next(one for one, of in owners if any(owner["name"] == board for owner in of))
    return f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}{urlsplit(url).path}"


def shown(danlu: Danlu, what: str, wanted: set[str]) -> None:
    """The job's TensorBoard has these curves."""
    danlu.wait("its TensorBoard", lambda: get(danlu, what)["status"]["tensorboard"]["ready"], timeout=180)
    address = board_address(danlu, get(danlu, what)["status"]["tensorboard"]["name"])

    def look() -> bool:
        answer = json.loads(fetch(Request(f"{address}data/plugin/scalars/tags")))
        return wanted <= {tag for tags in answer.values() for tag in tags}

    danlu.wait(f"{wanted} in {address}", look)


def shortened(path: Path, **few: str) -> str:
    """An example's program with other defaults of its own variables: shortened(path, PICTURES="2000")."""
    text = path.read_text()
    for name, value in few.items():
        text = re.sub(rf'(get\("{name}", )"\d+"', rf'\g<1>"{value}"', text)
    # With a thread for each core it would compute three times as long beside others: threads that wait for each other
    # turn in circles, and those they wait for are not on a core.
    return text.replace("\nimport torch\n", "\nimport torch\ntorch.set_num_threads(1)\n", 1)


class Example:
    """One `expect.yaml`, or another file of that form beside it."""

    def __init__(self, name: str, expect: str = "expect.yaml") -> None:
        self.folder = EXAMPLES / name
        self.expect: dict[str, Any] = yaml.safe_load((self.folder / expect).read_text())

    @property
    def job(self) -> str:
        return str(self.expect["job"])

    def submit(self, danlu: Danlu) -> None:
        danlu.kubectl("apply", "-f", str(self.folder / "pvc.yaml"))
        script = self.expect["script"]
        put(danlu, script, (self.folder / script).read_text(), self.expect["claim"])
        manifest = yaml.safe_load((self.folder / self.expect.get("manifest", "job.yaml")).read_text())
        fewer = [{"name": name, "value": value} for name, value in self.expect["fewer"].items()]
        spec = manifest["spec"]
        for replica in spec.get("replicaSpecs") or spec["pytorchReplicaSpecs"].values():
            for container in replica["template"]["spec"]["containers"]:
                container["env"] = fewer + [one for one in container.get("env") or () if one not in fewer]
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def master(self, danlu: Danlu) -> str:
        named = f"{OWNER[self.job.partition('/')[0]]}={self.job.partition('/')[2]},job-role=master"
        return danlu.kubectl("get", "pods", "-l", named, "-o", "jsonpath={.items[0].metadata.name}")

    def ends_as_expected(self, danlu: Danlu) -> str:
        """The master's log."""
        succeeded(danlu, self.job, self.expect["within"])
        said = danlu.kubectl("logs", self.master(danlu))
        found = re.search(self.expect["log"], said)
        assert found is not None, said
        for name, least in (self.expect.get("least") or {}).items():
            assert float(found[name]) >= least, said
        wanted = self.expect.get("aggregate") or {}
        danlu.wait(
            f"{wanted}",  # those that are ended take their leave
            lambda: wanted.items() <= get(danlu, self.job)["status"].get("aggregate", {}).items(),
        )
        for file in self.expect.get("files") or ():
            danlu.kubectl("exec", "notebook", "--", "ls", f"{FOLDER}/{file}")
        if self.expect.get("scalars"):
            shown(danlu, self.job, set(self.expect["scalars"]))
        return said
