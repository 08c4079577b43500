"""`kubectl apply -k`, Helm and `danlu install` put the same objects on a cluster."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operator.install.conftest import programs
from tests.running import ROOT

from danlu.meta.kind import Object
from danlu.operator.install.manifests import parts
from danlu.operator.install.options import ADDONS, InstallOptions, kinds_without

KEPT = {"helm.sh/resource-policy": "keep"}
Key = tuple[str, str, str]


def _run(path: str, *words: str | Path) -> str:
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _by_name(objects: list[Any]) -> dict[Key, Object]:
    return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in objects if one}


def _installed(**options: Any) -> dict[Key, Object]:
    found = parts(InstallOptions(**options))
    return _by_name([json.loads(json.dumps(part.object)) for part in found])  # without tuples, as on the wire


def _kustomized(folder: str) -> dict[Key, Object]:
    text = _run(programs("kubernetes"), "kubectl", "kustomize", ROOT / "deploy" / folder)
    return _by_name(list(yaml.load_all(text, yaml.CSafeLoader)))


def _chart(*settings: str) -> dict[Key, Object]:
    """What Helm would apply; the namespace is Helm's own business, and that definitions are kept is said to Helm."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    text = _run(programs("helm"), "helm", "template", "danlu", ROOT / "deploy/chart", "-n", "danlu-system", *chosen)
    found = _by_name(list(yaml.load_all(text, yaml.CSafeLoader)))
    for one in found.values():
        if one["metadata"].get("annotations") == KEPT:
            del one["metadata"]["annotations"]
    return found


def _without_namespace(objects: dict[Key, Object]) -> dict[Key, Object]:
    return {key: one for key, one in objects.items() if key[0] != "Namespace"}


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        ("default", {}),
        ("gpu", {"addons": ADDONS}),
        ("without-kubeflow", {"kinds": kinds_without(["kubeflow"])}),
        ("json-logs", {"log_format": "json"}),
    ],
)
def test_kustomize(folder: str, options: dict[str, Any]) -> None:
    assert _kustomized(folder) == _installed(**options)


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ([], {}),
        (
            ["addons.nvidia=true", "addons.dcgm=true", "kinds.Notebook=false"],
            {"addons": ADDONS, "kinds": kinds_without(["notebooks"])},
        ),
        (
            ["console.enabled=false", "networkPolicies=false", "kinds.PyTorchJob=false", "kinds.TFJob=false"],
            {"console": False, "network_policies": False, "kinds": kinds_without(["kubeflow"])},
        ),
        (
            [
                *("image.name=registry.example:5000/danlu:1", "operator.replicas=3", "operator.gang=volcano"),
                *("console.url=https://danlu.example", "console.arguments={--session-hours=1,--name=a b}"),
                *("nodeSelector.pool=system", "logFormat=json"),
            ],
            {
                "image": "registry.example:5000/danlu:1",
                "replicas": 3,
                "gang": "volcano",
                "log_format": "json",
                "console_url": "https://danlu.example",
                "console_arguments": ("--session-hours=1", "--name=a b"),
                "node_selector": {"pool": "system"},
            },
        ),
    ],
)
def test_helm(settings: list[str], options: dict[str, Any]) -> None:
    assert _chart(*settings) == _without_namespace(_installed(**options))


def test_a_misspelt_value_is_refused() -> None:
    path = programs("helm")
    command = ["helm", "template", "danlu", str(ROOT / "deploy/chart"), "--set", "operator.gangs=volcano"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=60)
    assert done.returncode != 0
    assert "gangs" in done.stderr
