"""Pod specs: defaults as Kubernetes fills them in, and its own words for what is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from danlu.embedded.builtin._shared.podspec import (
    default_pod,
    default_pod_spec,
    default_pod_template,
    quality_of_service,
    validate_pod_template,
)
from danlu.embedded.builtin._shared.podspec.defaulting import pull_policy
from danlu.embedded.builtin.core import pod
from danlu.meta.kind import Object


def make(**spec: Any) -> Object:
    spec.setdefault("containers", [{"name": "main", "image": "busybox"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}


def container(**fields: Any) -> Object:
    return make(containers=[{"name": "main", "image": "busybox", **fields}])


def errors(obj: Object) -> list[str]:
    obj = copy.deepcopy(obj)
    default_pod(obj)
    return [error.message() for error in pod.SERVED.validate(obj)]


def test_a_bare_pod_gets_the_defaults_of_kubernetes() -> None:
    obj = make()
    default_pod(obj)
    assert obj["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    assert errors(obj) == []


def test_defaulting_twice_changes_nothing() -> None:
    obj = make(
        containers=[
            {
                "name": "main",
                "image": "a/b:1",
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi", "nvidia.com/gpu": 1}},
                "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "livenessProbe": {"httpGet": {"port": 80}},
            }
        ],
        volumes=[{"name": "a"}, {"name": "b", "configMap": {"name": "c"}}, {"name": "h", "hostPath": {"path": "/x"}}],
        serviceAccount="robot",
    )
    default_pod(obj)
    once = copy.deepcopy(obj)
    default_pod(obj)
    assert obj == once
    spec = obj["spec"]
    main = spec["containers"][0]
    assert main["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert main["resources"]["requests"] == main["resources"]["limits"]
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert main["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert main["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert spec["volumes"][0] == {"name": "a", "emptyDir": {}}
    assert spec["volumes"][1]["configMap"]["defaultMode"] == 0o644
    assert spec["volumes"][2]["hostPath"]["type"] == ""
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("robot", "robot")
    assert errors(obj) == []


def test_a_template_gets_no_requests_from_limits() -> None:
    """Only pods do: a Deployment's template stays as its author wrote it."""
    template: Object = {
        "spec": {"containers": [{"name": "a", "image": "b", "resources": {"limits": {"cpu": "1"}}}]},
    }
    default_pod_template(template)
    assert template["metadata"] == {}
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "enableServiceLinks" not in template["spec"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry.local:5000/team/app", "Always"),
        ("registry.local:5000/team/app:v1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("Not Valid", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "0"}}, "BestEffort"),
    ],
)
def test_the_class_of_service(resources: Object, expected: str) -> None:
    spec = {"containers": [{"name": "a", "image": "b", "resources": resources}]}
    assert quality_of_service(spec) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (make(containers=[]), ["spec.containers: Required value"]),
        (
            make(containers=[{}]),
            ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
        ),
        (
            make(containers=[{"name": "a", "image": "b"}, {"name": "a", "image": "b"}]),
            ['spec.containers[1].name: Duplicate value: "a"'],
        ),
        (
            container(image=" busybox"),
            ['spec.containers[0].image: Invalid value: " busybox": must not have leading or trailing whitespace'],
        ),
        (
            make(restartPolicy="Sometimes"),
            ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
        ),
        (
            container(imagePullPolicy="Perhaps"),
            [
                'spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps": supported values: '
                '"Always", "IfNotPresent", "Never"'
            ],
        ),
        (
            container(ports=[{"containerPort": 70000}]),
            ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (container(ports=[{"name": "http"}]), ["spec.containers[0].ports[0].containerPort: Required value"]),
        (
            container(ports=[{"containerPort": 80, "hostPort": 1}, {"containerPort": 81, "hostPort": 1}]),
            ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//1"'],
        ),
        (
            container(volumeMounts=[{"name": "data", "mountPath": "/data"}]),
            ['spec.containers[0].volumeMounts[0].name: Not found: "data"'],
        ),
        (
            make(activeDeadlineSeconds=0),
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        (
            make(initContainers=[{"name": "i", "image": "b", "livenessProbe": {"exec": {"command": ["x"]}}}]),
            [
                "spec.initContainers[0].livenessProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always"
            ],
        ),
        (
            make(initContainers=[{"name": "main", "image": "b"}]),
            ['spec.initContainers[0].name: Duplicate value: "main"'],
        ),
        (
            container(env=[{"name": "A=B"}]),
            [
                'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name must '
                "consist only of printable ASCII characters other than '='"
            ],
        ),
        (
            container(env=[{"name": "A", "value": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
            ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        ),
        (
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]),
            [
                'spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "status.phase": '
                'supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", '
                '"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
            ],
        ),
        (
            container(envFrom=[{}]),
            ['spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
        ),
        (
            container(livenessProbe={}),
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
        ),
        (
            container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
            ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"],
        ),
        (
            container(readinessProbe={"httpGet": {"port": "x_y"}, "exec": {"command": ["a"]}}),
            ["spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type"],
        ),
        (
            make(
                hostNetwork=True,
                containers=[{"name": "a", "image": "b", "ports": [{"containerPort": 80, "hostPort": 81}]}],
            ),
            [
                "spec.containers[0].ports[0].hostPort: Invalid value: 81: "
                "must match `containerPort` when `hostNetwork` is true"
            ],
        ),
        (
            make(hostAliases=[{"ip": "nowhere", "hostnames": ["a"]}]),
            [
                'spec.hostAliases[0].ip: Invalid value: "nowhere": '
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            ],
        ),
        (
            make(dnsPolicy="None"),
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            make(securityContext={"runAsUser": -1}),
            ["spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
        ),
    ],
)
def test_what_is_wrong_is_said_as_kubernetes_does(obj: Object, expected: list[str]) -> None:
    assert errors(obj) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (
            {"limits": {"nvidia.com/gpu": "500m"}},
            [f'{side}[nvidia.com/gpu]: Invalid value: "500m": must be an integer' for side in ("limits", "requests")],
        ),
        (
            {"requests": {"nvidia.com/gpu": "1"}},
            ["limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}},
            ['requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'],
        ),
        (
            {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}},
            ['requests: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'],
        ),
        (
            {"limits": {"cpu": "-1"}},
            [
                f'{side}[cpu]: Invalid value: "-1": must be greater than or equal to 0'
                for side in ("limits", "requests")
            ],
        ),
        (
            {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}},
            [
                f'{side}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi'
                for side in ("limits", "requests")
            ],
        ),
        (
            {"limits": {"gpu": "1"}, "requests": {}},
            [
                f'{side}[gpu]: Invalid value: "gpu": {text}'
                for side in ("limits", "requests")
                for text in (
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                )
            ],
        ),
    ],
)
def test_resources(resources: Object, expected: list[str]) -> None:
    found = errors(container(resources=resources))
    assert found == [f"spec.containers[0].resources.{text}" for text in expected]


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (
            {"emptyDir": {}, "hostPath": {"path": "/a"}},
            ["hostPath: Forbidden: may not specify more than 1 volume type"],
        ),
        ({"hostPath": {"path": "/a/../b"}}, ["hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
        (
            {"hostPath": {"path": "/a", "type": "Dir"}},
            [
                'hostPath.type: Unsupported value: "Dir": supported values: "", "BlockDevice", "CharDevice", '
                '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'
            ],
        ),
        (
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "../x"}]}},
            ["configMap.items[0].path: Invalid value: \"../x\": must not contain '..'"],
        ),
        (
            {"secret": {"secretName": "s", "items": [{"key": "k", "path": "..x"}]}},
            ["secret.items[0].path: Invalid value: \"..x\": must not start with '..'"],
        ),
        (
            {"secret": {"secretName": "s", "defaultMode": 1000}},
            ["secret.defaultMode: Invalid value: 1000: must be a number between 0 and 0777 (octal), both inclusive"],
        ),
        (
            {"emptyDir": {"sizeLimit": "-1"}},
            ["emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
        ),
        ({"persistentVolumeClaim": {}}, ["persistentVolumeClaim.claimName: Required value"]),
        (
            {"projected": {"sources": [{"configMap": {"name": "a"}, "secret": {"name": "b"}}]}},
            ["projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
        ),
    ],
)
def test_volumes(volume: Object, expected: list[str]) -> None:
    found = errors(make(volumes=[{"name": "v", **volume}]))
    assert found == [f"spec.volumes[0].{text}" for text in expected]


def test_sub_paths_stay_inside_the_volume() -> None:
    mounts = [
        {"name": "v", "mountPath": "/a", "subPath": "../../etc"},
        {"name": "v", "mountPath": "/b", "subPath": "/etc"},
        {"name": "v", "mountPath": "/b"},
    ]
    obj = container(volumeMounts=mounts)
    obj["spec"]["volumes"] = [{"name": "v"}]
    assert errors(obj) == [
        "spec.containers[0].volumeMounts.subPath: Invalid value: \"../../etc\": must not contain '..'",
        'spec.containers[0].volumeMounts.subPath: Invalid value: "/etc": must be a relative path',
        'spec.containers[0].volumeMounts[2].mountPath: Invalid value: "/b": must be unique',
    ]


def test_placement() -> None:
    obj = make(
        tolerations=[{"operator": "Equal", "effect": "Never"}, {"key": "a", "operator": "Exists", "value": "x"}],
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "Later"}],
        affinity={
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 101, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}}
                ]
            },
        },
    )
    required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    assert errors(obj) == [
        f"{required}.nodeSelectorTerms: Required value: must have at least one node selector term",
        f"{preferred}[0].weight: Invalid value: 101: must be in the range 1-100",
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Later": '
        'supported values: "DoNotSchedule", "ScheduleAnyway"',
        'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
        'which means "match all values and all keys"',
        'spec.tolerations[0].effect: Unsupported value: "Never": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        "spec.tolerations[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
    ]


def test_sidecars_may_have_probes() -> None:
    sidecar = {"name": "s", "image": "b", "restartPolicy": "Always", "startupProbe": {"exec": {"command": ["true"]}}}
    assert errors(make(initContainers=[sidecar])) == []


def test_a_template_is_checked_under_its_own_path() -> None:
    template: Object = {"metadata": {"labels": {"a": "b c"}}, "spec": {"containers": []}}
    default_pod_template(template)
    found = [error.message() for error in validate_pod_template(template, "spec.template")]
    assert found[0].startswith('spec.template.labels: Invalid value: "b c": a valid label must be')
    assert found[1:] == ["spec.template.spec.containers: Required value"]


def test_null_counts_as_absent() -> None:
    obj = make(volumes=None, initContainers=None, affinity=None, tolerations=None, securityContext=None)
    obj["spec"]["containers"][0].update(env=None, ports=None, resources=None, volumeMounts=None)
    assert errors(obj) == []


def test_default_pod_spec_alone_serves_templates_and_pods() -> None:
    spec: Object = {"containers": [{"name": "a", "image": "b:1"}], "overhead": {"cpu": "0.1"}}
    default_pod_spec(spec)
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["overhead"] == {"cpu": "100m"}
