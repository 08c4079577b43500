"""Where volumes appear in a container: mounts, and block devices."""

from __future__ import annotations

from danlu.embedded.builtin._shared.podspec.volumepaths import descending, no_backsteps
from danlu.meta.fields import FieldError, forbidden, invalid, not_found, not_supported, required
from danlu.meta.kind import Object

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mount_errors(
    container: Object, mounts: list[Object], devices: list[Object], volumes: dict[str, Object], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    device_names = {device.get("name") or "" for device in devices}
    device_paths = {device.get("devicePath") or "" for device in devices}
    for index, mount in enumerate(mounts):
        where, name, point = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(not_found(f"{where}.name", name))
        if not point:
            errors.append(required(f"{where}.mountPath"))
        if point in seen:
            errors.append(invalid(f"{where}.mountPath", point, "must be unique"))
        seen.add(point)
        if name in device_names:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeDevices"))
        if point in device_paths:
            text = "must not already exist as a path in volumeDevices"
            errors.append(invalid(f"{where}.mountPath", point, text))
        errors += _sub_path_errors(mount, where, path)
        errors += _propagation_errors(mount, container, path)
    return errors


def _sub_path_errors(mount: Object, where: str, path: str) -> list[FieldError]:
    """Kubernetes names the list and not the mount for these; so do we."""
    errors: list[FieldError] = []
    plain, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
    if plain:
        errors += descending(plain, f"{path}.subPath")
    if expression:
        if plain:
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{where}.subPathExpr", expression, text))
        errors += descending(expression, f"{path}.subPathExpr")
    return errors


def _propagation_errors(mount: Object, container: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None:
        if propagation not in PROPAGATIONS:
            errors.append(not_supported(f"{path}.mountPropagation", propagation, PROPAGATIONS))
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            text = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{path}.mountPropagation", text))
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            text = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(f"{path}.recursiveReadOnly", text))
    elif recursive not in (None, "Disabled"):
        errors.append(not_supported(f"{path}.recursiveReadOnly", recursive, RECURSIVE))
    return errors


def device_errors(
    devices: list[Object], mounts: list[Object], volumes: dict[str, Object], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    paths: set[str] = set()
    mount_names = {mount.get("name") or "" for mount in mounts}
    mount_paths = {mount.get("mountPath") or "" for mount in mounts}
    for index, device in enumerate(devices):
        where, name, point = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if not name:
            errors.append(required(f"{where}.name"))
        if name in names:
            errors.append(invalid(f"{where}.name", name, "must be unique"))
        if volume is None:
            errors.append(not_found(f"{where}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{where}.name", name, text))
        if not point:
            errors.append(required(f"{where}.devicePath"))
        if point in paths:
            errors.append(invalid(f"{where}.devicePath", point, "must be unique"))
        if no_backsteps(point, where):
            errors.append(invalid(f"{where}.devicePath", point, "can not contain backsteps ('..')"))
        if name in mount_names:
            errors.append(invalid(f"{where}.name", name, "must not already exist in volumeMounts"))
        if point in mount_paths:
            text = "must not already exist as a path in volumeMounts"
            errors.append(invalid(f"{where}.devicePath", point, text))
        names.add(name)
        paths.add(point)
    return errors
