"""The test cluster in place of `danlu up`, for tests that are written for it: the same kubectl, the same manifests."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from danlu.operator.install.options import NAMESPACE
from tests.cluster.place import Place
from tests.running import TIMEOUT, Danlu

VARIABLE = "DANLU_TEST_CLUSTER"  # the folder of a cluster that runs; scripts/test-cluster sets it


def place() -> Place | None:
    """The cluster that these tests are to use, if there is one."""
    folder = os.environ.get(VARIABLE)
    return Place(Path(folder)) if folder else None


class OnCluster(Danlu):
    """A Danlu that was installed on a cluster. It is started and ended by whoever owns the cluster."""

    pause_s = 0.5  # a whole cluster shares the machine with the tests: kubectl's looking would slow what is looked at

    def __init__(self, place: Place, folder: Path) -> None:
        super().__init__(folder)
        self.place = place
        self.data = place.folder
        self.kubeconfig = place.kubeconfig
        self.namespace = ""  # of every command; none is named when it is empty

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`danlu WORDS…` for what concerns this machine and not a server: data sets."""
        if words[0] == "down":
            return subprocess.CompletedProcess(words, 0, "", "")
        return self.run(sys.executable, "-m", "danlu", *words, check=check, timeout=5 * TIMEOUT)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True, timeout: float = TIMEOUT) -> str:
        where = ("-n", self.namespace) if self.namespace else ()
        return super().kubectl(*where, *words, stdin=stdin, check=check, timeout=timeout)

    def wait(self, what: str, look: Callable[[], object], timeout: float = 3 * TIMEOUT) -> object:
        return super().wait(what, look, timeout)

    def with_address(self, obj: dict[str, Any]) -> dict[str, Any]:
        """Its Service's address before the path: the tests' network is the node's, where every Service is reached."""
        status = obj.get("status") or {}
        if not str(status.get("url", "")).startswith("/"):
            return obj
        meta = obj["metadata"]
        found = json.loads(self.kubectl("get", "services", "-n", meta["namespace"], "-o", "json"))["items"]
        for service in found:
            owners = [one["uid"] for one in service["metadata"].get("ownerReferences") or ()]
            if meta["uid"] in owners and "-http-" in service["metadata"]["name"]:
                spec = service["spec"]
                url = f"http://{spec['clusterIP']}:{spec['ports'][0]['port']}{status['url']}"
                return {**obj, "status": {**status, "url": url}}
        return obj

    @contextlib.contextmanager
    def console(self) -> Iterator[str]:
        """Reached as `danlu install` says at its end; the ports are free, for the network is the cluster's own."""
        command = ["kubectl", "port-forward", "-n", NAMESPACE, "service/danlu-console", "8080:80", "8081:8081"]
        forwarding = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            assert forwarding.stdout is not None
            said = [forwarding.stdout.readline(), forwarding.stdout.readline()]
            assert all("Forwarding from" in line for line in said), said
            yield "http://127.0.0.1:8080"
        finally:
            forwarding.kill()
            forwarding.communicate()

    def token(self, role: str) -> str:
        """What somebody with this role in all namespaces signs in with."""
        name = f"person-{secrets.token_hex(3)}"
        self.kubectl("create", "serviceaccount", name, "-n", "default")
        self.kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--serviceaccount=default:{name}")
        return self.kubectl("create", "token", name, "-n", "default", "--duration=4h").strip()

    def up(self) -> str:
        return ""
