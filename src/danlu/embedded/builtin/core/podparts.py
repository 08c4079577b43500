"""The two parts of a pod that change after it was made: its debugging containers, and what its containers may use."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Part
from danlu.embedded.builtin._shared.hooks import keep_status, next_generation
from danlu.embedded.builtin._shared.podspec import quality_of_service
from danlu.embedded.builtin.core.podupdate import validate_pod
from danlu.meta import objects
from danlu.meta.fields import FieldError, forbidden, invalid
from danlu.meta.kind import Object

RESIZED = ("cpu", "memory")


def _keep_metadata(new: Object, old: Object) -> None:
    kept = {"resourceVersion": new["metadata"].get("resourceVersion")}
    managed = new["metadata"].get("managedFields")
    new["metadata"] = {**objects.copy(old["metadata"]), **kept}
    if managed is not None:
        new["metadata"]["managedFields"] = managed


# -- ephemeralcontainers


def prepare_debugging(new: Object, old: Object) -> None:
    containers = (new.get("spec") or {}).get("ephemeralContainers")
    new["spec"] = objects.copy(old["spec"])
    if containers:
        new["spec"]["ephemeralContainers"] = containers
    else:
        new["spec"].pop("ephemeralContainers", None)
    _keep_metadata(new, old)
    keep_status(new, old)
    next_generation(new, old)


def validate_debugging(new: Object, old: Object) -> list[FieldError]:
    errors = validate_pod(new)
    path = "spec.ephemeralContainers"
    now = {one.get("name"): one for one in new["spec"].get("ephemeralContainers") or ()}
    for one in old["spec"].get("ephemeralContainers") or ():
        name = one.get("name")
        if name not in now:
            errors.append(
                forbidden(path, f"existing ephemeral containers {name!r} may not be removed\n".replace("'", '"'))
            )
        elif now[name] != one:
            errors.append(
                forbidden(path, f"existing ephemeral containers {name!r} may not be changed\n".replace("'", '"'))
            )
    return errors


# -- resize


def prepare_resize(new: Object, old: Object) -> None:
    """Only cpu and memory of containers that are there."""
    wanted = new.get("spec") or {}
    new["spec"] = objects.copy(old["spec"])
    for field in ("containers", "initContainers"):
        asked = {one.get("name"): one for one in wanted.get(field) or ()}
        for container in new["spec"].get(field) or ():
            other = asked.get(container["name"])
            if other is not None:
                _take_resources(container, other)
    _keep_metadata(new, old)
    keep_status(new, old)
    next_generation(new, old)


def _take_resources(container: Object, asked: Object) -> None:
    resources = dict(container.get("resources") or {})
    for side in ("requests", "limits"):
        present = {k: v for k, v in (resources.get(side) or {}).items() if k not in RESIZED}
        given = {k: v for k, v in ((asked.get("resources") or {}).get(side) or {}).items() if k in RESIZED}
        if present or given:
            resources[side] = {**present, **given}
        else:
            resources.pop(side, None)
    container["resources"] = resources


def validate_resize(new: Object, old: Object) -> list[FieldError]:
    errors = validate_pod(new)
    if quality_of_service(new["spec"]) != quality_of_service(old["spec"]):
        shown = quality_of_service(new["spec"])
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    for field in ("containers", "initContainers"):
        for index, (now, was) in enumerate(
            zip(new["spec"].get(field) or (), old["spec"].get(field) or (), strict=True)
        ):
            if field == "initContainers" and was.get("restartPolicy") != "Always" and now != was:
                text = "resources for non-sidecar init containers are immutable"
                errors.append(forbidden(f"spec.{field}[{index}].resources", text))
            for side in ("requests", "limits"):
                path = f"spec.{field}[{index}].resources.{side}"
                before, after = ((one.get("resources") or {}).get(side) or {} for one in (was, now))
                gone = [name for name in RESIZED if name in before and name not in after]
                if gone:
                    errors.append(forbidden(path, f"resource {side} cannot be removed"))
    if (old.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        errors.append(forbidden("spec", "pods that have ended cannot be resized"))
    return errors


PARTS = {
    "ephemeralcontainers": Part(prepare_debugging, validate_debugging),
    "resize": Part(prepare_resize, validate_resize),
}
