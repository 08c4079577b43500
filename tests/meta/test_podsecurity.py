"""The Pod Security Standards in Kubernetes' own words, by level and version."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.meta.kind import Object
from danlu.meta.podsecurity import LevelVersion, PodSecurityPolicy, detailed, evaluate, is_significant_update, policy_of

RESTRICTED: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def found(level: str, spec: Object, version: str = "latest", **annotations: str) -> str:
    notes = {key.replace("__", "/").replace("_", "."): value for key, value in annotations.items()}
    return detailed(evaluate(LevelVersion(level, version), {"annotations": notes}, spec))


def pod(security: Object | None = None, *, second: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "a", "securityContext": security or {}}]
    if second is not None:
        containers.append({"name": "b", "securityContext": second})
    return {"containers": containers, **spec}


BASELINE = [
    (pod({"appArmorProfile": {"type": "Unconfined"}}),
     'forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined")'),
    (pod({"capabilities": {"add": ["NET_RAW", "CHOWN"]}}, second={"capabilities": {"add": ["BPF"]}}),
     'non-default capabilities (containers "a", "b" must not include "BPF", "NET_RAW" in '
     "securityContext.capabilities.add)"),
    (pod(hostNetwork=True, hostIPC=True), "host namespaces (hostNetwork=true, hostIPC=true)"),
    (pod(volumes=[{"name": "v", "hostPath": {}}, {"name": "w", "hostPath": {}}]),
     'hostPath volumes (volumes "v", "w")'),
    ({"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 1}]}]},
     'hostPort (container "a" uses hostPorts 443, 80)'),
    ({"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}]},
     'probe or lifecycle host (container "a" uses probe or lifecycle host "10.0.0.1")'),
    (pod({"privileged": True}), 'privileged (container "a" must not set securityContext.privileged=true)'),
    (pod({"procMount": "Unmasked"}), 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
    (pod({"seLinuxOptions": {"type": "x", "user": "u"}}, securityContext={"seLinuxOptions": {"role": "r"}}),
     'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "x"; '
     "user may not be set; role may not be set)"),
    (pod({"seccompProfile": {"type": "Unconfined"}}),
     'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")'),
    (pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_syncookies"}]}),
     "forbidden sysctls (kernel.msgmax)"),
    (pod(securityContext={"windowsOptions": {"hostProcess": True}}),
     "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), BASELINE)
def test_baseline(spec: Object, words: str) -> None:
    assert found("baseline", spec) == words
    assert found("privileged", spec) == ""


FURTHER = [
    ({"allowPrivilegeEscalation": True}, 'allowPrivilegeEscalation != false (container "a" must set '
     "securityContext.allowPrivilegeEscalation=false)"),
    ({"capabilities": {"add": ["CHOWN"]}}, 'unrestricted capabilities (container "a" must set '
     'securityContext.capabilities.drop=["ALL"]; container "a" must not include "CHOWN" in '
     "securityContext.capabilities.add)"),
    ({"runAsNonRoot": False}, 'runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false)'),
    ({"runAsNonRoot": None}, 'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)'),
    ({"runAsUser": 0}, 'runAsUser=0 (container "a" must not set runAsUser=0)'),
    ({"seccompProfile": None}, 'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to '
     '"RuntimeDefault" or "Localhost")'),
    ({"procMount": "Unmasked"}, 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), FURTHER)
def test_restricted(change: Object, words: str) -> None:
    assert found("restricted", pod(RESTRICTED)) == ""
    assert found("restricted", pod({**RESTRICTED, **change})) == words


def test_a_stricter_check_stands_in_for_the_one_below() -> None:
    spec = pod(
        RESTRICTED, volumes=[{"name": "v", "hostPath": {}}, {"name": "w", "nfs": {}}, {"name": "e", "emptyDir": {}}]
    )
    words = 'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")'
    assert found("restricted", spec) == words


@pytest.mark.parametrize(
    ("spec", "level", "before", "since"),
    [
        ({"containers": [{"name": "a", "startupProbe": {"tcpSocket": {"host": "h"}}}]}, "baseline", "v1.33", "v1.34"),
        (pod(RESTRICTED | {"runAsUser": 0}), "restricted", "v1.22", "v1.23"),
    ],
)
def test_checks_hold_from_a_version_on(spec: Object, level: str, before: str, since: str) -> None:
    assert found(level, spec, before) == ""
    assert found(level, spec, since) != ""
    assert found(level, spec, "v1.999") == found(level, spec)


def test_what_was_allowed_later() -> None:
    rmem = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]})
    assert found("baseline", rmem, "v1.31") == "forbidden sysctls (net.ipv4.tcp_rmem)"
    assert found("baseline", rmem, "v1.32") == ""
    mapped = pod({"procMount": "Unmasked"}, hostUsers=False)
    assert found("baseline", mapped, "v1.34") != ""
    assert found("baseline", mapped, "v1.35") == ""


def test_policies_of_labels() -> None:
    prefix = "pod-security.kubernetes.io/"
    assert policy_of({}, PodSecurityPolicy()) == (PodSecurityPolicy(), [])
    made, errors = policy_of({f"{prefix}enforce": "baseline", f"{prefix}enforce-version": "v1.30"}, PodSecurityPolicy())
    assert (str(made.enforce), str(made.warn), str(made.audit)) == (
        "baseline:v1.30", "baseline:v1.30", "privileged:latest",
    )  # fmt: skip
    assert not errors
    made, errors = policy_of(
        {f"{prefix}enforce": "x", f"{prefix}warn": "y", f"{prefix}audit-version": "z"}, PodSecurityPolicy()
    )
    assert (made.enforce.level, made.warn.level, made.audit.version) == ("restricted", "privileged", "latest")
    assert len(errors) == 3


def test_what_an_update_may_change() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "one"}]}}
    assert not is_significant_update({**before, "metadata": {}}, before)
    assert is_significant_update({"spec": {"containers": [{"name": "a", "image": "two"}]}}, before)
    added = {"spec": {**before["spec"], "ephemeralContainers": [{"name": "d", "image": "one"}]}}
    assert is_significant_update(added, before)
