"""What is allowed and probably a mistake: said in a Warning header, which kubectl prints."""

from __future__ import annotations

from collections.abc import Iterator

from danlu.embedded.builtin._shared.podspec.placementrules import PREFERRED, REQUIRED
from danlu.embedded.builtin._shared.quantities import parsed
from danlu.meta.kind import Object

_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def pod_warnings(holder: Object, path: str = "") -> list[str]:
    """For a pod (`path` is empty) or a template (`path` is where it stands, such as `spec.template`)."""
    before = f"{path}." if path else ""
    spec, metadata = holder.get("spec") or {}, holder.get("metadata") or {}
    where = f"{before}spec"
    found: list[str] = []
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            found.append(f"{where}.topologySpreadConstraints[{index}].labelSelector: {_NO_SELECTOR}")
    for key in metadata.get("annotations") or ():
        if key in _ANNOTATIONS:
            found.append(f"{before}metadata.annotations[{key}]: {_ANNOTATIONS[key]}")
    for index, volume in enumerate(spec.get("volumes") or ()):
        found += [f"{where}.volumes[{index}].{kind}: {text}" for kind, text in _VOLUMES.items() if volume.get(kind)]
    found += _repeated(spec.get("hostAliases") or [], "ip", f"{where}.hostAliases")
    found += _repeated(spec.get("imagePullSecrets") or [], "name", f"{where}.imagePullSecrets")
    for container, place in _containers(spec, where):
        found += _fractions(container, place)
        found += _hidden_variables(container.get("env") or [], f"{place}.env")
    found += _ports(spec, where)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{where}.terminationGracePeriodSeconds: {text}")
    return found + _affinity(spec.get("affinity") or {}, f"{where}.affinity")


def _containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"


def _repeated(items: list[Object], field: str, path: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        value = item.get(field) or ""
        if value in seen:
            found.append(f'{path}[{index}].{field}: duplicate {field} "{value}"')
        seen.add(value)
    return found


def _fractions(container: Object, path: str) -> list[str]:
    found: list[str] = []
    resources = container.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for side in ("limits", "requests"):
            amount = parsed((resources.get(side) or {}).get(name) or "0")
            if amount is not None and amount.milli() % 1000:
                text = f'fractional byte value "{amount}" is invalid, must be an integer'
                found.append(f"{path}.resources.{side}[{name}]: {text}")
    return found


def _hidden_variables(variables: list[Object], path: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        extends = reference in value and value != reference and variable.get("valueFrom") is None
        if name in seen and not extends:
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            found.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return found


def _ports(spec: Object, path: str) -> list[str]:
    same: list[str] = []
    named: list[str] = []
    by_port: dict[tuple[object, object], list[tuple[Object, str]]] = {}
    by_name: dict[str, str] = {}
    for container, place in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            where, name = f"{place}.ports[{index}]", port.get("name") or ""
            others = by_port.setdefault((port.get("containerPort"), port.get("protocol")), [])
            same += [text for other, at in others if (text := _clash(port, other, where, at))]
            others.append((port, where))
            if name in by_name:
                first = by_name[name]
                text = f"services and probes that select ports by name will use {first}"
                named.append(f'{where}: duplicate port name "{name}" with {first}, {text}')
            elif name:
                by_name[name] = where
    return same + named


def _clash(port: Object, other: Object, where: str, at: str) -> str:
    address, host = port.get("hostIP") or "", port.get("hostPort") or 0
    other_address, other_host = other.get("hostIP") or "", other.get("hostPort") or 0
    if (address, host) == (other_address, other_host):
        return f"{where}: duplicate port definition with {at}"
    if not host or not other_host:
        return f"{where}: overlapping port definition with {at}"
    if host == other_host and bool(address) != bool(other_address):
        return f"{where}: dangerously ambiguous port definition with {at}"
    return ""


def _affinity(affinity: Object, path: str) -> list[str]:
    found: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        given = affinity.get(kind) or {}
        for index, term in enumerate(given.get(REQUIRED) or ()):
            if term.get("labelSelector") is None:
                found.append(f"{path}.{kind}.{REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}")
        for index, term in enumerate(given.get(PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                found.append(f"{path}.{kind}.{PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return found
