"""The fuzzer finds what it is for: with a mend taken out it says so within a few hundred requests."""

from __future__ import annotations

import pytest
from tests.attack.fuzz.campaign import Campaign
from tests.attack.fuzz.mutants import MUTANTS
from tests.attack.fuzz.oracle import Finding

MOST_REQUESTS = 1500
SECONDS = 240.0
# What a mutant is found as, and a seed that comes to it soon.
EXPECTED = {
    "namespaces-under-a-namespace": ({"leak", "reveal", "change"}, 98),
    "tokens-of-others": ({"leak", "reveal"}, 50),
    "deep-yaml": ({"crash"}, 35),
    "variables-that-double": ({"memory", "hang"}, 120),
    "replicas-without-end": ({"memory", "hang"}, 21),
}


@pytest.mark.e2e
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_put_back_is_found(name: str) -> None:
    kinds, seed = EXPECTED[name]
    told: list[str] = []

    def is_it(finding: Finding) -> bool:
        return True  # whatever is found first has to be it

    campaign = Campaign(seed, (name,), say=told.append, stop_at=is_it)
    campaign.run(SECONDS, MOST_REQUESTS)
    assert campaign.found, f"{campaign.requests} requests found nothing: {told}"
    assert campaign.found[0].finding.kind in kinds, told


def test_every_mutant_is_looked_for() -> None:
    assert set(EXPECTED) == set(MUTANTS)
