"""RuntimeClasses: what a pod takes from one, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.conftest import Kube

Pod = Callable[..., dict[str, Any]]


def runtime_class(name: str, handler: str = "standin", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler,
            **fields}  # fmt: skip


@pytest.fixture
def boxed(kube: Kube) -> Iterator[str]:
    """A class that asks for something more; nobody has the node that it wants."""
    name = kube.namespace
    tolerations = [{"key": "boxed", "operator": "Exists"}]
    kube.apply(
        runtime_class(
            name,
            overhead={"podFixed": {"cpu": "0.25", "memory": "64Mi"}},
            scheduling={"nodeSelector": {"boxed": "yes"}, "tolerations": tolerations},
        )
    )
    yield name
    kube("delete", "runtimeclass", name)


def test_a_pod_takes_from_its_class(kube: Kube, boxed: str, pod: Pod) -> None:
    assert kube("get", "runtimeclass", boxed).splitlines()[1].split()[:2] == [boxed, "standin"]

    def created() -> bool:  # the server may not know the class at once
        spec = {"runtimeClassName": boxed, "nodeSelector": {"own": "x"}}
        return kube.run("create", "-f", "-", stdin=pod("inside", spec=spec), check=False).returncode == 0

    kube.wait("the class to be known", created)
    spec = kube.get("pod", "inside")["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "64Mi"}
    assert spec["nodeSelector"] == {"own": "x", "boxed": "yes"}
    assert {"key": "boxed", "operator": "Exists"} in spec["tolerations"]


def test_a_pod_may_not_say_otherwise(kube: Kube, boxed: str, pod: Pod) -> None:
    spec = {"runtimeClassName": boxed, "nodeSelector": {"boxed": "no"}}
    why = kube.fails("create", "-f", "-", stdin=pod("inside", spec=spec))
    assert "conflict: runtimeClass.scheduling.nodeSelector[boxed] = yes; pod.spec.nodeSelector[boxed] = no" in why
    why = kube.fails(
        "create", "-f", "-", stdin=pod("inside", spec={"runtimeClassName": boxed, "overhead": {"cpu": "1"}})
    )
    assert "Pod's Overhead doesn't match RuntimeClass's defined Overhead" in why


def test_a_class_that_is_not_there_is_refused(kube: Kube, pod: Pod) -> None:
    why = kube.fails("create", "-f", "-", stdin=pod("inside", spec={"runtimeClassName": "none-such"}))
    assert 'pods "inside" is forbidden: pod rejected: RuntimeClass "none-such" not found' in why
    why = kube.fails("create", "-f", "-", stdin=pod("inside", spec={"overhead": {"cpu": "1"}}))
    assert "Pod Overhead set without corresponding RuntimeClass defined Overhead" in why


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (runtime_class("bad", ""), "handler: Required value"),
        (runtime_class("bad", "A"), 'handler: Invalid value: "A"'),
        (runtime_class("bad", overhead={"podFixed": {"cpu": "-1"}}), "must be greater than or equal to 0"),
        (runtime_class("bad", scheduling={"nodeSelector": {"-": "x"}}), "scheduling.nodeSelector: Invalid value"),
        (runtime_class("bad", scheduling={"tolerations": [{"operator": "Equal"}]}), "operator must be Exists"),
    ],
)  # fmt: skip
def test_what_a_class_may_not_be(kube: Kube, made: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=made)


def test_its_handler_is_fixed(kube: Kube, boxed: str) -> None:
    why = kube.fails("patch", "runtimeclass", boxed, "-p", '{"handler": "another"}')
    assert "handler: Invalid value" in why
    assert "field is immutable" in why
