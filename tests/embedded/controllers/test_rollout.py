"""The arithmetic of a rolling update, and how replica sets are named and told apart."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.controllers.deployment import revisions, rollout
from danlu.meta.kind import Object


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Object:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"name": "d"}, "spec": {"replicas": replicas, "strategy": strategy}}


def replica_set(name: str, replicas: int, available: int | None = None, **annotations: str) -> Object:
    return {
        "metadata": {"name": name, "creationTimestamp": name, "annotations": annotations},
        "spec": {"replicas": replicas},
        "status": {"availableReplicas": replicas if available is None else available},
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [(4, "25%", "25%", (1, 1)), (10, "25%", "25%", (3, 2)), (1, "25%", "25%", (1, 0)), (3, 0, "10%", (0, 1))],
)
def test_surge_rounds_up_and_unavailable_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    one = deployment(replicas, surge, unavailable)
    assert (rollout.max_surge(one), rollout.max_unavailable(one)) == expected


def test_the_new_one_grows_into_the_surge_only() -> None:
    old, new = replica_set("1", 4), replica_set("2", 0)
    assert rollout.new_size(deployment(4), [old, new], new) == 1
    assert rollout.new_size(deployment(4), [replica_set("1", 5), new], new) == 0
    assert rollout.new_size(deployment(4), [replica_set("1", 0), new], new) == 4


def sizes(changes: list[tuple[Object, int]]) -> dict[str, int]:
    return {one["metadata"]["name"]: size for one, size in changes}


def test_old_ones_shrink_as_new_pods_become_available() -> None:
    wanted = deployment(4)
    assert sizes(rollout.old_sizes(wanted, [replica_set("1", 4)], replica_set("2", 1, 0))) == {"1": 3}
    assert sizes(rollout.old_sizes(wanted, [replica_set("1", 3)], replica_set("2", 2, 0))) == {}
    assert sizes(rollout.old_sizes(wanted, [replica_set("1", 3)], replica_set("2", 2, 2))) == {"1": 1}


def test_unhealthy_old_pods_go_first() -> None:
    changes = rollout.old_sizes(deployment(4), [replica_set("1", 4, 1)], replica_set("2", 1, 0))
    assert sizes(changes) == {"1": 3}  # one may go, and it is one that does not work


def test_scaling_during_a_rollout_is_shared() -> None:
    before: dict[str, Any] = {revisions.MAX_REPLICAS: "12"}
    sets = [replica_set("1", 8, **before), replica_set("2", 4, **before)]
    shared = sizes(rollout.proportional_sizes(deployment(20, 2, 0), sets))
    assert shared == {"1": 15, "2": 7}
    assert sum(shared.values()) == 22
    assert sizes(rollout.proportional_sizes(deployment(0, 2, 0), sets)) == {"1": 0, "2": 0}


def test_the_hash_depends_on_the_template_only() -> None:
    template: Object = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    labelled: Object = {
        **template,
        "metadata": {"labels": {"a": "b", revisions.HASH_LABEL: "x"}, "creationTimestamp": None},
    }
    assert revisions.template_hash(template, None) == revisions.template_hash(labelled, None)
    assert revisions.same_template(template, labelled)
    assert revisions.template_hash(template, None) != revisions.template_hash(template, 1)


def test_a_revision_that_comes_back_remembers_what_it_was() -> None:
    owner = {"metadata": {"annotations": {"team": "a", revisions.REVISION: "3"}}}
    wanted = revisions.annotations_for(owner, {"metadata": {"annotations": {revisions.REVISION: "1"}}}, 4)
    assert wanted == {"team": "a", revisions.REVISION: "4", revisions.REVISION_HISTORY: "1"}
    again = revisions.annotations_for(owner, {"metadata": {"annotations": wanted}}, 6)
    assert again[revisions.REVISION_HISTORY] == "1,4"
    assert revisions.annotations_for(owner, {"metadata": {"annotations": again}}, 6) == again
