"""Containers of all three lists: regular ones, init containers (sidecars among them) and ephemeral ones."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.embedded.builtin._shared.podspec.environment import environment_errors, environment_from_errors
from danlu.embedded.builtin._shared.podspec.handlers import lifecycle_errors, probe_errors
from danlu.embedded.builtin._shared.podspec.mounts import device_errors, mount_errors
from danlu.embedded.builtin._shared.podspec.security import container_security_errors
from danlu.embedded.builtin._shared.podspec.volumes import PULL_POLICIES
from danlu.embedded.builtin._shared.resources import requirement_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required, too_many
from danlu.meta.kind import Object

PROTOCOLS = ("SCTP", "TCP", "UDP")
MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
RESTART_POLICIES = ("Always", "Never", "OnFailure")
RESTART_ACTIONS = ("Restart", "RestartAllContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
PADDED = "must not have leading or trailing whitespace"


@dataclass(frozen=True, slots=True)
class PodContext:
    """What a container's rules need to know about its pod."""

    volumes: dict[str, Object]  # the good ones, by name
    claims: frozenset[str]  # spec.resourceClaims
    grace: int | None
    restart_policy: str
    host_users: bool
    is_pod: bool  # False inside a template, where some checks wait until a pod is made of it


def regular_errors(containers: list[Object], path: str, pod: PodContext) -> list[FieldError]:
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name") or ""
        errors += _common_errors(container, where, pod)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        errors += _running_errors(container, where, pod)
        if container.get("restartPolicy") is not None or container.get("restartPolicyRules"):
            errors += _restart_errors(container, where)
    return errors + _host_port_errors(list(enumerate(containers)), path)


def init_errors(containers: list[Object], regular: list[Object], path: str, pod: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = {container.get("name") or "" for container in regular}
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name") or ""
        errors += _common_errors(container, where, pod)
        if container.get("restartPolicy") is not None or container.get("restartPolicyRules"):
            errors += _restart_errors(container, where)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        elif name:
            seen.add(name)
        # One after the other: only within one container can host ports collide.
        errors += _host_port_errors([(0, container)], path)
        if container.get("restartPolicy") == "Always":
            errors += _running_errors(container, where, pod)
        else:
            fields = ("lifecycle", *PROBES)
            errors += [forbidden(f"{where}.{field}", ONLY_SIDECARS) for field in fields if container.get(field)]
            for at, policy in enumerate(container.get("resizePolicy") or ()):
                if policy.get("restartPolicy") == "RestartContainer":
                    text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                    errors.append(invalid(f"{where}.resizePolicy[{at}].restartPolicy", "RestartContainer", text))
    return errors


def ephemeral_errors(containers: list[Object], others: list[Object], path: str, pod: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    lasting = {container.get("name") or "" for container in others}
    seen = set(lasting)
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name") or ""
        errors += _common_errors(container, where, pod)
        if name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        target = container.get("targetContainerName") or ""
        if target and target not in lasting:
            errors.append(not_found(f"{where}.targetContainerName", target))
        fields = ("ports", "resources", *PROBES, "lifecycle", "restartPolicy", "resizePolicy")
        errors += [forbidden(f"{where}.{field}", NOT_EPHEMERAL) for field in fields if container.get(field)]
        for at, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    errors.append(forbidden(f"{where}.volumeMounts[{at}].{field}", NOT_EPHEMERAL))
    return errors


def _common_errors(container: Object, path: str, pod: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    get = container.get
    name, image = get("name") or "", get("image") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    elif texts := names.as_dns_label(name):
        errors += [invalid(f"{path}.name", name, text) for text in texts]
    if not image:
        errors.append(required(f"{path}.image"))
    elif pod.is_pod and image != image.strip():
        errors.append(invalid(f"{path}.image", image, PADDED))
    errors += _choice(get("terminationMessagePolicy"), MESSAGE_POLICIES, f"{path}.terminationMessagePolicy")
    mounts, devices = get("volumeMounts") or [], get("volumeDevices") or []
    if get("ports"):
        errors += _port_errors(container["ports"], f"{path}.ports")
    if get("env"):
        errors += environment_errors(container["env"], f"{path}.env")
    if get("envFrom"):
        errors += environment_from_errors(container["envFrom"], f"{path}.envFrom")
    if mounts:
        errors += mount_errors(container, mounts, devices, pod.volumes, f"{path}.volumeMounts")
    if devices:
        errors += device_errors(devices, mounts, pod.volumes, f"{path}.volumeDevices")
    errors += _choice(get("imagePullPolicy"), PULL_POLICIES, f"{path}.imagePullPolicy")
    if get("resources"):
        errors += requirement_errors(container["resources"], f"{path}.resources", pod.claims)
    if get("resizePolicy"):
        errors += _resize_errors(container["resizePolicy"], pod.restart_policy, f"{path}.resizePolicy")
    if get("securityContext"):
        errors += container_security_errors(container["securityContext"], f"{path}.securityContext", pod.host_users)
    return errors


def _choice(value: str | None, choices: tuple[str, ...], path: str) -> list[FieldError]:
    if value in choices:
        return []
    return [not_supported(path, value, choices)] if value else [required(path)]


def _running_errors(container: Object, path: str, pod: PodContext) -> list[FieldError]:
    """What only containers have that run beside others."""
    errors: list[FieldError] = []
    if container.get("lifecycle") is not None:
        errors += lifecycle_errors(container["lifecycle"], pod.grace, f"{path}.lifecycle")
    for kind in PROBES:
        if container.get(kind) is not None:
            errors += probe_errors(container[kind], kind, f"{path}.{kind}")
    return errors


def _port_errors(ports: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where, name, protocol = f"{path}[{index}]", port.get("name") or "", port.get("protocol") or ""
        if name:
            texts = names.port_name(name)
            if texts:
                errors += [invalid(f"{where}.name", name, text) for text in texts]
            elif name in seen:
                errors.append(duplicate(f"{where}.name", name))
            seen.add(name)
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            errors.append(required(f"{where}.containerPort"))
        else:
            errors += [invalid(f"{where}.containerPort", number, text) for text in names.port_number(number)]
        if host:
            errors += [invalid(f"{where}.hostPort", host, text) for text in names.port_number(host)]
        errors += _choice(protocol, PROTOCOLS, f"{where}.protocol")
    return errors


def _host_port_errors(containers: list[tuple[int, Object]], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in containers:
        for at, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if key in seen:
                errors.append(duplicate(f"{path}[{index}].ports[{at}].hostPort", key))
            seen.add(key)
    return errors


def _resize_errors(policies: list[Object], restart_policy: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        errors += _choice(resource, ("cpu", "memory"), path)
        errors += _choice(restart, ("NotRequired", "RestartContainer"), path)
        if restart_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _restart_errors(container: Object, path: str) -> list[FieldError]:
    """A restart policy of one container, and rules by exit code that go before it."""
    errors: list[FieldError] = []
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, RESTART_POLICIES))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        where, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") not in RESTART_ACTIONS:
            errors.append(not_supported(f"{where}.action", rule.get("action") or "", RESTART_ACTIONS))
        if codes is None:
            errors.append(required(f"{where}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(not_supported(f"{where}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")))
        values = codes.get("values") or []
        if len(values) > 255:
            errors.append(too_many(f"{where}.exitCodes.values", len(values), 255))
    return errors
