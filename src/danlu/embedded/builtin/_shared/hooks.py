"""What the built-in kinds have in common on the way in: status kept apart from spec, generations, columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.served import Column
from danlu.meta import clock
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.meta.schema import Schema


def schema_of(definition: str) -> Callable[[], Schema]:
    """The schema of a Kubernetes definition, read when first asked for."""

    @functools.cache
    def load() -> Schema:
        from danlu.meta.schema import native

        return native(definition)

    return load


# -- status and spec


def drop_status(obj: Object) -> None:
    obj.pop("status", None)


def keep_status(new: Object, old: Object) -> None:
    """An update through the main resource does not touch status."""
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def keep_spec(new: Object, old: Object) -> None:
    """An update through /status does not touch the spec."""
    if "spec" in old:
        new["spec"] = old["spec"]
    else:
        new.pop("spec", None)


def keep_all_but_status(new: Object, old: Object) -> None:
    """An update through /status changes status and nothing else that a user set: not the spec, labels or owners."""
    for key in [key for key in new if key not in ("apiVersion", "kind", "metadata", "status")]:
        if key not in old:
            del new[key]
    for key, value in old.items():
        if key not in ("apiVersion", "kind", "metadata", "status"):
            new[key] = value
    metadata, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    for key in ("generation", "deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)


def first_generation(obj: Object) -> None:
    obj.setdefault("metadata", {})["generation"] = 1


def next_generation(new: Object, old: Object) -> None:
    """Count up when the spec changed. The pipeline defaults `new` first: a re-apply without defaults is no change."""
    generation = (old.get("metadata") or {}).get("generation") or 0
    if new.get("spec") != old.get("spec"):
        generation += 1
    if generation:
        new.setdefault("metadata", {})["generation"] = generation


def keep_status_and_count(new: Object, old: Object) -> None:
    """The update of most kinds that have a status."""
    keep_status(new, old)
    next_generation(new, old)


# -- columns


def name_of(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def age_of(obj: Object) -> str:
    return clock.age((obj.get("metadata") or {}).get("creationTimestamp"))


NAME = Column(
    "Name",
    name_of,
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may "
        "allow a client to request the generation of an appropriate name automatically."
    ),
)
AGE = Column("Age", age_of, description="When the object was created, as the time since then.")
