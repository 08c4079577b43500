"""The checks of the level baseline: what is known to break out of a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from danlu.meta.kind import Object
from danlu.meta.podsecurity.violations import (
    Check,
    Violation,
    containers,
    containers_of,
    counted,
    in_user_namespace,
    quoted,
    security_of,
    setters,
)

CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
APP_ARMOR_TYPES = ("RuntimeDefault", "Localhost")
APP_ARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_TYPES = ("RuntimeDefault", "Localhost")
SECCOMP_POD, SECCOMP_CONTAINER = (
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/",
)
SELINUX_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ]
)
SYSCTLS_27 = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29 = SYSCTLS_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
SYSCTLS_32 = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def app_armor(metadata: Object, spec: Object) -> Violation | None:
    def bad(part: Object) -> str:
        stated = (security_of(part).get("appArmorProfile") or {}).get("type")
        return "" if stated is None or stated in APP_ARMOR_TYPES else str(stated)

    names = [one["name"] for one in containers_of(spec) if bad(one)]
    values = sorted({found for part in (spec, *containers_of(spec)) if (found := bad(part))})
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(APP_ARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    who = [setters(bool(bad(spec)), names)] if values else []
    if annotations:
        who.append(counted("annotation", "annotations", annotations))
    values += annotations
    if not values:
        return None
    reason = counted("forbidden AppArmor profile", "forbidden AppArmor profiles", values)
    return Violation(reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}")


def capabilities(_metadata: Object, spec: Object) -> Violation | None:
    def added(one: Object) -> set[str]:
        return set((security_of(one).get("capabilities") or {}).get("add") or ()) - CAPABILITIES

    names = [one["name"] for one in containers_of(spec) if added(one)]
    if not names:
        return None
    found = sorted(set().union(*map(added, containers_of(spec))))
    text = f"{containers(names)} must not include {quoted(found)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", text)


def host_namespaces(_metadata: Object, spec: Object) -> Violation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_paths(_metadata: Object, spec: Object) -> Violation | None:
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{counted('volume', 'volumes', names)} {quoted(names)}") if names else None


def host_ports(_metadata: Object, spec: Object) -> Violation | None:
    def of(one: Object) -> list[int]:
        return [port["hostPort"] for port in one.get("ports") or () if port.get("hostPort")]

    names = [one["name"] for one in containers_of(spec) if of(one)]
    if not names:
        return None
    ports = sorted({str(port) for one in containers_of(spec) for port in of(one)})
    use = f"{counted('uses', 'use', names)} {counted('hostPort', 'hostPorts', ports)} {', '.join(ports)}"
    return Violation("hostPort", f"{containers(names)} {use}")


def handler_hosts(_metadata: Object, spec: Object) -> Violation | None:
    """Probes and hooks that the node would send elsewhere than to the pod."""

    def of(one: Object) -> set[str]:
        hooks = one.get("lifecycle") or {}
        handlers = [one.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [hooks.get(field) for field in ("postStart", "preStop")]
        asked = [(handler or {}).get(way) or {} for handler in handlers for way in ("httpGet", "tcpSocket")]
        return {one["host"] for one in asked if one.get("host")}

    names = sorted({one["name"] for one in containers_of(spec) if of(one)})
    if not names:
        return None
    hosts = sorted(set().union(*map(of, containers_of(spec))))
    word = counted("probe or lifecycle host", "probe or lifecycle hosts", hosts)
    text = f"{containers(names)} {counted('uses', 'use', names)} {word} {quoted(hosts)}"
    return Violation("probe or lifecycle host", text)


def privileged(_metadata: Object, spec: Object) -> Violation | None:
    names = [one["name"] for one in containers_of(spec) if security_of(one).get("privileged")]
    text = f"{containers(names)} must not set securityContext.privileged=true"
    return Violation("privileged", text) if names else None


def proc_mount(_metadata: Object, spec: Object) -> Violation | None:
    def bad(one: Object) -> str:
        stated = security_of(one).get("procMount")
        return "" if stated in (None, "Default") else str(stated)

    names = [one["name"] for one in containers_of(spec) if bad(one)]
    if not names:
        return None
    types = sorted({bad(one) for one in containers_of(spec)} - {""})
    return Violation("procMount", f"{containers(names)} must not set securityContext.procMount to {quoted(types)}")


def proc_mount_35(metadata: Object, spec: Object) -> Violation | None:
    return None if in_user_namespace(spec) else proc_mount(metadata, spec)


def selinux_options(allowed: frozenset[str]) -> Check:
    def check(_metadata: Object, spec: Object) -> Violation | None:
        def bad(part: Object) -> bool:
            stated = security_of(part).get("seLinuxOptions") or {}
            return bool((stated.get("type") or "") not in allowed or stated.get("user") or stated.get("role"))

        names = [one["name"] for one in containers_of(spec) if bad(one)]
        who = setters(bad(spec), names)
        if not who:
            return None
        stated = [security_of(part).get("seLinuxOptions") or {} for part in (spec, *containers_of(spec))]
        types = sorted({one.get("type") or "" for one in stated} - allowed)
        wrong = [f"{counted('type', 'types', types)} {quoted(types)}"] if types else []
        wrong += [f"{field} may not be set" for field in ("user", "role") if any(one.get(field) for one in stated)]
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}")

    return check


def seccomp_annotations(metadata: Object, spec: Object) -> Violation | None:
    """Before 1.19 a profile was an annotation."""
    stated: dict[str, str] = metadata.get("annotations") or {}
    keys = [SECCOMP_POD, *(SECCOMP_CONTAINER + one["name"] for one in containers_of(spec))]
    bad = sorted({f'{key}="{stated[key]}"' for key in keys if key in stated and not _is_profile(stated[key])})
    word = counted("annotation", "annotations", bad)
    return Violation("seccompProfile", f"forbidden {word} {', '.join(bad)}") if bad else None


def _is_profile(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def bad_seccomp(part: Object) -> str:
    stated = (security_of(part).get("seccompProfile") or {}).get("type")
    return "" if stated is None or stated in SECCOMP_TYPES else str(stated)


def seccomp(_metadata: Object, spec: Object) -> Violation | None:
    names = [one["name"] for one in containers_of(spec) if bad_seccomp(one)]
    who = setters(bool(bad_seccomp(spec)), names)
    if not who:
        return None
    values = sorted({bad_seccomp(part) for part in (spec, *containers_of(spec))} - {""})
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {quoted(values)}")


def sysctls(allowed: frozenset[str]) -> Check:
    def check(_metadata: Object, spec: Object) -> Violation | None:
        stated: Iterable[Object] = security_of(spec).get("sysctls") or ()
        bad = [one["name"] for one in stated if one["name"] not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def host_process(_metadata: Object, spec: Object) -> Violation | None:
    def asks(part: Object) -> bool:
        return bool((security_of(part).get("windowsOptions") or {}).get("hostProcess"))

    who = setters(asks(spec), [one["name"] for one in containers_of(spec) if asks(one)])
    text = f"{who} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", text) if who else None


Versions = tuple[tuple[int, Callable[[Object, Object], Violation | None]], ...]

# By the minor version of Kubernetes from which on each holds, in the order in which they are told.
CHECKS: dict[str, Versions] = {
    "appArmorProfile": ((0, app_armor),),
    "capabilities_baseline": ((0, capabilities),),
    "hostNamespaces": ((0, host_namespaces),),
    "hostPathVolumes": ((0, host_paths),),
    "hostPorts": ((0, host_ports),),
    "hostProbesAndHostLifecycle": ((34, handler_hosts),),
    "privileged": ((0, privileged),),
    "procMount": ((0, proc_mount), (35, proc_mount_35)),
    "seLinuxOptions": (
        (0, selinux_options(SELINUX_TYPES)),
        (31, selinux_options(SELINUX_TYPES | {"container_engine_t"})),
    ),
    "seccompProfile_baseline": ((0, seccomp_annotations), (19, seccomp)),
    "sysctls": ((0, sysctls(SYSCTLS)), (27, sysctls(SYSCTLS_27)), (29, sysctls(SYSCTLS_29)), (32, sysctls(SYSCTLS_32))),
    "windowsHostProcess": ((0, host_process),),
}
