"""Security contexts of pods and containers."""

from __future__ import annotations

import re

from danlu.embedded.builtin._shared.diffs import as_struct
from danlu.embedded.builtin._shared.podspec.volumepaths import descending
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from danlu.meta.kind import Object

MAX_ID = 2**31 - 1
MAX_PROFILE = 4095  # a path's length
PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SEGMENT}[\./])*{_SEGMENT}$"
_sysctl = re.compile(_SYSCTL)
_HOST_NETWORK_SYSCTLS = ("net.",)
_HOST_IPC_SYSCTLS = ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")
# A pod for one operating system says nothing that only the other one has.
_LINUX_ONLY_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTEXT_FIELDS: Object = dict.fromkeys(
    (
        "capabilities",
        "privileged",
        "seLinuxOptions",
        "windowsOptions",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "readOnlyRootFilesystem",
        "allowPrivilegeEscalation",
        "procMount",
        "seccompProfile",
        "appArmorProfile",
    )
)
_LINUX_ONLY_SPEC = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")
_LINUX_ONLY_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def _id_errors(value: int | None, path: str) -> list[FieldError]:
    if value is None:
        return []
    return [invalid(path, value, text) for text in names.in_range(value, 0, MAX_ID)]


def pod_security_errors(spec: Object, path: str) -> list[FieldError]:
    context: Object = spec.get("securityContext") or {}
    where = f"{path}.securityContext"
    errors: list[FieldError] = []
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{where}.shareProcessNamespace", True, text))
    if not context:
        return errors
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _id_errors(context.get(field), f"{where}.{field}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _id_errors(group, f"{where}.supplementalGroups[{index}]")
    errors += _sysctl_errors(context.get("sysctls") or [], spec, f"{where}.sysctls")
    errors += _choice_errors(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), where)
    errors += _seccomp_errors(context.get("seccompProfile"), f"{where}.seccompProfile")
    errors += _app_armor_errors(context.get("appArmorProfile"), f"{where}.appArmorProfile")
    errors += _choice_errors(context, "supplementalGroupsPolicy", ("Merge", "Strict"), where)
    return errors + _choice_errors(context, "seLinuxChangePolicy", ("MountOption", "Recursive"), where)


def _choice_errors(context: Object, field: str, choices: tuple[str, ...], path: str) -> list[FieldError]:
    value = context.get(field)
    return [] if value is None or value in choices else [not_supported(f"{path}.{field}", value, choices)]


def _sysctl_errors(sysctls: list[Object], spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, where = sysctl.get("name") or "", f"{path}[{index}].name"
        if not name:
            errors.append(required(where))
        elif len(name) > 253 or not _sysctl.fullmatch(name):
            errors.append(invalid(where, name, f"must have at most 253 characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(duplicate(where, name))
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith(_HOST_NETWORK_SYSCTLS):
            errors.append(invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(_HOST_IPC_SYSCTLS):
            errors.append(invalid(where, name, "may not be specified when 'hostIPC' is true"))
        seen.add(name)
    return errors


def _seccomp_errors(profile: Object | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    errors: list[FieldError] = []
    sort, file = profile.get("type") or "", profile.get("localhostProfile")
    if not sort:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif sort not in PROFILES:
        errors.append(not_supported(f"{path}.type", sort, PROFILES))
    if sort == "Localhost":
        if file is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += descending(file, f"{path}.localhostProfile")
    elif file is not None:
        text = "can only be set when seccomp type is Localhost"
        shown = as_struct(profile, {"type": "", "localhostProfile": None})
        errors.append(invalid(f"{path}.localhostProfile", shown, text))
    return errors


def _app_armor_errors(profile: Object | None, path: str) -> list[FieldError]:
    if profile is None:
        return []
    sort, file, where = profile.get("type") or "", profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not sort:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if sort not in PROFILES:
        return [not_supported(f"{path}.type", sort, PROFILES)]
    if sort != "Localhost":
        text = "can only be set when AppArmor type is Localhost"
        return [invalid(where, file, text)] if file is not None else []
    errors: list[FieldError] = []
    if file is None or not file:
        errors.append(required(where, "must be set when AppArmor type is Localhost"))
    elif file.strip() != file:
        errors.append(invalid(where, file, "must not be padded with whitespace"))
    if file is not None and len(file) > MAX_PROFILE:
        errors.append(too_long(where, file, MAX_PROFILE))
    return errors


def container_security_errors(context: Object | None, path: str, host_users: bool) -> list[FieldError]:
    if not context:
        return []
    errors = _id_errors(context.get("runAsUser"), f"{path}.runAsUser")
    errors += _id_errors(context.get("runAsGroup"), f"{path}.runAsGroup")
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        if host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _seccomp_errors(context.get("seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        without = "cannot set `allowPrivilegeEscalation` to false and"
        shown = as_struct(context, _CONTEXT_FIELDS)
        if context.get("privileged"):
            errors.append(invalid(path, shown, f"{without} `privileged` to true"))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            errors.append(invalid(path, shown, f"{without} `capabilities.Add` CAP_SYS_ADMIN"))
    return errors + _app_armor_errors(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def host_user_errors(spec: Object, path: str) -> list[FieldError]:
    """A user namespace of its own does not go together with the host's other namespaces."""
    if spec.get("hostUsers") is not False:
        return []
    text = "when `hostUsers` is false"
    fields = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    errors = [forbidden(f"{path}.{shown}", text) for field, shown in fields if spec.get(field)]
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            if container.get("volumeDevices"):
                errors.append(forbidden(f"{path}.{name}[{index}].volumeDevices", text))
    return errors


def system_errors(spec: Object, path: str) -> list[FieldError]:
    """What `spec.os` says, and what the other system's settings then have no place for."""
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name") or ""
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    linux = name == "linux"
    text = "windows options cannot be set for a linux pod" if linux else "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    wrong: tuple[str, ...] = ("windowsOptions",) if linux else _LINUX_ONLY_POD
    errors = [forbidden(f"{path}.securityContext.{key}", text) for key in wrong if context.get(key) is not None]
    if not linux:
        errors += [forbidden(f"{path}.{key}", text) for key in _LINUX_ONLY_SPEC if spec.get(key)]
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            inner = container.get("securityContext") or {}
            where = f"{path}.{kind}[{index}].securityContext"
            wrong = ("windowsOptions",) if linux else _LINUX_ONLY_CONTAINER
            errors += [forbidden(f"{where}.{key}", text) for key in wrong if inner.get(key) is not None]
    return errors
