"""Every golden input of a job kind gives its output. `pytest tests/kinds/test_golden.py --rewrite` writes them anew."""

from __future__ import annotations

import copy
import importlib
from pathlib import Path

import pytest
import yaml
from tests.kinds import golden


@pytest.mark.parametrize("path", golden.inputs(), ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    reconcile = importlib.import_module(f"danlu.kinds.{path.parent.name}.reconcile").reconcile
    given = golden.read(path)
    before = copy.deepcopy(given)
    decided = reconcile(given["job"], golden.observed(given), golden.moment(given))
    assert given == before, "what is observed is shared: reconcile must not change it"
    assert golden.uncoded(decided) == [], "say it by danlu.diagnose.say or stated"
    told = golden.outcome(decided)
    expected = path.with_name(path.name.replace(".input.", ".output."))
    if request.config.getoption("--rewrite"):
        expected.write_text(golden.text(told))
    assert told == yaml.load(expected.read_text(), Loader=golden._Loader)
