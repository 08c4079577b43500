"""What Kubernetes demands of a pod spec as a whole; containers, volumes and placement have files of their own."""

from __future__ import annotations

from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, invalid, not_supported, required
from danlu.meta.kind import Object

RESTART_POLICIES = ("Always", "OnFailure", "Never")


def validate_pod_template(template: Object, path: str) -> list[FieldError]:
    return validate_pod_spec(template.get("spec") or {}, f"{path}.spec")


def validate_pod_spec(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    containers = spec.get("containers") or []
    if not containers:
        errors.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            where, name = f"{path}.{field}[{index}]", container.get("name") or ""
            if not name:
                errors.append(required(f"{where}.name"))
            errors += [invalid(f"{where}.name", name, text) for text in names.dns_label(name)] if name else []
            if name in seen:
                errors.append(duplicate(f"{where}.name", name))
            seen.add(name)
            if not container.get("image"):
                errors.append(required(f"{where}.image"))
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES))
    return errors
