"""Golden files of Notebook, TensorBoard and Project, as those of the job kinds; `--rewrite` writes them anew.

Input: `now`, `object`, and of what is observed any of `children` (a list), `pod`, `missing` (["Secret/name"]),
`activity` ({last, busy, ssh}), `settings`, `unbound` ({claim: {code, params}}), `namespace`.
"""

from __future__ import annotations

import copy
import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kinds import golden

from danlu.diagnose import Cause
from danlu.kinds._served.observation import Activity, Observed
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.project.quotaprofile import QUOTA_PROFILE
from danlu.kinds.references import Needed
from danlu.meta import wellknown
from danlu.meta.clock import parse_time
from danlu.meta.kind import Kind

FOLDER = Path(__file__).parent
KINDS = {
    kind.kind: kind for kind in vars(wellknown).values() if isinstance(kind, Kind) and not kind.group.endswith("io")
}
KINDS[QUOTA_PROFILE.kind] = QUOTA_PROFILE
INPUTS = [
    path for folder in ("notebook", "tensorboard", "project") for path in sorted((FOLDER / folder).glob("*.input.yaml"))
]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    given: dict[str, Any] = yaml.load(path.read_text(), Loader=golden._Loader)
    meta = given["object"]["metadata"]
    meta.setdefault("namespace", "default")
    meta.setdefault("uid", "11111111-2222-3333-4444-555555555555")
    before = copy.deepcopy(given)
    outcome = _reconcile(path.parent.name, given)
    assert given == before, "what is observed is shared: reconcile must not change it"
    assert golden.uncoded(outcome) == [], "say it by danlu.diagnose.say or stated"
    told = golden.outcome(outcome)
    for child in told.get("apply") or ():
        if child["kind"] == "ConfigMap":
            child["data"] = dict.fromkeys(child["data"], "(the program)")
    if getattr(outcome, "suspend", False):
        told["suspend"] = True
    expected = path.with_name(path.name.replace(".input.", ".output."))
    if request.config.getoption("--rewrite"):
        expected.write_text(golden.text(told))
    assert told == yaml.load(expected.read_text(), Loader=golden._Loader)


def _reconcile(folder: str, given: dict[str, Any]) -> Any:
    reconcile = importlib.import_module(f"danlu.kinds.{folder}.reconcile").reconcile
    now = parse_time(given["now"])
    settings = PlatformSettings(**(given.get("settings") or {}))
    children: dict[Kind, list[Any]] = {}
    for child in given.get("children") or ():
        children.setdefault(KINDS[child["kind"]], []).append(child)
    if folder == "project":
        return reconcile(given["object"], children, now, settings)
    observed = Observed(
        settings,
        children,
        given.get("pod"),
        [Needed(KINDS[kind], name) for kind, name in (word.split("/") for word in given.get("missing") or ())],
        _activity(given.get("activity"), now),
        "a-fresh-token",
        {name: Cause(**one) for name, one in (given.get("unbound") or {}).items()},
        given.get("namespace"),
    )
    return reconcile(given["object"], observed, now)


def _activity(told: dict[str, Any] | None, now: Any) -> Activity | None:
    if told is None:
        return None
    ssh = parse_time(told["ssh"]) if told.get("ssh") else None
    return Activity(parse_time(told["last"]), bool(told.get("busy")), now, ssh)
