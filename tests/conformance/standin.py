"""Nodes that exist in the API only, and a kubelet for them that runs nothing.

With them a bare control plane can be asked about scheduling and controllers, and so can one with real nodes: pods that
are `pinned` land on a stand-in and nowhere else, other pods never do.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tests.conformance.conftest import Kube

EXIT = "example.com/exit"  # annotation: the stand-in kubelet ends the pod's container with this code


class Nodes:
    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self.names: list[str] = []
        self.pods = 0

    def add(
        self,
        name: str,
        labels: dict[str, str] | None = None,
        taints: list[dict[str, str]] | None = None,
        **capacity: str,
    ) -> str:
        full = f"{self.kube.namespace}-{name}"
        size = {"cpu": "4", "memory": "8Gi", "pods": "20"} | capacity
        fence = {"key": "standin", "value": self.kube.namespace, "effect": "NoSchedule"}
        node = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": full, "labels": {
                "standin": self.kube.namespace, "kubernetes.io/hostname": full, "kubernetes.io/os": "linux",
                **(labels or {})}},
            "spec": {"taints": [fence, *(taints or [])]},
        }  # fmt: skip
        self.kube("create", "-f", "-", stdin=node)
        self.names.append(full)
        now = stamp()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "stand-in",
                 "lastHeartbeatTime": now, "lastTransitionTime": now}  # fmt: skip
        status = {"capacity": size, "allocatable": size, "conditions": [ready]}
        self.kube("patch", "node", full, "--subresource=status", "-p", json.dumps({"status": status}))
        self.kube.wait("the node to be open", lambda: self._is_open(full, 1 + len(taints or [])))
        return full

    def _is_open(self, name: str, taints: int) -> bool:
        """New nodes are tainted until their first condition has been seen."""
        return len(self.kube.get("node", name)["spec"].get("taints") or []) == taints

    def pinned(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The pod spec, for stand-ins only."""
        fence = {"key": "standin", "value": self.kube.namespace, "effect": "NoSchedule"}
        return {
            **spec,
            "nodeSelector": {"standin": self.kube.namespace, **spec.get("nodeSelector", {})},
            "tolerations": [fence, *spec.get("tolerations", [])],
        }

    def template(self, app: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
        container = {"name": "main", "image": "busybox"}
        return {
            "metadata": {"labels": {"app": app}, **metadata},
            "spec": self.pinned({"terminationGracePeriodSeconds": 0, "containers": [container], **(spec or {})}),
        }

    # -- kubelet

    def run(self, name: str) -> None:
        self.pods += 1
        now = stamp()
        state = {"name": "main", "image": "busybox", "imageID": "", "ready": True, "started": True, "restartCount": 0,
                 "state": {"running": {"startedAt": now}}, "lastState": {}}  # fmt: skip
        conditions = [
            {"type": type, "status": "True", "lastTransitionTime": now}
            for type in ("Initialized", "Ready", "ContainersReady")
        ]
        address = f"10.200.{self.pods // 250}.{self.pods % 250 + 1}"
        status = {"phase": "Running", "startTime": now, "podIP": address, "podIPs": [{"ip": address}],
                  "conditions": conditions, "containerStatuses": [state]}  # fmt: skip
        self._patch(name, status)

    def end(self, name: str, code: int = 0) -> None:
        now = stamp()
        over = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now, "finishedAt": now}
        state = {"name": "main", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0,
                 "state": {"terminated": over}, "lastState": {}}  # fmt: skip
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": now}
        phase = "Failed" if code else "Succeeded"
        self._patch(name, {"phase": phase, "conditions": [ready], "containerStatuses": [state]})

    def _patch(self, name: str, status: dict[str, Any]) -> None:
        body = json.dumps({"status": status})
        self.kube.run("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", body, check=False)

    @contextlib.contextmanager
    def kubelet(self) -> Iterator[None]:
        """While the block runs, bound pods start, end as their annotation says, and go when they are deleted."""
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                self.turn()
                stop.wait(0.1)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def turn(self) -> None:
        for pod in self.kube.get("pods")["items"]:
            meta, status = pod["metadata"], pod.get("status", {})
            if not pod["spec"].get("nodeName", "").startswith(self.kube.namespace):
                continue
            if meta.get("deletionTimestamp"):
                self.kube.run("delete", "pod", meta["name"], "--force", "--grace-period=0", "--wait=false", check=False)
            elif status.get("phase") == "Pending":
                code = (meta.get("annotations") or {}).get(EXIT)
                if code is None:
                    self.run(meta["name"])
                else:
                    self.end(meta["name"], int(code))

    def remove(self) -> None:
        """Nothing else would end the pods of a node without a kubelet."""
        if self.names:
            for kind in ("jobs", "deployments", "replicasets", "statefulsets", "daemonsets"):
                self.kube.run("delete", kind, "--all", "--wait=false", check=False)
            self.kube.run("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)
            self.kube.run("delete", "node", *self.names, "--wait=false", check=False)
            time.sleep(0.2)
            self.kube.run("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false", check=False)


def stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
