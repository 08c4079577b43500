"""The further checks of the level restricted: what a pod that needs nothing special can do without."""

from __future__ import annotations

from collections.abc import Callable

from danlu.meta.kind import Object
from danlu.meta.podsecurity.baseline import Versions, bad_seccomp, proc_mount, seccomp
from danlu.meta.podsecurity.violations import (
    Check,
    Violation,
    containers,
    containers_of,
    counted,
    in_user_namespace,
    is_windows,
    quoted,
    security_of,
    setters,
)

VOLUMES = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
]
OTHER_VOLUMES = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
]


def escalation(_metadata: Object, spec: Object) -> Violation | None:
    names = [
        one["name"] for one in containers_of(spec) if security_of(one).get("allowPrivilegeEscalation") is not False
    ]
    text = f"{containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", text) if names else None


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    def stated(one: Object, field: str) -> set[str]:
        return set((security_of(one).get("capabilities") or {}).get(field) or ())

    keeping = [one["name"] for one in containers_of(spec) if "ALL" not in stated(one, "drop")]
    adding = [one["name"] for one in containers_of(spec) if stated(one, "add") - {"NET_BIND_SERVICE"}]
    wrong = [f'{containers(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        added = sorted(set().union(*(stated(one, "add") for one in containers_of(spec))) - {"NET_BIND_SERVICE"})
        wrong.append(f"{containers(adding)} must not include {quoted(added)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(wrong)) if wrong else None


def volumes(_metadata: Object, spec: Object) -> Violation | None:
    bad = [one for one in spec.get("volumes") or () if all(one.get(kind) is None for kind in VOLUMES)]
    if not bad:
        return None
    kinds = sorted({next((k for k in OTHER_VOLUMES if one.get(k) is not None), "unknown") for one in bad})
    names = f"{counted('volume', 'volumes', bad)} {quoted(one['name'] for one in bad)}"
    use = f"{counted('uses', 'use', bad)} {counted('restricted volume type', 'restricted volume types', kinds)}"
    return Violation("restricted volume types", f"{names} {use} {quoted(kinds)}")


def non_root(_metadata: Object, spec: Object) -> Violation | None:
    reason, whole = "runAsNonRoot != true", security_of(spec).get("runAsNonRoot")
    said = {one["name"]: security_of(one).get("runAsNonRoot") for one in containers_of(spec)}
    who = setters(whole is False, [name for name, stated in said.items() if stated is False])
    if who:
        return Violation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [name for name, stated in said.items() if stated is None and not whole]
    text = f"pod or {containers(silent)} must set securityContext.runAsNonRoot=true"
    return Violation(reason, text) if silent else None


def user(_metadata: Object, spec: Object) -> Violation | None:
    names = [one["name"] for one in containers_of(spec) if security_of(one).get("runAsUser") == 0]
    who = setters(security_of(spec).get("runAsUser") == 0, names)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp_everywhere(metadata: Object, spec: Object) -> Violation | None:
    explicit = seccomp(metadata, spec)
    if explicit is not None:
        return explicit
    whole = (security_of(spec).get("seccompProfile") or {}).get("type")
    silent = [one["name"] for one in containers_of(spec) if security_of(one).get("seccompProfile") is None]
    if not silent or (whole and not bad_seccomp(spec)):
        return None
    text = (
        f'pod or {containers(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", text)


def _but_for(passes: Callable[[Object], bool], check: Check) -> Check:
    def relaxed(metadata: Object, spec: Object) -> Violation | None:
        return None if passes(spec) else check(metadata, spec)

    return relaxed


CHECKS: dict[str, Versions] = {
    "allowPrivilegeEscalation": ((8, escalation), (25, _but_for(is_windows, escalation))),
    "capabilities_restricted": ((22, capabilities), (25, _but_for(is_windows, capabilities))),
    "procMount_restricted": ((35, proc_mount),),
    "restrictedVolumes": ((0, volumes),),
    "runAsNonRoot": ((0, non_root), (35, _but_for(in_user_namespace, non_root))),
    "runAsUser": ((23, user), (35, _but_for(in_user_namespace, user))),
    "seccompProfile_restricted": ((19, seccomp_everywhere), (25, _but_for(is_windows, seccomp_everywhere))),
}
# In place of which check of the level below each of these stands, where it holds.
OVERRIDES = {
    "capabilities_restricted": "capabilities_baseline",
    "procMount_restricted": "procMount",
    "restrictedVolumes": "hostPathVolumes",
    "seccompProfile_restricted": "seccompProfile_baseline",
}
