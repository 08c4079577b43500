"""A service of hundreds of ports on a machine that gives few descriptors: services get half, the API the rest."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable

import pytest
from tests.attack.test_addresses import pod
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
DESCRIPTORS, PORTS = 400, 600
SLEEPER = "import time; time.sleep(3600)"


def test_services_leave_descriptors_to_the_api(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--no-console", start=False)
    up = f"{shlex.quote(sys.executable)} -m danlu up --detach --port 0 --no-console --data-dir {danlu.data}"
    danlu.run("sh", "-c", f"ulimit -n {DESCRIPTORS}; exec {up}")
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod("backend", "default", SLEEPER)))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/backend", "--timeout=60s")
    ports = [{"name": f"p{number}", "port": 20000 + number, "targetPort": 9} for number in range(PORTS)]
    meta = {"name": "greedy", "namespace": "default"}
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": meta,
        "spec": {"selector": {"app": "backend"}, "ports": ports},
    }  # fmt: skip
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(service))
    words = "services have all sockets they may have"
    danlu.wait("the event", lambda: words in danlu.kubectl("get", "events", check=False))
    open_ones = len(descriptors(danlu))
    assert DESCRIPTORS // 2 < open_ones < DESCRIPTORS
    # There is room for what a cluster is for: a new pod, its log, many clients at once.
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod("other", "default", "print('runs')", restartPolicy="Never")))
    danlu.wait("the pod to run", lambda: "runs" in danlu.kubectl("logs", "other", check=False))
    danlu.kubectl("delete", "service", "greedy")
    danlu.wait("them to be given back", lambda: len(descriptors(danlu)) < DESCRIPTORS // 2)
    danlu.down()


def descriptors(danlu: Danlu) -> list[str]:
    return os.listdir(f"/proc/{danlu.pid()}/fd")
