"""The core kinds but Pod: their words for what is wrong, what an update may change, and their columns.

The texts were compared with a real API server's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.core import (
    configmap,
    endpoints,
    limitrange,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    resourcequota,
    secret,
    service,
)
from danlu.errors import BadRequest
from danlu.meta.kind import Object


def created(served: ServedKind, **fields: Any) -> Object:
    obj: Object = {"metadata": {"name": "x", "namespace": "default"}, **copy.deepcopy(fields)}
    served.default(obj)
    served.prepare_create(obj)
    return obj


def errors(served: ServedKind, **fields: Any) -> list[str]:
    return [error.message() for error in served.validate(created(served, **fields))]


def changed(served: ServedKind, old: Object, change: Callable[[Object], object]) -> list[str]:
    new = copy.deepcopy(old)
    change(new)
    served.default(new)
    served.prepare_update(new, old)
    return [error.message() for error in served.validate_update(new, old)]


def cells(served: ServedKind, obj: Object) -> dict[str, Any]:
    return {column.name: column.value(obj) for column in served.columns}


# -- ConfigMap and Secret


def test_config_map_keys_and_size() -> None:
    assert errors(configmap.SERVED, data={"ok": "x"}) == []
    assert errors(configmap.SERVED, data={"..": "x"}) == ["data[..]: Invalid value: \"..\": must not be '..'"]
    assert errors(configmap.SERVED, data={"a": "x"}, binaryData={"a": "eA=="}) == [
        'data[a]: Invalid value: "a": duplicate of key present in binaryData'
    ]
    assert errors(configmap.SERVED, data={"a": "x" * (1 << 20)}) == []
    assert errors(configmap.SERVED, data={"a": "x" * ((1 << 20) + 1)}) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]


def test_a_frozen_config_map_stays_as_it_is() -> None:
    old = created(configmap.SERVED, data={"a": "1"}, immutable=True)
    text = "Forbidden: field is immutable when `immutable` is set"
    assert changed(configmap.SERVED, old, lambda new: new["data"].update(a="2")) == [f"data: {text}"]
    assert changed(configmap.SERVED, old, lambda new: new.update(immutable=False)) == [f"immutable: {text}"]
    assert changed(configmap.SERVED, old, lambda new: new["metadata"].update(labels={"a": "b"})) == []


def test_plain_text_of_a_secret_is_folded_into_its_data() -> None:
    obj = created(secret.SERVED, data={"a": "eA==", "b": "eQ=="}, stringData={"b": "z"})
    assert obj["data"] == {"a": "eA==", "b": "eg=="}
    assert "stringData" not in obj
    assert obj["type"] == "Opaque"


@pytest.mark.parametrize(("text", "offset"), [("!!", 0), ("YQ", 0), ("YQ=YQ===", 2), ("abc=d", 4), ("YWJjY", 4)])
def test_what_is_no_base64_is_refused_where_go_would_stop(text: str, offset: int) -> None:
    with pytest.raises(BadRequest) as refused:
        created(secret.SERVED, data={"a": text})
    assert refused.value.message == (
        f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte {offset}'
    )


def test_line_breaks_in_base64_are_dropped() -> None:
    assert created(secret.SERVED, data={"a": "YWJj\n"})["data"] == {"a": "YWJj"}


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("kubernetes.io/tls", ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/basic-auth", ["data[username]: Required value", "data[password]: Required value"]),
        ("kubernetes.io/ssh-auth", ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockerconfigjson", ["data[.dockerconfigjson]: Required value"]),
        (
            "kubernetes.io/service-account-token",
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
        ("example.com/mine", []),
    ],
)
def test_secret_types_promise_keys(sort: str, expected: list[str]) -> None:
    assert errors(secret.SERVED, type=sort) == expected


def test_a_secret_keeps_its_type() -> None:
    old = created(secret.SERVED, type="example.com/mine")
    assert changed(secret.SERVED, old, lambda new: new.pop("type")) == [
        'type: Invalid value: "Opaque": field is immutable'
    ]


# -- Service


def with_address(obj: Object) -> Object:
    obj["spec"].update(clusterIP="127.96.1.1", clusterIPs=["127.96.1.1"], ipFamilies=["IPv4"])
    return obj


def test_a_service_gets_its_defaults() -> None:
    obj = created(service.SERVED, spec={"ports": [{"port": 80}]})
    assert obj["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
    }
    assert obj["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["spec.ports: Required value"]),
        (
            {"ports": [{"port": 0}]},
            [
                f"spec.ports[0].{field}: Invalid value: 0: must be between 1 and 65535, inclusive"
                for field in ("port", "targetPort")
            ],
        ),
        (
            {"ports": [{"port": 80}, {"port": 81}]},
            ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
        ),
        (
            {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
            [
                'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,'
                '"TargetPort":0,"NodePort":0}'
            ],
        ),
        (
            {"type": "Fancy", "ports": [{"port": 80}]},
            [
                'spec.type: Unsupported value: "Fancy": supported values: '
                '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
            ],
        ),
        ({"type": "ExternalName"}, ["spec.externalName: Required value"]),
        (
            {"ports": [{"port": 80, "nodePort": 30001}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            {"ports": [{"port": 80}], "externalTrafficPolicy": "Local"},
            ['spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services'],
        ),
    ],
)
def test_services(spec: Object, expected: list[str]) -> None:
    assert errors(service.SERVED, spec=spec) == expected


def test_an_address_may_not_change() -> None:
    old = with_address(created(service.SERVED, spec={"ports": [{"port": 80}]}))
    assert changed(service.SERVED, old, lambda new: new["spec"].update(clusterIP="127.96.1.2")) == [
        'spec.clusterIPs[0]: Invalid value: ["127.96.1.2"]: may not change once set'
    ]


def test_an_update_that_leaves_out_the_address_keeps_it() -> None:
    old = with_address(created(service.SERVED, spec={"ports": [{"port": 80}]}))
    new = created(service.SERVED, spec={"ports": [{"port": 81}]})
    service.SERVED.prepare_update(new, old)
    assert new["spec"]["clusterIP"] == "127.96.1.1"
    assert service.SERVED.validate_update(new, old) == []


def test_a_change_of_type_takes_node_ports_along() -> None:
    old = with_address(created(service.SERVED, spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30500}]}))
    new = copy.deepcopy(old)
    new["spec"]["type"] = "ClusterIP"
    service.SERVED.prepare_update(new, old)
    assert "nodePort" not in new["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in new["spec"]


def test_service_columns() -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30500}], "selector": {"b": "1", "a": "2"}}
    shown = cells(service.SERVED, with_address(created(service.SERVED, spec=spec)))
    assert shown["Cluster-IP"] == "127.96.1.1"
    assert shown["External-IP"] == "<none>"
    assert shown["Port(s)"] == "80:30500/TCP"
    assert shown["Selector"] == "a=2,b=1"
    waiting = created(service.SERVED, spec={"type": "LoadBalancer", "ports": [{"port": 1}]})
    assert cells(service.SERVED, waiting)["External-IP"] == "<pending>"


# -- claims and volumes

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "fast"}
BOUND = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"accessModes": []}, ["spec.accessModes: Required value: at least 1 access mode is required"]),
        (
            {"accessModes": ["Often"]},
            [
                'spec.accessModes: Unsupported value: "Often": supported values: '
                '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
            ],
        ),
        ({"resources": {}}, ["spec.resources[storage]: Required value"]),
        (
            {"resources": {"requests": {"storage": "0"}}},
            ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
        ),
        (
            {"volumeMode": "Tape"},
            ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
        ),
    ],
)
def test_claims(spec: Object, expected: list[str]) -> None:
    assert errors(persistentvolumeclaim.SERVED, spec={**CLAIM, **spec}) == expected


def resize(storage: str) -> Callable[[Object], object]:
    return lambda new: new["spec"]["resources"]["requests"].update(storage=storage)


def test_a_bound_claim_grows_and_does_not_shrink() -> None:
    old = created(persistentvolumeclaim.SERVED, spec=CLAIM)
    old["status"] = BOUND
    assert changed(persistentvolumeclaim.SERVED, old, resize("3Gi")) == []
    assert changed(persistentvolumeclaim.SERVED, old, resize("2048Mi")) == []
    assert changed(persistentvolumeclaim.SERVED, old, resize("1Gi")) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


def test_the_rest_of_a_claim_is_immutable() -> None:
    old = created(persistentvolumeclaim.SERVED, spec=CLAIM)
    fixed = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName"
    (found,) = changed(persistentvolumeclaim.SERVED, old, lambda new: new["spec"].update(storageClassName="slow"))
    assert found == (
        f"{fixed} for bound claims\n"
        "@@ -10,7 +10,7 @@\n"
        "   }\n"
        "  },\n"
        '  "VolumeName": "",\n'
        '- "StorageClassName": "fast",\n'
        '+ "StorageClassName": "slow",\n'
        '  "VolumeMode": "Filesystem",\n'
        '  "DataSource": null,\n'
        '  "DataSourceRef": null,\n'
    )
    (found,) = changed(persistentvolumeclaim.SERVED, old, resize("3Gi"))
    assert found.startswith(fixed)
    assert changed(persistentvolumeclaim.SERVED, old, lambda new: new["spec"].update(volumeName="v")) == []


def test_claim_columns() -> None:
    obj = created(persistentvolumeclaim.SERVED, spec={**CLAIM, "volumeName": "v"})
    obj["status"] = {**BOUND, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]}
    shown = cells(persistentvolumeclaim.SERVED, obj)
    assert shown["Status"] == "Bound"
    assert (shown["Volume"], shown["Capacity"], shown["Access Modes"]) == ("v", "2Gi", "RWO,RWX")
    assert (shown["StorageClass"], shown["VolumeAttributesClass"]) == ("fast", "<unset>")


def test_volumes() -> None:
    good = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    served = persistentvolume.SERVED
    assert errors(served, spec=good) == []
    assert errors(served, spec={**good, "hostPath": None}) == ["spec: Required value: must specify a volume type"]
    assert errors(served, spec={**good, "nfs": {"server": "a", "path": "/b"}}) == [
        "spec.nfs: Forbidden: may not specify more than 1 volume type"
    ]
    old = created(served, spec=good)
    (found,) = changed(served, old, lambda new: new["spec"]["hostPath"].update(path="/y"))
    assert found.startswith("spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after")
    old["spec"]["claimRef"] = {"namespace": "a", "name": "b"}
    assert cells(served, old)["Claim"] == "a/b"


# -- quotas and limits


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hard": {"cpu": "1", "requests.nvidia.com/gpu": "4", "count/jobs.batch": "5"}}, []),
        (
            {"hard": {"apples": "1"}},
            [
                'spec.hard[apples]: Invalid value: "apples": must be a standard resource type or fully qualified',
                'spec.hard[apples]: Invalid value: "apples": must be a standard resource for quota',
            ],
        ),
        ({"hard": {"pods": "1.5"}}, ['spec.hard[pods]: Invalid value: "1500m": must be an integer']),
        (
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
    ],
)
def test_quotas(spec: Object, expected: list[str]) -> None:
    assert errors(resourcequota.SERVED, spec=spec) == expected


def test_quota_columns() -> None:
    obj = created(resourcequota.SERVED, spec={})
    obj["status"] = {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}
    shown = cells(resourcequota.SERVED, obj)
    assert shown["Request"] == "cpu: 0/1, pods: 1/5"
    assert shown["Limit"] == "limits.cpu: 0/2"


def test_limit_ranges() -> None:
    item = {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "100m"}}
    obj = created(limitrange.SERVED, spec={"limits": [item]})
    assert obj["spec"]["limits"][0]["default"] == {"cpu": "1"}
    assert obj["spec"]["limits"][0]["defaultRequest"] == {"cpu": "1"}
    wrong = {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}, "default": {"cpu": "1"}}
    assert errors(limitrange.SERVED, spec={"limits": [{**wrong, "defaultRequest": {"cpu": "1"}}]}) == [
        'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1',
        'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
    ]


# -- nodes, namespaces, endpoints


def test_nodes() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}, {"key": "b"}]
    assert errors(node.SERVED, spec={"taints": taints}) == [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: '
        "taints must be unique by key and effect pair",
        "metadata.taints[2].effect: Required value",
    ]
    obj = created(node.SERVED, spec={"podCIDR": "10.0.0.0/24", "unschedulable": True}, status={"capacity": {"cpu": 4}})
    assert obj["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    assert obj["status"]["allocatable"] == {"cpu": "4"}
    assert cells(node.SERVED, obj)["Status"] == "Unknown,SchedulingDisabled"
    obj["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    obj["metadata"]["labels"] = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}
    shown = cells(node.SERVED, obj)
    assert shown["Status"] == "Ready,SchedulingDisabled"
    assert shown["Roles"] == "control-plane,worker"


def test_namespaces() -> None:
    obj = created(namespace.SERVED)
    assert obj["spec"] == {"finalizers": ["kubernetes"]}
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}
    assert obj["status"] == {"phase": "Active"}
    new = {**copy.deepcopy(obj), "spec": {"finalizers": []}}
    namespace.SERVED.prepare_update(new, obj)
    assert new["spec"] == obj["spec"]
    new["status"] = {"phase": "Terminating"}
    assert [error.message() for error in namespace.SERVED.validate_status(new, obj)] == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]


def test_endpoints_may_be_on_loopback() -> None:
    subset = {"addresses": [{"ip": f"127.1.0.{host}"} for host in range(1, 5)], "ports": [{"port": 80}]}
    assert errors(endpoints.SERVED, subsets=[subset]) == []
    shown = cells(endpoints.SERVED, created(endpoints.SERVED, subsets=[subset]))
    assert shown["Endpoints"] == "127.1.0.1:80,127.1.0.2:80,127.1.0.3:80 + 1 more..."
    assert errors(endpoints.SERVED, subsets=[{}]) == [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"
    ]
