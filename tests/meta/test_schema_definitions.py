"""The files of definitions, against the package they are made from and for what the server wants of them."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from danlu.meta.schema import definitions

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("kubernetes_validate") is None, reason="kubernetes-validate is missing")
def test_the_files_hold_what_the_package_has() -> None:
    done = subprocess.run([ROOT / "scripts/generate-schemas", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_references_lead_to_definitions() -> None:
    known = definitions.described_definitions()
    pending: list[object] = list(known.values())
    names = set()
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            names |= {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            pending.extend(value.values())
    assert len(names) > 500
    assert names <= known.keys()


def test_descriptions_lie_apart() -> None:
    name = "io.k8s.api.core.v1.PodSpec"
    assert "description" not in str(definitions.bare_definition(name))
    described = definitions.described_definitions()[name]
    assert described["description"] == "PodSpec is a description of a pod."
    assert described["properties"]["nodeName"]["description"].startswith("NodeName indicates")
    assert described["properties"]["containers"]["x-kubernetes-patch-merge-key"] == "name"
