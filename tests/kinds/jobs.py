"""Small jobs of real processes, and words to ask about them with."""

from __future__ import annotations

import json
from typing import Any

from tests.running import Danlu

FIELDS = {"PyTorchJob": ("pytorchReplicaSpecs", "pytorch"), "TFJob": ("tfReplicaSpecs", "tensorflow")}


def role(kind: str, script: str, replicas: int = 1, restart: str = "", **pod: Any) -> dict[str, Any]:
    container = {"name": FIELDS[kind][1], "image": "python", "command": ["python3", "-c", script]}
    container |= pod.pop("container", {})
    found: dict[str, Any] = {
        "replicas": replicas,
        "template": {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **pod}},
    }
    if restart:
        found["restartPolicy"] = restart
    return found


def job(kind: str, name: str, roles: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {FIELDS[kind][0]: roles, **spec},
    }


class Jobs:
    def __init__(self, danlu: Danlu) -> None:
        self.danlu = danlu

    def submit(self, obj: dict[str, Any]) -> str:
        """`pytorchjob/NAME`, for further questions."""
        self.danlu.kubectl("create", "-f", "-", stdin=json.dumps(obj))
        return f"{obj['kind'].lower()}/{obj['metadata']['name']}"

    def get(self, what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.danlu.kubectl("get", what, "-o", "json"))
        return found

    def conditions(self, what: str) -> dict[str, dict[str, Any]]:
        return {one["type"]: one for one in (self.get(what).get("status") or {}).get("conditions") or ()}

    def state(self, what: str) -> str:
        """As the STATE column shows it."""
        words = self.danlu.kubectl("get", what, "--no-headers").split()
        return words[1] if len(words) > 2 else ""

    def until(self, what: str, state: str) -> dict[str, Any]:
        ends = ("Succeeded", "Failed")

        def look() -> bool:
            now = self.state(what)
            if now in ends and now != state:
                raise AssertionError(f"{what} is {now}, not {state}: {json.dumps(self.conditions(what), indent=1)}")
            return now == state

        self.danlu.wait(f"{what} to be {state}", look)
        return self.conditions(what).get(state) or {}

    def until_condition(self, what: str, type: str) -> dict[str, Any]:
        """As it was seen: a second look may find that it has passed."""
        found = self.danlu.wait(f"{what} to be {type}", lambda: self.conditions(what).get(type))
        assert isinstance(found, dict)
        return found

    def pods(self, name: str) -> dict[str, dict[str, Any]]:
        text = self.danlu.kubectl("get", "pods", "-l", f"training.kubeflow.org/job-name={name}", "-o", "json")
        return {pod["metadata"]["name"]: pod for pod in json.loads(text)["items"]}

    def services(self, name: str) -> dict[str, dict[str, Any]]:
        text = self.danlu.kubectl("get", "services", "-l", f"job-name={name}", "-o", "json")
        return {one["metadata"]["name"]: one for one in json.loads(text)["items"]}

    def events(self, what: str) -> list[tuple[str, str, str]]:
        kind, name = what.split("/")
        text = self.danlu.kubectl("get", "events", "-o", "json", "--field-selector", f"involvedObject.name={name}")
        found = [one for one in json.loads(text)["items"] if one["involvedObject"]["kind"].lower() == kind]
        return [(one["type"], one["reason"], one["message"]) for one in found]
