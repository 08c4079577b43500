"""Kubernetes' own conformance suite on `danlu up`: the specs of kubernetes-suite.yaml that are said to pass do.

`make test` runs the quick ones; `scripts/conformance --suite` runs all (KUBERNETES_SUITE=whole).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e import kubernetes_suite
from tests.e2e.kubernetes_suite import SIGS, Spec
from tests.running import Danlu

QUICK_S = 2.0


def test_nine_of_ten_specs_that_pass_on_a_real_control_plane_pass_here() -> None:
    specs = [
        spec for spec in kubernetes_suite.load() if spec.real and spec.name.startswith(tuple(f"[{s}]" for s in SIGS))
    ]
    assert len(specs) >= 80
    assert sum(spec.danlu for spec in specs) >= 0.9 * len(specs)
    unexplained = [spec.name for spec in kubernetes_suite.load() if spec.real and not spec.danlu and not spec.why]
    assert unexplained == []


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(3600)  # e2e.test may have to be built first; the whole list takes as long as its slowest spec
def test_specs_pass_that_are_said_to_pass(make_danlu: Callable[..., Danlu]) -> None:
    binary = kubernetes_suite.program()
    if not binary:
        pytest.skip("e2e.test is not built, and there is no Go to build it (scripts/real-kubernetes e2e)")
    danlu = make_danlu(start=False)
    danlu.data.mkdir(mode=0o700)
    shutil.copy(Path(__file__).with_name("kubernetes-suite-images.yaml"), danlu.data / "images.yaml")
    danlu.up()
    whole = os.environ.get("KUBERNETES_SUITE") == "whole"
    wanted: list[Spec] = [s for s in kubernetes_suite.load() if s.danlu and (whole or s.seconds <= QUICK_S)]
    results = kubernetes_suite.run(binary, danlu.kubeconfig, wanted)
    failed = {
        spec.name: results[spec.name].message if spec.name in results else "it was not run"
        for spec in wanted
        if spec.name not in results or not results[spec.name].passed
    }
    assert failed == {}
