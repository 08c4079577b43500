from __future__ import annotations

from typing import Any

import pytest

from danlu.meta.schema import Decoded, Schema, native

CORE = "io.k8s.api.core.v1."


@pytest.fixture
def pod() -> Schema:
    return native(CORE + "Pod")


def problem(decoded: Decoded) -> str:
    assert decoded.problem is not None
    return decoded.problem.message


def test_unknown_fields_are_named_in_order_and_dropped(pod: Schema) -> None:
    obj = {"spec": {"foo": 1, "containers": [{"name": "a", "bar": {}}]}, "metadata": {"labels": {"x": "y"}, "z": 1}}
    assert pod.decode(obj).unknown == ["spec.foo", "spec.containers[0].bar", "metadata.z"]
    assert obj == {"spec": {"containers": [{"name": "a"}]}, "metadata": {"labels": {"x": "y"}}}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (
            {"spec": {"containers": "x"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}},
            "json: cannot unmarshal string into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            {"spec": {"containers": [{"ports": [{"containerPort": 2**31}]}]}},
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"spec": {"volumes": [{"emptyDir": "x"}]}},
            "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir "
            "of type v1.EmptyDirVolumeSource",
        ),
        (
            {"spec": {"containers": [{"imagePullPolicy": 1}]}},
            "json: cannot unmarshal number into Go struct field Container.spec.containers.imagePullPolicy "
            "of type v1.PullPolicy",
        ),
        ({"spec": []}, "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"hostNetwork": "yes"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": True}}}]}},
            "json: cannot unmarshal bool into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
    ],
)
def test_wrong_types_read_as_gos(pod: Schema, obj: dict[str, Any], text: str) -> None:
    assert problem(pod.decode(obj)) == text


def test_values_take_the_form_that_kubernetes_writes(pod: Schema) -> None:
    obj: dict[str, Any] = {
        "metadata": {"creationTimestamp": "2026-01-02T03:04:05+01:00", "labels": {}, "annotations": None},
        "spec": {"containers": [{"resources": {"limits": {"cpu": "0.5", "memory": 1024}}, "env": [], "image": None}]},
    }
    assert pod.decode(obj) == Decoded([], None)
    assert obj["metadata"] == {"creationTimestamp": "2026-01-02T02:04:05Z"}
    assert obj["spec"]["containers"] == [{"resources": {"limits": {"cpu": "500m", "memory": "1024"}}}]


def test_null_elements_become_zero_values() -> None:
    obj: dict[str, Any] = {"data": {"a": None}}
    native(CORE + "ConfigMap").decode(obj)
    assert obj == {"data": {"a": ""}}


@pytest.mark.parametrize(
    ("text", "fault"), [("YWJj", None), ("YQ==", None), ("aGVs\nbG8=", None), ("abcde", 4), ("YWJ!", 3), ("YQ=", 3)]
)
def test_secret_data_is_base64(text: str, fault: int | None) -> None:
    decoded = native(CORE + "Secret").decode({"data": {"k": text}})
    assert (decoded.problem and decoded.problem.message) == (
        None if fault is None else f"illegal base64 data at input byte {fault}"
    )


def test_micro_times_want_six_digits() -> None:
    lease = native("io.k8s.api.coordination.v1.Lease")
    assert lease.decode({"spec": {"renewTime": "2026-01-02T03:04:05.000001Z"}}).problem is None
    assert problem(lease.decode({"spec": {"renewTime": "2026-01-02T03:04:05Z"}})) == (
        'parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    )


def test_nodes_tell_how_lists_merge(pod: Schema) -> None:
    containers = pod.element("spec", "containers")
    assert containers is not None
    assert (containers.list_type, containers.map_keys, containers.merge_key) == ("map", ("name",), "name")
    ports = pod.element("spec", "containers", 0, "ports")
    assert ports is not None
    assert ports.map_keys == ("containerPort", "protocol")
    assert ports.items is not None
    assert ports.items.defaults == {"protocol": "TCP"}
    strategy = native("io.k8s.api.apps.v1.Deployment").element("spec", "strategy")
    assert strategy is not None
    assert strategy.strategies == {"retainKeys"}
    claim = native(CORE + "PersistentVolume").element("spec", "claimRef")
    assert claim is not None
    assert claim.map_type == "granular"
    assert pod.element("spec", "nope") is None


def test_recursive_definitions_are_shared() -> None:
    crd = native("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    assert crd.element("properties", "a", "properties", "b", "not") is crd.root.fields["not"]
    obj = {"items": {"type": "object", "bogus": 1}, "additionalProperties": True, "properties": {"x": {"bogus": 1}}}
    assert crd.decode(obj).unknown == [
        "properties.x.bogus"
    ]  # schema-or-list fields drop what they do not know silently
    assert obj["items"] == {"type": "object"}
