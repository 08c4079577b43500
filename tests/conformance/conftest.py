"""Cases that hold on any Kubernetes, driven by kubectl. Without --kubeconfig or --real they run on an embedded one.

`kube` has a namespace of its own for each test. Cases marked `node` need a node that runs pods; `--real` starts a bare
control plane and skips them. Cases about scheduling and controllers need none: they use the made-up nodes of
`tests/conformance/standin.py`, whose kubelet is the case itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.servers import RealControlPlane
from tests.running import ROOT, Danlu, until

if TYPE_CHECKING:
    from tests.conformance.standin import Nodes

TIMEOUT = 60.0


class Kube:
    """kubectl in one namespace."""

    def __init__(self, kubeconfig: str, home: Path, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace
        self.environment = {**os.environ, "KUBECONFIG": kubeconfig, "HOME": str(home)}

    def run(self, *words: str, stdin: Any = None, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
        text = stdin if isinstance(stdin, str) else json.dumps(stdin) if stdin is not None else ""
        done = subprocess.run(
            ["kubectl", "-n", self.namespace, *words], input=text, capture_output=True, text=True,
            env={**self.environment, **env}, timeout=TIMEOUT,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(
                f"kubectl {' '.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
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

    def http(self, path: str) -> tuple[int, Any]:
        """One plain GET through `kubectl proxy`: the status and the JSON that kubectl itself would digest."""
        with self.started("proxy", "--port=0") as proxy:
            assert proxy.stdout is not None
            base = proxy.stdout.readline().split()[-1]
            try:
                with urllib.request.urlopen(f"http://{base}{path}", timeout=TIMEOUT) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)

    @contextlib.contextmanager
    def started(self, *words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """kubectl in the background, ended with the block."""
        process = subprocess.Popen(
            ["kubectl", "-n", self.namespace, *words], env=self.environment, text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options},
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def apply(self, *objects: dict[str, Any]) -> str:
        return self("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": list(objects)})

    def until(self, what: str, path: str, *wanted: str, timeout: float = TIMEOUT) -> str:
        """Waits until the jsonpath gives one of the wanted values."""

        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self.run("get", what, "-o", f"jsonpath={path}", check=False).stdout
            return seen in wanted

        try:
            self.wait(f"{what} to have {path} in {wanted}", look, timeout)
        except AssertionError as error:
            state = self.run("get", what, "-o", "jsonpath={.status}", check=False).stdout
            raise AssertionError(f"{error}; saw {seen!r}\nstatus: {state}") from None
        return seen

    def finished(self, pod: str) -> Any:
        """The pod when it has ended."""
        self.until(f"pod/{pod}", "{.status.phase}", "Succeeded", "Failed")
        return self.get("pod", pod)

    def running(self, *pods: str) -> None:
        for name in pods:
            self.until(f"pod/{name}", '{.status.conditions[?(@.type=="Ready")].status}', "True")

    def output(self, pod: str) -> str:
        """What a pod that must succeed printed."""
        ended = self.finished(pod)
        said = self("logs", pod)
        assert ended["status"]["phase"] == "Succeeded", f"{said}\n{json.dumps(ended['status'], indent=1)}"
        return said

    def gone(self, what: str) -> None:
        self.wait(f"{what} to be gone", lambda: self.run("get", what, check=False).returncode != 0)

    def wait(self, what: str, look: Callable[[], Any], timeout: float = TIMEOUT) -> Any:
        return until(what, look, timeout)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--real"):
        for item in items:
            if item.get_closest_marker("node"):
                item.add_marker(pytest.mark.skip(reason="a bare control plane has no node that runs pods"))


@pytest.fixture(scope="session")
def kubeconfig(
    request: pytest.FixtureRequest, need_kubectl: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    given = request.config.getoption("--kubeconfig")
    if given:
        yield str(Path(given).absolute())
        return
    if request.config.getoption("--real"):
        built = subprocess.run(
            [ROOT / "scripts/real-kubernetes", "control-plane"], check=True, capture_output=True, text=True
        )
        path = os.pathsep.join([*built.stdout.split(), os.environ["PATH"]])
        real = RealControlPlane(tmp_path_factory.mktemp("real"), path)
        real.start()
        yield str(real.kubeconfig)
        real.stop()
        return
    danlu = Danlu(tmp_path_factory.mktemp("conformance"))
    danlu.up()
    yield str(danlu.kubeconfig)
    danlu.command("down", check=False)


@pytest.fixture(scope="session")
def leaving(kubeconfig: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Deletes of namespaces that nobody waits for before the end."""
    begun: list[subprocess.Popen[bytes]] = []
    yield begun
    for process in begun:
        process.wait(TIMEOUT)


@pytest.fixture
def kube(
    kubeconfig: str, leaving: list[subprocess.Popen[bytes]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kube]:
    kube = Kube(kubeconfig, tmp_path_factory.getbasetemp(), f"case-{secrets.token_hex(4)}")
    kube("create", "namespace", kube.namespace)
    # The default service account comes a moment after the namespace; pods are refused before.
    kube.wait(
        "the default service account", lambda: kube.run("get", "serviceaccount", "default", check=False).returncode == 0
    )
    yield kube
    command = ["kubectl", "delete", "namespace", kube.namespace, "--wait=false"]
    nothing = subprocess.DEVNULL
    leaving.append(subprocess.Popen(command, env=kube.environment, stdin=nothing, stdout=nothing, stderr=nothing))


@pytest.fixture
def nodes(kube: Kube) -> Iterator[Nodes]:
    from tests.conformance.standin import Nodes

    nodes = Nodes(kube)
    yield nodes
    nodes.remove()


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
