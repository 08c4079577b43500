"""Cases that hold on any Kubernetes, driven by kubectl. Without --kubeconfig they run on an embedded one.

`kube` has a namespace of its own for each test. Cases marked `node` need a node that runs pods; on a bare control plane
they are left out with `-m "not node"`.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import Danlu

TIMEOUT = 60.0


class Kube:
    """kubectl in one namespace."""

    def __init__(self, kubeconfig: str, home: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace

    def run(self, *words: str, stdin: Any = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin) if stdin is not None else ""
        environment = {**os.environ, "KUBECONFIG": self.kubeconfig, "HOME": str(self.home)}
        done = subprocess.run(
            ["kubectl", "-n", self.namespace, *words], input=text, capture_output=True, text=True, env=environment, timeout=TIMEOUT
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def __call__(self, *words: str, stdin: Any = None) -> str:
        return self.run(*words, stdin=stdin).stdout

    def fails(self, *words: str, stdin: Any = None) -> str:
        done = self.run(*words, stdin=stdin, check=False)
        assert done.returncode != 0, f"kubectl {' '.join(words)} worked, and must not: {done.stdout}"
        return done.stderr

    def get(self, *words: str) -> Any:
        return json.loads(self("get", *words, "-o", "json"))

    def value(self, what: str, path: str) -> str:
        """One field by jsonpath."""
        return self("get", what, "-o", f"jsonpath={path}")

    def apply(self, *objects: dict[str, Any]) -> str:
        return self("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(objects)})

    def wait(self, what: str, look: Callable[[], Any], timeout: float = TIMEOUT) -> Any:
        ends = time.monotonic() + timeout
        answer = None
        while time.monotonic() < ends:
            answer = look()
            if answer:
                return answer
            time.sleep(0.1)
        raise AssertionError(f"waited {timeout:.0f} s in vain for {what}; last answer: {answer!r}")


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest, need_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = request.config.getoption("--kubeconfig")
    if given:
        yield str(Path(given).absolute())
        return
    danlu = Danlu(tmp_path_factory.mktemp("conformance"))
    danlu.up()
    yield str(danlu.kubeconfig)
    danlu.command("down", check=False)


@pytest.fixture
def kube(kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    kube = Kube(kubeconfig, tmp_path_factory.getbasetemp(), f"case-{secrets.token_hex(4)}")
    kube("create", "namespace", kube.namespace)
    # The default service account comes a moment after the namespace; pods are refused before.
    kube.wait("the default service account", lambda: kube.run("get", "serviceaccount", "default", check=False).returncode == 0)
    yield kube
    kube.run("delete", "namespace", kube.namespace, "--wait=false", check=False)


@pytest.fixture
def pod() -> Callable[..., dict[str, Any]]:
    """A small pod: pod("name", "shell script", container fields…)."""

    def make(name: str, script: str = "sleep 3600", **fields: Any) -> dict[str, Any]:
        spec = fields.pop("spec", {})
        container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **fields}
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **spec},
        }  # fmt: skip

    return make
