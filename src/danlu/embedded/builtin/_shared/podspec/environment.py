"""Environment variables, where their values come from, and the downward API's references."""

from __future__ import annotations

from typing import Any

from danlu.embedded.builtin._shared.podspec.volumepaths import no_backsteps
from danlu.embedded.builtin._shared.quantities import not_a_quantity, parsed
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object

ENVIRONMENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = frozenset(
    {*ENVIRONMENT_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def environment_errors(variables: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        name, source = variable.get("name") or "", variable.get("valueFrom")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        else:
            texts = names.relaxed_environment_name(name)
            if texts:
                errors += [invalid(f"{path}[{index}].name", name, text) for text in texts]
        if source is not None:
            errors += _source_errors(source, variable.get("value") or "", f"{path}[{index}].valueFrom")
    return errors


def _source_errors(source: Object, value: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        reference, where = source[name], f"{path}.{name}"
        if name == "fieldRef":
            errors += field_reference_errors(reference, ENVIRONMENT_FIELDS, where)
        elif name == "resourceFieldRef":
            errors += resource_reference_errors(reference, where, in_volume=False)
        elif name == "fileKeyRef":
            errors += _file_errors(reference, where)
        else:
            errors += _key_errors(reference, where)
    if not given:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", text))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _key_errors(reference: Object, path: str) -> list[FieldError]:
    name, key = reference.get("name") or "", reference.get("key") or ""
    errors = [invalid(f"{path}.name", name, text) for text in names.dns_subdomain(name)]
    if not key:
        return [*errors, required(f"{path}.key")]
    return errors + [invalid(f"{path}.key", key, text) for text in names.config_key(key)]


def _file_errors(reference: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, volume, file = (reference.get(name) or "" for name in ("key", "volumeName", "path"))
    if key:
        errors += [invalid(f"{path}.key", key, text) for text in names.relaxed_environment_name(key)]
    else:
        errors.append(required(f"{path}.key"))
    if volume:
        errors += [invalid(f"{path}.volumeName", volume, text) for text in names.dns_label(volume)]
    else:
        errors.append(required(f"{path}.volumeName"))
    return errors + (no_backsteps(file, f"{path}.path") if file else [required(f"{path}.path")])


def field_reference_errors(reference: Object, allowed: tuple[str, ...], path: str) -> list[FieldError]:
    """A field of the pod: `metadata.name`, `metadata.labels['app']`."""
    version, field = reference.get("apiVersion") or "", reference.get("fieldPath") or ""
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    problem = ""
    base, bracket, subscript = field.partition("['")
    subscripted = bool(bracket and base and field.endswith("']"))
    if version != "v1":
        problem = f"unsupported pod version: {version}"
    elif subscripted and base not in ("metadata.annotations", "metadata.labels"):
        problem = f"field label does not support subscript: {field}"
    elif not subscripted and field not in _KNOWN_FIELDS and field != "spec.host":
        problem = f"field label not supported: {field}"
    if problem:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if subscripted:
        key = subscript.removesuffix("']")
        key = key.lower() if base == "metadata.annotations" else key
        return [invalid(path, key, text) for text in names.qualified_name(key)]
    field = "spec.nodeName" if field == "spec.host" else field
    return [] if field in allowed else [not_supported(f"{path}.fieldPath", field, allowed)]


def resource_reference_errors(reference: Object, path: str, *, in_volume: bool) -> list[FieldError]:
    """A limit or a request of a container, in units of `divisor`."""
    errors: list[FieldError] = []
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(f"{path}.resource", resource, RESOURCES))
    return errors + _divisor_errors(resource, reference.get("divisor"), f"{path}.divisor")


def _divisor_errors(resource: str, divisor: Any, path: str) -> list[FieldError]:
    if divisor in (None, "0"):
        return []
    amount = parsed(divisor)
    if amount is None:
        return [not_a_quantity(path, divisor)]
    if not amount:
        return []
    shown = str(amount)
    if resource.endswith(".cpu"):
        text = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [] if shown in ("1m", "1") else [invalid(path, resource, text)]
    what = "hugepages" if resource.startswith(_HUGE_PAGES) else ""
    what = "memory" if resource.endswith(".memory") else what
    what = "local ephemeral storage" if resource.endswith(".ephemeral-storage") else what
    if not what or shown in _SIZES:
        return []
    return [
        invalid(path, resource, f"only divisor's values {', '.join(_SIZES)} are supported with the {what} resource")
    ]


def environment_from_errors(sources: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, source in enumerate(sources):
        prefix = source.get("prefix") or ""
        if prefix:
            texts = names.relaxed_environment_name(prefix)
            errors += [invalid(f"{path}[{index}].prefix", prefix, text) for text in texts]
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for kind in given:
            where, name = f"{path}[{index}].{kind}.name", source[kind].get("name") or ""
            if not name:
                errors.append(required(where))
            else:
                errors += [invalid(where, name, text) for text in names.as_dns_subdomain(name, True)]
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors
