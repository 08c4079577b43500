"""rbac, storage, scheduling, coordination, events, discovery. Texts are those of a real 1.36 server."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.coordination import lease
from danlu.embedded.builtin.core import event
from danlu.embedded.builtin.discovery import endpointslice
from danlu.embedded.builtin.events import eventsevent
from danlu.embedded.builtin.rbac import clusterrole, clusterrolebinding, role, rolebinding
from danlu.embedded.builtin.scheduling import priorityclass
from danlu.embedded.builtin.storage import storageclass
from danlu.meta.objects import copy

RBAC = "rbac.authorization.k8s.io"
TIME = "2026-01-01T00:00:00.000000Z"


def made(served: ServedKind, name: str = "x", **fields: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"metadata": {"name": name, "namespace": "default"}, **fields}
    served.default(obj)
    served.prepare_create(obj)
    return obj


def messages(served: ServedKind, name: str = "x", **fields: Any) -> list[str]:
    return [error.message() for error in served.validate(made(served, name, **fields))]


def changes(served: ServedKind, old: dict[str, Any], **fields: Any) -> list[str]:
    new = {**copy(old), **fields}
    served.default(new)
    served.prepare_update(new, old)
    return [error.message() for error in served.validate_update(new, old)]


def cells(served: ServedKind, obj: dict[str, Any]) -> dict[str, Any]:
    return {column.name: column.value(obj) for column in served.columns}


def test_roles() -> None:
    good = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    urls = {"nonResourceURLs": ["/x"], "verbs": ["get"]}
    assert messages(role.SERVED, rules=[good]) == []
    assert messages(clusterrole.SERVED, rules=[good, urls]) == []
    assert messages(role.SERVED, rules=[{}, {**urls, "resources": ["a"]}]) == [
        "rules[0].verbs: Required value: verbs must contain at least one value",
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[0].resources: Required value: resource rules must supply at least one resource",
        'rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
        'rules[1].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and '
        "non-resource URLs",
    ]
    assert messages(clusterrole.SERVED, aggregationRule={}) == [
        "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
        "aggregationRule is non-nil"
    ]
    assert list(cells(role.SERVED, made(role.SERVED))) == ["Name", "Created At"]
    assert role.SERVED.name_errors("system:node", False) == []


def test_bindings() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    obj = made(rolebinding.SERVED, roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    assert obj["roleRef"]["apiGroup"] == RBAC
    assert obj["subjects"][0]["apiGroup"] == RBAC
    assert rolebinding.SERVED.validate(obj) == []
    shown = cells(rolebinding.SERVED, obj)
    assert (shown["Role"], shown["Users"], shown["Groups"], shown["ServiceAccounts"]) == ("Role/r", "u", "", "n/s")
    assert changes(rolebinding.SERVED, obj, roleRef={"kind": "Role", "name": "other"}) == [
        f'roleRef: Invalid value: {{"APIGroup":"{RBAC}","Kind":"Role","Name":"other"}}: cannot change roleRef'
    ]
    assert messages(
        clusterrolebinding.SERVED, roleRef={"kind": "Role"}, subjects=[{"kind": "ServiceAccount", "name": "s"}]
    ) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Required value",
        "subjects[0].namespace: Required value",
    ]
    assert messages(
        rolebinding.SERVED, roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "Q", "name": "x"}]
    ) == ['subjects[0].kind: Unsupported value: "Q": supported values: "ServiceAccount", "User", "Group"']


def test_storage_classes() -> None:
    served = storageclass.SERVED
    obj = made(served, "fast", provisioner="a.b/c", parameters={"a": "b"})
    assert (obj["reclaimPolicy"], obj["volumeBindingMode"]) == ("Delete", "Immediate")
    assert served.validate(obj) == []
    assert messages(served) == ["provisioner: Required value"]
    assert messages(served, provisioner="a/b", reclaimPolicy="X", volumeBindingMode="Y") == [
        'reclaimPolicy: Unsupported value: "X": supported values: "Delete", "Retain"',
        'volumeBindingMode: Unsupported value: "Y": supported values: "Immediate", "WaitForFirstConsumer"',
    ]
    assert changes(served, obj, allowVolumeExpansion=True) == []
    assert changes(served, obj, parameters={"a": "c"}) == ['parameters: Invalid value: {"a":"c"}: field is immutable']
    obj["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    assert cells(served, obj)["Name"] == "fast (default)"
    assert cells(served, obj)["AllowVolumeExpansion"] is False


def test_priority_classes() -> None:
    served = priorityclass.SERVED
    obj = made(served, "high", value=1000)
    assert obj["preemptionPolicy"] == "PreemptLowerPriority"
    assert served.validate(obj) == []
    assert made(served)["value"] == 0
    assert messages(served, value=2_000_000_000) == [
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
    ]
    assert messages(served, "system-x", value=1) == [
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
        "error: system-x is not a known system priority class"
    ]
    assert messages(served, "system-node-critical", value=2_000_001_000) == []
    assert changes(served, obj, value=5) == ["value: Forbidden: may not be changed in an update."]
    assert changes(served, obj, preemptionPolicy="Never") == [
        'preemptionPolicy: Invalid value: "Never": field is immutable'
    ]


def test_leases() -> None:
    served = lease.SERVED
    assert made(served)["spec"] == {}
    assert messages(served, spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]
    assert made(served, spec={"strategy": "x", "holderIdentity": "me"})["spec"] == {"holderIdentity": "me"}
    assert cells(served, made(served, spec={"holderIdentity": "me"}))["Holder"] == "me"
    assert served.create_on_update
    assert not served.unconditional_update


def test_core_events() -> None:
    served = event.SERVED
    about = {"kind": "Pod", "name": "p", "namespace": "default", "fieldPath": "spec.containers{c}"}
    obj = made(served, involvedObject=about, reason="R", type="Normal", message=" hi ", source={"component": "kubelet"})
    assert served.validate(obj) == []
    assert messages(served, involvedObject={**about, "namespace": "other"}) == [
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    ]
    shown = cells(served, obj)
    assert (shown["Object"], shown["Message"], shown["Count"], shown["Source"]) == ("pod/p", "hi", 1, "kubelet")
    assert (shown["Last Seen"], shown["Subobject"]) == ("<unknown>", "spec.containers{c}")
    fields = served.selectable(obj)
    assert fields["involvedObject.name"] == fields["regarding.name"] == "p"
    assert fields["source"] == "kubelet"
    assert served.selectable_names <= fields.keys()
    assert eventsevent.SERVED.selectable_names <= fields.keys()
    assert messages(served, involvedObject=about, eventTime=TIME) == [
        "reportingComponent: Required value",
        'reportingComponent: Invalid value: "": name part must be non-empty',
        "reportingComponent: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
        "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
    ]


def test_one_event_has_two_forms() -> None:
    served = eventsevent.SERVED
    sent: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": TIME,
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "note": "n",
        "type": "Normal",
        "action": "A",
        "reportingController": "a.b/c",
        "reportingInstance": "i",
    }
    obj = made(served, **sent)
    assert served.validate(obj) == []
    stored = eventsevent.to_stored(obj)
    assert stored["apiVersion"] == "v1"
    assert stored["message"] == "n"
    assert stored["involvedObject"]["name"] == "p"
    assert stored["reportingComponent"] == "a.b/c"
    assert not event.SERVED.validate(stored)
    back = eventsevent.from_stored(stored)
    assert {key: back[key] for key in sent} == sent
    assert served.key == event.SERVED.key
    assert {name: cells(served, obj)[name] for name in ("Object", "Message", "Source")} == {
        "Object": "pod/p",
        "Message": "n",
        "Source": "a.b/c, i",
    }
    assert messages(served, **{**sent, "type": "Q", "deprecatedCount": 1, "series": {"count": 1}}) == [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        'type: Invalid value: "": has invalid value: Q',
        'count: Invalid value: "": needs to be unset',
    ]
    assert changes(served, obj, note="other") == ['message: Invalid value: "other": field is immutable']
    assert changes(served, obj, series={"count": 2, "lastObservedTime": TIME}) == []


def test_endpoint_slices() -> None:
    served = endpointslice.SERVED
    endpoints = [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3"]}, {"addresses": ["10.0.0.4"]}]
    obj = made(served, addressType="IPv4", endpoints=endpoints, ports=[{"port": 80}, {"name": "x", "port": 81}])
    assert served.validate(obj) == []
    assert obj["ports"][0] == {"port": 80, "name": "", "protocol": "TCP"}
    shown = cells(served, obj)
    assert (shown["Ports"], shown["Endpoints"]) == ("80,81", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...")
    assert cells(served, made(served, addressType="IPv4"))["Endpoints"] == "<unset>"
    assert messages(served) == ["addressType: Required value"]
    assert messages(served, addressType="IPv6", endpoints=[{"addresses": ["10.0.0.1"]}, {"addresses": []}]) == [
        'endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address',
        "endpoints[1].addresses: Required value: must contain at least 1 address",
    ]
    assert changes(served, obj, addressType="IPv6") == ['addressType: Invalid value: "IPv6": field is immutable']
    new = {**copy(obj), "ports": []}
    served.prepare_update(new, obj)
    assert new["metadata"]["generation"] == 2
