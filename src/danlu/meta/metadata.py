"""Validation of ObjectMeta. It runs on every write, so the common case does no work but look-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from danlu.meta.fields import (
    FieldError,
    forbidden,
    go_json,
    immutable,
    invalid,
    not_negative,
    required,
    too_long,
)
from danlu.meta.kind import Object
from danlu.meta.labels import validate_labels
from danlu.meta.names import as_dns_label, qualified_name

ANNOTATIONS_LIMIT = 256 * 1024  # bytes of keys and values together
FIELD_MANAGER_LIMIT = 128
_SUBRESOURCE_LIMIT = 256
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

NameErrors = Callable[[str, bool], Sequence[str]]


def validate_metadata(
    meta: Object, namespaced: bool, name_errors: NameErrors, field: str = "metadata", *, native: bool = False
) -> list[FieldError]:
    """For a create: the name and namespace are already filled in by the server.

    `native`: built-in kinds are stricter about finalizers than custom ones.
    """
    errors: list[FieldError] = []
    prefix = meta.get("generateName")
    if prefix:
        errors += [invalid(f"{field}.generateName", prefix, text) for text in name_errors(prefix, True)]
    name = meta.get("name")
    if not name:
        errors.append(required(f"{field}.name", "name or generateName is required"))
    else:
        errors += [invalid(f"{field}.name", name, text) for text in name_errors(name, False)]
    namespace = meta.get("namespace")
    if namespaced and not namespace:
        errors.append(required(f"{field}.namespace"))
    elif namespaced:
        errors += [invalid(f"{field}.namespace", namespace, text) for text in as_dns_label(namespace or "")]
    elif namespace:
        errors.append(forbidden(f"{field}.namespace", "not allowed on this type"))
    errors += not_negative(f"{field}.generation", meta.get("generation"))
    errors += _validate_lists(meta, field)
    if finalizers := meta.get("finalizers"):
        errors += validate_finalizers(finalizers, f"{field}.finalizers", native)
    return errors


def validate_metadata_update(
    new: Object, old: Object, field: str = "metadata", *, native: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            names = ", ".join(go_json(name) for name in added)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers"
            errors.append(forbidden(f"{field}.finalizers", f"{text} []string{{{names}}}"))
    if not new.get("resourceVersion"):
        errors.append(invalid(f"{field}.resourceVersion", "", "must be specified for an update"))
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(invalid(f"{field}.generation", new.get("generation") or 0, "must not be decremented"))
    for name in _IMMUTABLE:
        if new.get(name) != old.get(name):
            errors += immutable(f"{field}.{name}", new.get(name), old.get(name))
    if new.get("finalizers") != old.get("finalizers"):
        errors += validate_finalizers(new.get("finalizers") or (), f"{field}.finalizers", native)
    return errors + _validate_lists(new, field)


def _validate_lists(meta: Object, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, f"{field}.labels")
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, f"{field}.annotations")
    if owners := meta.get("ownerReferences"):
        errors += validate_owner_references(owners, f"{field}.ownerReferences")
    if managed := meta.get("managedFields"):
        errors += validate_managed_fields(managed, f"{field}.managedFields")
    return errors


def validate_annotations(annotations: Mapping[str, str], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        errors += [invalid(field, key, text) for text in qualified_name(key.lower())]
        size += _bytes(key) + _bytes(value)
    if size > ANNOTATIONS_LIMIT:
        errors.append(too_long(field, "", ANNOTATIONS_LIMIT))
    return errors


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def validate_owner_references(owners: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        errors += _validate_owner(owner, field)
        if not owner.get("controller"):
            continue
        this = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            text = 'Only one reference can have Controller set to true. Found "true" in references for'
            errors.append(invalid(field, list(owners), f"{text} {controller} and {this}"))
        else:
            controller = this
    return errors


def _validate_owner(owner: Mapping[str, Any], field: str) -> Iterable[FieldError]:
    api_version = owner.get("apiVersion") or ""
    if not api_version.rpartition("/")[2]:
        yield invalid(f"{field}.apiVersion", api_version, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            yield invalid(f"{field}.{name}", "", "must not be empty")
    if api_version == "v1" and owner.get("kind") == "Event":
        yield invalid(field, dict(owner), "/v1, Kind=Event is disallowed from being an owner")


def validate_finalizers(finalizers: Sequence[str], field: str, native: bool = False) -> list[FieldError]:
    errors = [invalid(field, name, text) for name in finalizers for text in qualified_name(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(field, list(finalizers), text))
    for index, name in enumerate(finalizers if native else ()):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"{field}[{index}]", name, text))
    return errors


def validate_field_manager(manager: str, field: str = "fieldManager") -> list[FieldError]:
    if manager.isprintable() and len(manager) <= FIELD_MANAGER_LIMIT // 4:
        return []  # short enough in bytes whatever its letters are
    errors: list[FieldError] = []
    if _bytes(manager) > FIELD_MANAGER_LIMIT:
        errors.append(too_long(field, "", FIELD_MANAGER_LIMIT))
    position = 0
    for character in manager:
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(invalid(field, manager, text))
        position += _bytes(character)
    return errors


def validate_managed_fields(entries: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        at = f"{field}[{index}]"
        if entry.get("operation") not in ("Apply", "Update"):
            errors.append(invalid(f"{at}.operation", entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType", "FieldsV1") not in ("", "FieldsV1"):
            errors.append(invalid(f"{at}.fieldsType", entry.get("fieldsType"), "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager") or "", f"{at}.manager")
        if _bytes(entry.get("subresource") or "") > _SUBRESOURCE_LIMIT:
            errors.append(too_long(f"{at}.subresource", "", _SUBRESOURCE_LIMIT))
    return errors
