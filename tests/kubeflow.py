"""Kubeflow's own manifests of its training-operator, from the Go module that they are published in."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path

import pytest

MODULE = "github.com/kubeflow/training-operator"
VERSIONS = ("v1.8.1", "v1.9.3")  # the last of each line
NAMESPACE = "kubeflow"
WEBHOOKS = "validator.training-operator.kubeflow.org"


@functools.cache
def manifests(version: str) -> Path:
    """The folder for `kubectl apply -k`."""
    if shutil.which("go") is None:
        pytest.skip("Go is not on PATH; it fetches the module with Kubeflow's manifests")
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{version}"],
        capture_output=True, text=True, timeout=120, cwd="/", check=False,
    )  # fmt: skip
    try:
        folder = json.loads(done.stdout)["Dir"]
    except (ValueError, KeyError):
        pytest.skip(f"the Go module {MODULE}@{version} cannot be fetched: {done.stderr.strip() or done.stdout.strip()}")
    return Path(folder) / "manifests/overlays/standalone"
