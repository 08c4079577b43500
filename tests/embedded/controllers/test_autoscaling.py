"""What use asks for, and how fast the number of replicas follows: on numbers, with a clock of the test's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from danlu.embedded.builtin.autoscaling import horizontalpodautoscaler, horizontalpodautoscaler_v1
from danlu.embedded.controllers.autoscaling import pace, podusage
from danlu.embedded.controllers.autoscaling.podusage import Tolerance, Unmeasured, UsageTarget
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LONG_AGO = rfc3339(NOW - timedelta(hours=1))
HALF = UsageTarget(percent=50)


def pod(name: str, phase: str = "Running", ready: str = "True", since: str = LONG_AGO, **more: Any) -> Object:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
    status = {"phase": phase, "startTime": since, "conditions": [condition]}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name, **more}, "spec": {"containers": [container]}, "status": status}


def metrics(name: str, *milli: int) -> Object:
    parts = [{"name": f"c{index}" if index else "main", "usage": {"cpu": f"{one}m"}} for index, one in enumerate(milli)]
    stamp = rfc3339(NOW)
    return {"metadata": {"name": name}, "timestamp": stamp, "window": "15s", "containers": parts}


def wish(pods: list[Object], used: dict[str, int], target: UsageTarget = HALF, current: int = 0) -> int:
    known = podusage.samples([metrics(name, milli) for name, milli in used.items()], "cpu")
    measured = podusage.Measured(pods, known, "cpu", podusage.requests(pods, "cpu"))
    return podusage.wish(measured, target, current or len(pods), Tolerance(), NOW).replicas


def named(count: int) -> list[Object]:
    return [pod(letter) for letter in "abcdefgh"[:count]]


class TestUse:
    @pytest.mark.parametrize(
        ("used", "expected"),
        [
            ({"a": 500, "b": 500}, 2),
            ({"a": 540, "b": 540}, 2),  # within a tenth
            ({"a": 600, "b": 600}, 3),
            ({"a": 1000, "b": 1000}, 4),
            ({"a": 100, "b": 100}, 1),
        ],
    )
    def test_all_are_known(self, used: dict[str, int], expected: int) -> None:
        assert wish(named(2), used) == expected

    def test_a_mean_of_thousandths(self) -> None:
        assert wish(named(2), {"a": 300, "b": 500}, UsageTarget(milli=100)) == 8

    def test_what_is_not_known_is_idle_where_more_are_wanted(self) -> None:
        assert wish(named(4), {"a": 1000, "b": 1000, "c": 1000}) == 6  # not 8
        assert wish(named(2), {"a": 700}) == 2

    def test_what_is_not_known_is_busy_where_fewer_are_wanted(self) -> None:
        assert wish(named(4), {"a": 100, "b": 100, "c": 100}) == 3  # not 1
        assert wish(named(2), {"a": 300}) == 2

    def test_who_starts_is_idle_where_more_are_wanted(self) -> None:
        just_now = rfc3339(NOW - timedelta(seconds=5))
        pods = [*named(2), pod("new", since=just_now)]
        assert wish(pods, {"a": 1000, "b": 1000, "new": 1000}) == 4
        assert wish(pods, {"a": 100, "b": 100, "new": 1000}) == 1

    def test_who_is_not_ready_or_goes_does_not_count(self) -> None:
        pods = [*named(2), pod("pending", "Pending"), pod("failed", "Failed"), pod("going", deletionTimestamp=LONG_AGO)]
        assert wish(pods, {"a": 500, "b": 500, "failed": 9000, "going": 9000}, current=2) == 2

    def test_what_cannot_be_said(self) -> None:
        with pytest.raises(Unmeasured, match="no pods returned by selector"):
            wish([], {})
        with pytest.raises(Unmeasured, match="did not receive metrics for targeted pods"):
            wish([pod("a", "Pending")], {"a": 1})
        bare = pod("bare")
        bare["spec"]["containers"][0]["resources"] = {}
        with pytest.raises(Unmeasured, match="missing request for cpu in container main of Pod bare"):
            podusage.requests([bare], "cpu")

    def test_a_part_that_is_not_known_leaves_the_pod_out(self) -> None:
        whole, part = metrics("a", 100, 200), metrics("b", 100)
        part["containers"].append({"name": "c1", "usage": {}})
        assert {name: one.milli for name, one in podusage.samples([whole, part], "cpu").items()} == {"a": 300}
        assert {name: one.milli for name, one in podusage.samples([whole, part], "cpu", "main").items()} == {
            "a": 100,
            "b": 100,
        }


def behaved(**behavior: Any) -> Object:
    obj: Object = {"spec": {"behavior": behavior}}
    horizontalpodautoscaler.default(obj)
    found: Object = obj["spec"]["behavior"]
    return found


class TestPace:
    def paced(
        self,
        wished: int,
        current: int,
        behavior: Object | None = None,
        memory: pace.ScalingHistory | None = None,
        most: int = 100,
    ) -> pace.Paced:
        return pace.paced(behavior, wished, pace.ReplicaRange(current, 1, most), memory or pace.ScalingHistory(), NOW)

    def test_up_at_once_but_at_most_twofold(self) -> None:
        assert self.paced(20, 8).replicas == 16
        assert self.paced(20, 8).limited[1] == "ScaleUpLimit"
        assert self.paced(20, 8, most=10).limited[:2] == ("True", "TooManyReplicas")
        assert self.paced(9, 8).limited[:2] == ("False", "DesiredWithinRange")

    def test_down_after_five_minutes(self) -> None:
        memory = pace.ScalingHistory(wishes=[(NOW - timedelta(seconds=200), 8)])
        found = self.paced(2, 8, memory=memory)
        assert (found.replicas, found.able[0]) == (8, "ScaleDownStabilized")
        memory = pace.ScalingHistory(wishes=[(NOW - timedelta(seconds=301), 8)])
        assert self.paced(2, 8, memory=memory).replicas == 2

    def test_below_the_least(self) -> None:
        found = self.paced(0, 3)
        assert (found.replicas, found.limited[1]) == (1, "TooFewReplicas")

    def test_a_window_of_its_own(self) -> None:
        memory = pace.ScalingHistory(wishes=[(NOW - timedelta(seconds=20), 8), (NOW - timedelta(seconds=8), 5)])
        down = behaved(scaleDown={"stabilizationWindowSeconds": 10})
        assert self.paced(2, 8, down, memory).replicas == 5
        memory = pace.ScalingHistory(wishes=[(NOW - timedelta(seconds=8), 9)])
        up = behaved(scaleUp={"stabilizationWindowSeconds": 10})
        found = self.paced(12, 8, up, memory)
        assert (found.replicas, found.able[0]) == (9, "ScaleUpStabilized")

    @pytest.mark.parametrize(
        ("select", "expected"),
        [("Max", 14), ("Min", 12), ("Disabled", 10)],
    )
    def test_policies_of_growth(self, select: str, expected: int) -> None:
        policies = [
            {"type": "Pods", "value": 2, "periodSeconds": 60},
            {"type": "Percent", "value": 40, "periodSeconds": 60},
        ]
        rules = behaved(scaleUp={"policies": policies, "selectPolicy": select})
        assert self.paced(50, 10, rules).replicas == expected

    def test_policies_of_decline(self) -> None:
        policies = [{"type": "Pods", "value": 2, "periodSeconds": 60}]
        rules = behaved(scaleDown={"policies": policies, "stabilizationWindowSeconds": 0})
        found = self.paced(1, 10, rules)
        assert (found.replicas, found.limited[1]) == (8, "ScaleDownLimit")

    def test_what_was_done_in_the_period_counts(self) -> None:
        policies = [{"type": "Pods", "value": 4, "periodSeconds": 60}]
        rules = behaved(scaleUp={"policies": policies})
        memory = pace.ScalingHistory(added=[(NOW - timedelta(seconds=30), 3), (NOW - timedelta(seconds=90), 3)])
        assert self.paced(50, 10, rules, memory).replicas == 11

    def test_it_forgets(self) -> None:
        memory = pace.ScalingHistory(wishes=[(NOW - timedelta(days=1), 3)], added=[(NOW - timedelta(days=1), 3)])
        self.paced(2, 2, memory=memory)
        assert (len(memory.wishes), memory.added) == (1, [])


def test_version_1_and_back() -> None:
    stored: Object = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x", "annotations": {"own": "kept"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}, "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "queue"},
                                          "target": {"type": "AverageValue", "averageValue": "5"}}},
                {"type": "Object", "object": {
                    "metric": {"name": "hits"}, "describedObject": {"kind": "Service", "name": "web"},
                    "target": {"type": "Value", "value": "100"}}},
                {"type": "ContainerResource", "containerResource": {
                    "name": "memory", "container": "main", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                horizontalpodautoscaler.cpu_metric(70),
            ],
            "behavior": behaved(scaleUp={"stabilizationWindowSeconds": 5}),
        },
        "status": {
            "desiredReplicas": 2, "currentReplicas": 2,
            "currentMetrics": [{"type": "Resource", "resource": {
                "name": "cpu", "current": {"averageUtilization": 20, "averageValue": "200m"}}}],
            "conditions": [{"type": "AbleToScale", "status": "True"}],
        },
    }  # fmt: skip
    shown = horizontalpodautoscaler_v1.from_stored(stored)
    assert shown["spec"] == {
        "scaleTargetRef": stored["spec"]["scaleTargetRef"],
        "minReplicas": 1,
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70,
    }
    assert shown["status"] == {"desiredReplicas": 2, "currentReplicas": 2, "currentCPUUtilizationPercentage": 20}
    assert horizontalpodautoscaler_v1.to_stored(shown) == stored
