"""What a job says on a real cluster when something that it needs is not there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.conftest import Space
from tests.kinds.jobs import job, role

pytestmark = pytest.mark.timeout(240)
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"container": {"image": "example.invalid/no/such:image"}}, "example.invalid/no/such:image"),
    "claim": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nothing"}}]}, '"nothing" not found'),
    "secret": (
        {"container": {"envFrom": [{"secretRef": {"name": "nothing"}}]}},
        'secret "nothing" not found',
    ),
}


def test_the_missing_thing_is_named(space: Space) -> None:
    whats = {}
    for name, (pod, _) in CASES.items():
        roles: dict[str, Any] = {"Master": role("PyTorchJob", "print('never')", **pod)}
        whats[name] = space.submit(job("PyTorchJob", name, roles))
    for name, (_, words) in CASES.items():
        what = whats[name]

        def told(what: str = what, words: str = words) -> bool:
            return words in str((space.conditions(what).get("Blocked") or {}).get("message"))

        space.danlu.wait(f"{what} to say {words}", told)
        assert space.state(what) not in ("Succeeded", "Failed"), "it goes on when the missing thing comes"
