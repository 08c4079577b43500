"""What keeps a real JupyterLab awake, and what becomes of one that nobody uses; hours are seconds here."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kinds.notebooks import ask, in_terminal, start_cell, token
from tests.running import ROOT, Danlu

from danlu.environments.catalogue import Catalogue
from danlu.meta.clock import parse_time

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

EXAMPLE = ROOT / "src/danlu/kinds/notebook/example.yaml"
IDLE_S, SUSPEND_S = 5, 4
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": "quiet",
        "labels": {"tensorstack.dev/resource-keeper": "true"},
        "annotations": {
            "tensorstack.dev/idle-after": f"{IDLE_S}s",
            "tensorstack.dev/suspend-after": f"{SUSPEND_S}s",
        },
    },
}


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    if not Catalogue(Path("/nonexistent")).environments()["torch"].is_built:
        pytest.skip("the environment `torch` is not built; `danlu images build torch` makes it")
    return make_danlu("--no-console", "--nodes", "big:cpu=16,memory=16Gi")


def get(danlu: Danlu) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(danlu.kubectl("get", "nb", "mnist", "-n", "quiet", "-o", "json"))
    return found


def condition(danlu: Danlu, type: str) -> dict[str, Any]:
    found = (get(danlu).get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == type), {})


def stays_awake(danlu: Danlu, why: str) -> None:
    """Looked at when, without activity, it would have been suspended."""
    begun = datetime.now(UTC)

    def looked() -> bool:
        probed = condition(danlu, "Idle").get("lastProbeTime")
        assert probed, f"{why} did not keep it awake: {get(danlu)['status']}"
        return parse_time(probed) > begun + timedelta(seconds=IDLE_S + SUSPEND_S + 1)

    danlu.wait("it to be looked at", looked)
    idle = condition(danlu, "Idle")
    assert (idle["status"], idle["reason"]) == ("False", "Active"), why


async def test_only_what_nobody_uses_is_suspended(danlu: Danlu) -> None:
    notebook = yaml.safe_load(EXAMPLE.read_text())
    del notebook["spec"]["template"]["spec"]["volumes"]
    container = notebook["spec"]["template"]["spec"]["containers"][0]
    del container["volumeMounts"]
    danlu.kubectl("create", "-f", "-", stdin=json.dumps(NAMESPACE))
    danlu.kubectl("create", "-n", "quiet", "-f", "-", stdin=json.dumps(notebook))
    danlu.wait("JupyterLab", lambda: condition(danlu, "Ready").get("status") == "True", timeout=120)
    found = get(danlu)
    secret = token(danlu, found)

    kernel = await start_cell(found, secret, "import time; time.sleep(1000)")
    stays_awake(danlu, "a kernel that runs and says nothing")

    ask(found, f"api/kernels/{kernel}", secret, "DELETE")
    terminal = await in_terminal(found, secret, "while sleep 0.5; do date; done")
    stays_awake(danlu, "a terminal with output")

    ask(found, f"api/terminals/{terminal}", secret, "DELETE")
    terminal = await in_terminal(found, secret, "python3 -c 'while True: pass'")
    stays_awake(danlu, "a script that computes in silence")

    ask(found, f"api/terminals/{terminal}", secret, "DELETE")
    danlu.wait("it to be suspended", lambda: get(danlu)["spec"].get("suspend"))
    danlu.wait("the pod to go", lambda: not danlu.kubectl("get", "pods", "-n", "quiet", "-o", "name"))
    danlu.wait("the reason", lambda: condition(danlu, "Suspended").get("reason") == "IdleTimeout")
    said = condition(danlu, "Suspended")["message"]
    assert said.startswith("Nobody used the Notebook for ")
    assert said in danlu.kubectl("events", "-n", "quiet", "--for", "notebook/mnist")

    # The command that it names brings it back, and it is given the whole time again.
    danlu.run("sh", "-c", said.split("`")[1])
    danlu.wait("it to be back", lambda: condition(danlu, "Ready").get("status") == "True", timeout=120)
    assert condition(danlu, "Suspended")["status"] == "False"
