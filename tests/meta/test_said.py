"""Sentences that end with their code, where nothing else can carry it."""

from __future__ import annotations

from danlu.diagnose import render, stated
from danlu.diagnose.reading import recognise
from danlu.meta.said import tail_of, tailed

RULE = tailed(stated("DL-TOO-MANY-REPLICAS", most=4096))
SERVER = f'PyTorchJob.kubeflow.org "j" is invalid: spec: Invalid value: "object": {RULE}'


def test_a_rule_is_known_by_its_tail_whatever_the_server_puts_before_it() -> None:
    assert RULE == (
        "the replicas of all roles together must be less than or equal to 4096 [DL-TOO-MANY-REPLICAS most=4096]"
    )
    assert tail_of(SERVER) == ("DL-TOO-MANY-REPLICAS", {"most": "4096"})
    assert recognise(SERVER) == ("DL-TOO-MANY-REPLICAS", {"most": "4096"})
    assert render([], SERVER, "zh") == "所有角色的副本数合计不得超过 4096"


def test_what_has_no_tail_of_ours_stays() -> None:
    assert tailed("must be given") == "must be given"
    assert tail_of("the list [a b] is odd") is None
    assert recognise("odd [DL-OF-TOMORROW x=1]") is None
