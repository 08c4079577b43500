"""Namespaces. `spec.finalizers` holds a namespace until its contents are gone; only /finalize may shorten it."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.apiserver.subresources.finalize import FINALIZE
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.meta import names
from danlu.meta.fields import FieldError, invalid
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
_STANDARD_FINALIZERS = frozenset({FINALIZER, "orphan", "foregroundDeletion"})


def prepare_create(obj: Object) -> None:
    obj["status"] = {"phase": "Active"}
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    finalizers = list(spec.get("finalizers") or [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    spec["finalizers"] = finalizers


def prepare_update(new: Object, old: Object) -> None:
    keep_spec(new, old)
    keep_status(new, old)


def default(obj: Object) -> None:
    metadata = obj.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata.get("labels")
        if labels is None:
            labels = metadata["labels"] = {}
        labels[NAME_LABEL] = metadata["name"]
    status = obj.get("status")
    if status is None:
        status = obj["status"] = {}
    if not status.get("phase"):
        status["phase"] = "Active"


def finalizer_errors(path: str, name: str) -> list[FieldError]:
    errors = [invalid(path, name, text) for text in names.qualified_name(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid(path, name, text))
    return errors


def validate(obj: Object) -> list[FieldError]:
    finalizers = (obj.get("spec") or {}).get("finalizers") or ()
    return [error for name in finalizers for error in finalizer_errors("spec.finalizers", name)]


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


def validate_status(new: Object, old: Object) -> list[FieldError]:
    phase = (new.get("status") or {}).get("phase") or ""
    deleting = bool((new.get("metadata") or {}).get("deletionTimestamp"))
    if not deleting and phase != "Active":
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    if deleting and phase != "Terminating":
        return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
    return []


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def mark_deleting(obj: Object) -> None:
    """A namespace has no grace period: it goes when it is empty."""
    obj.setdefault("status", {})["phase"] = "Terminating"
    obj["metadata"].pop("deletionGracePeriodSeconds", None)


SERVED = ServedKind(
    kind=NAMESPACE,
    schema=schema_of("io.k8s.api.core.v1.Namespace"),
    name_errors=names.as_dns_label,
    columns=(NAME, Column("Status", _phase, description="The status of the namespace"), AGE),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    selectable=lambda obj: {"status.phase": _phase(obj), "name": (obj.get("metadata") or {}).get("name") or ""},
    selectable_names=frozenset({"status.phase"}),
    has_status=True,
    held=lambda obj: bool((obj.get("spec") or {}).get("finalizers")),
    mark_deleting=mark_deleting,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    subresources={"finalize": FINALIZE},
    returns_deleted=True,
)
