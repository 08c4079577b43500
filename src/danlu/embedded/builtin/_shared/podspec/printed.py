"""A pod spec in the order and completeness in which Kubernetes prints it when a change is refused.

Each entry is a field and its zero value; a dict stands for a struct that is always there, a list with one dict for a
list of structs, `None` for what is left out until it is set.
"""

from __future__ import annotations

from danlu.embedded.builtin._shared.diffs import diff_of
from danlu.meta.kind import Object

_REQUIREMENTS: Object = {"limits": None, "requests": None, "claims": None}
_PORT: Object = {"name": "", "hostPort": 0, "containerPort": 0, "protocol": "", "hostIP": ""}
_MOUNT: Object = {
    "name": "",
    "readOnly": False,
    "recursiveReadOnly": None,
    "mountPath": "",
    "subPath": "",
    "mountPropagation": None,
    "subPathExpr": "",
}
_TOLERATION: Object = {"key": "", "operator": "", "value": "", "effect": "", "tolerationSeconds": None}
_CONTAINER: Object = {
    "name": "",
    "image": "",
    "command": None,
    "args": None,
    "workingDir": "",
    "ports": [_PORT],
    "envFrom": None,
    "env": [{"name": "", "value": "", "valueFrom": None}],
    "resources": _REQUIREMENTS,
    "resizePolicy": None,
    "restartPolicy": None,
    "restartPolicyRules": None,
    "volumeMounts": [_MOUNT],
    "volumeDevices": None,
    "livenessProbe": None,
    "readinessProbe": None,
    "startupProbe": None,
    "lifecycle": None,
    "terminationMessagePath": "",
    "terminationMessagePolicy": "",
    "imagePullPolicy": "",
    "securityContext": None,
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
}
_SECURITY: Object = {
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "shareProcessNamespace": None,
    "hostUsers": None,
    "seLinuxOptions": None,
    "windowsOptions": None,
    "runAsUser": None,
    "runAsGroup": None,
    "runAsNonRoot": None,
    "supplementalGroups": None,
    "supplementalGroupsPolicy": None,
    "fsGroup": None,
    "fsGroupChangePolicy": None,
    "sysctls": None,
    "seccompProfile": None,
    "appArmorProfile": None,
    "seLinuxChangePolicy": None,
}
_POD: Object = {
    "volumes": None,
    "initContainers": [_CONTAINER],
    "containers": [_CONTAINER],
    "ephemeralContainers": [_CONTAINER],
    "restartPolicy": "",
    "terminationGracePeriodSeconds": None,
    "activeDeadlineSeconds": None,
    "dnsPolicy": "",
    "nodeSelector": None,
    "serviceAccountName": "",
    "automountServiceAccountToken": None,
    "nodeName": "",
    "securityContext": _SECURITY,
    "imagePullSecrets": None,
    "hostname": "",
    "subdomain": "",
    "setHostnameAsFQDN": None,
    "affinity": None,
    "schedulerName": "",
    "tolerations": [_TOLERATION],
    "hostAliases": None,
    "priorityClassName": "",
    "priority": None,
    "preemptionPolicy": None,
    "dnsConfig": None,
    "readinessGates": None,
    "runtimeClassName": None,
    "overhead": None,
    "enableServiceLinks": None,
    "topologySpreadConstraints": None,
    "os": None,
    "schedulingGates": None,
    "resourceClaims": None,
    "resources": None,
    "hostnameOverride": None,
    "schedulingGroup": None,
}
_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def spec_diff(old: Object, new: Object) -> str:
    return diff_of(_internal(old), _internal(new), _POD)


def _internal(spec: Object) -> Object:
    """Kubernetes keeps what a pod shares with its host among the security settings."""
    shared = {name: spec[name] for name in _HOST_FIELDS if spec.get(name) is not None}
    return {**spec, "securityContext": {**(spec.get("securityContext") or {}), **shared}}
