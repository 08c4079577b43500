"""CustomResourceDefinitions. Conditions, accepted names and stored versions are written together with the object, so a
kind is served, and says so, from the moment its definition is acknowledged.

Names that another definition of the group has taken are found by `apiserver.crds.Naming`, which sees the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import keep_all_but_status, next_generation, schema_of
from danlu.embedded.builtin.apiextensions import crdschema
from danlu.meta import clock, names
from danlu.meta.customkinds import CLEANUP_FINALIZER
from danlu.meta.fields import FieldError, forbidden, immutable, invalid, not_supported, required, too_many
from danlu.meta.kind import Object
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION

_APPROVAL = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_NAMES_NEEDED = ("plural", "singular", "kind", "listKind")


def _spec(obj: Object) -> dict[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    given = spec.setdefault("names", {})
    kind = given.get("kind", "")
    if not given.get("singular") and kind:
        given["singular"] = kind.lower()
    if not given.get("listKind") and kind:
        given["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})
    _remember_stored_version(obj)


def _remember_stored_version(obj: Object) -> None:
    stored = obj.setdefault("status", {}).setdefault("storedVersions", [])
    for version in _spec(obj).get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name", ""))
            break


def accept(obj: Object) -> None:
    """Names taken as asked for, and the kind established."""
    status = obj.setdefault("status", {})
    asked = _spec(obj).get("names") or {}
    kind = asked.get("kind", "")
    status["acceptedNames"] = {
        "plural": asked.get("plural", ""),
        "singular": asked.get("singular") or kind.lower(),
        **({"shortNames": asked["shortNames"]} if asked.get("shortNames") else {}),
        "kind": kind,
        "listKind": asked.get("listKind") or f"{kind}List",
        **({"categories": asked["categories"]} if asked.get("categories") else {}),
    }
    given = status.setdefault("conditions", [])
    for new in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        _true(given, *new)


def _true(given: list[Object], kind: str, reason: str, message: str) -> None:
    if any(one.get("type") == kind and one.get("status") == "True" for one in given):
        return
    given[:] = [one for one in given if one.get("type") != kind]
    now = clock.now_rfc3339()
    given.append({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message})


def prepare_create(obj: Object) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["generation"] = 1
    obj["status"] = {}
    _remember_stored_version(obj)
    accept(obj)
    finalizers = metadata.setdefault("finalizers", [])
    if CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)


def prepare_update(new: Object, old: Object) -> None:
    new["status"] = old.get("status") or {}
    _remember_stored_version(new)
    if not (new.get("metadata") or {}).get("deletionTimestamp"):
        accept(new)
    next_generation(new, old)


def validate(obj: Object) -> list[FieldError]:
    spec = _spec(obj)
    errors = list(_name(obj, spec))
    errors += _specification(spec)
    errors += _stored_versions(obj)
    errors += _approval(obj, spec)
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        detail = f"cannot set to true, {instead}"
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate(new)
    spec, before = _spec(new), _spec(old)
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions):
        errors += immutable("spec.scope", spec.get("scope"), before.get("scope"))
        errors += immutable("spec.names.kind", spec.get("names", {}).get("kind"), before.get("names", {}).get("kind"))
    errors += immutable("spec.group", spec.get("group"), before.get("group"))
    errors += immutable("spec.names.plural", spec.get("names", {}).get("plural"), before.get("names", {}).get("plural"))
    return errors


def _name(obj: Object, spec: dict[str, Any]) -> Iterator[FieldError]:
    name = (obj.get("metadata") or {}).get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name and name != wanted:
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _specification(spec: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    group, scope, versions = spec.get("group", ""), spec.get("scope", ""), spec.get("versions") or []
    if not group:
        errors.append(required("spec.group"))
    elif texts := names.dns_subdomain(group):
        errors.append(invalid("spec.group", group, ",".join(texts)))
    elif "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if not scope:
        errors.append(required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    errors += _versions(versions)
    seen = [version.get("name") for version in versions]
    if len(set(seen)) != len(seen):
        errors.append(invalid("spec.versions", versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid("spec.versions", versions, detail))
    given = spec.get("names") or {}
    errors += [required(f"spec.names.{key}") for key in _NAMES_NEEDED if not given.get(key)]
    errors += _names(given, "spec.names")
    errors += _conversion(spec.get("conversion") or {})
    return errors


def _versions(versions: list[dict[str, Any]]) -> list[FieldError]:
    """Per-version parts that all versions share are reported at the top, where apiextensions keeps them inside."""
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if not isinstance((version.get("schema") or {}).get("openAPIV3Schema"), dict):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    shared = {
        part: bool(versions) and all(v.get(part) and v.get(part) == versions[0].get(part) for v in versions)
        for part in ("schema", "subresources", "additionalPrinterColumns")
    }
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name", "")
        if texts := names.dns1035_label(name):
            errors.append(invalid(f"{path}.name", name, ",".join(texts)))
        warning = version.get("deprecationWarning")
        errors += [invalid(f"{path}.deprecationWarning", warning, text) for text in _deprecation(version, warning)]
        errors += _version_parts(version, path, {part for part in shared if not shared[part]})
        errors += _selectable(version, f"{path}.selectableFields")
    if versions:
        errors += _version_parts(versions[0], "spec", {part for part in shared if shared[part]})
    return errors


def _version_parts(version: dict[str, Any], path: str, parts: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    top = path == "spec"
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    subresources = version.get("subresources") or {}
    if "schema" in parts and isinstance(schema, dict):
        place = f"{path}.validation.openAPIV3Schema" if top else f"{path}.schema.openAPIV3Schema"
        errors += crdschema.validate(schema, place, status=subresources.get("status") is not None)
    if "subresources" in parts and subresources.get("scale") is not None:
        errors += _scale(subresources["scale"], f"{path}.subresources.scale")
    if "additionalPrinterColumns" in parts:
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            errors += _column(column, f"{path}.additionalPrinterColumns[{index}]")
    return errors


def _deprecation(version: dict[str, Any], warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    for index, letter in enumerate(warning):
        if not letter.isprintable():
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            break


def _scale(scale: dict[str, Any], path: str) -> Iterator[FieldError]:
    for key, roots, detail in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value = scale.get(key) or ""
        if not value:
            if key != "labelSelectorPath":
                yield required(f"{path}.{key}")
        elif not value.startswith("."):
            yield invalid(f"{path}.{key}", value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            yield invalid(f"{path}.{key}", value, detail)


def _column(column: dict[str, Any], path: str) -> Iterator[FieldError]:
    kind, form, where = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    if not column.get("name"):
        yield required(f"{path}.name")
    if kind not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not where:
        yield required(f"{path}.JSONPath")
    elif not where.startswith("."):
        yield invalid(f"{path}.JSONPath", where, "must be a simple json path starting with .")


def _selectable(version: dict[str, Any], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, one in enumerate(version.get("selectableFields") or ()):
        place, where = f"{path}[{index}].jsonPath", one.get("jsonPath", "")
        if not where:
            yield required(place)
            continue
        schema: Any = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for step in where.removeprefix(".").split("."):
            schema = (schema.get("properties") or {}).get(step) or {}
        if not where.startswith(".") or not schema:
            yield invalid(place, where, "is an invalid path: does not refer to a valid field")
            continue
        if where.startswith(".metadata"):
            yield invalid(place, where, "must not point to fields in metadata")
        if schema.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid(place, where, detail)
        if where in seen:
            yield FieldError("FieldValueDuplicate", place, where)
        seen.add(where)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(path, len(seen), _MOST_SELECTABLE)


def _names(given: dict[str, Any], path: str) -> Iterator[FieldError]:
    for key in ("plural", "singular"):
        if given.get(key) and (texts := names.dns1035_label(given[key])):
            yield invalid(f"{path}.{key}", given[key], ",".join(texts))
    for key in ("kind", "listKind"):
        if given.get(key) and (texts := names.dns1035_label(given[key].lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(texts)}"
            yield invalid(f"{path}.{key}", given[key], detail)
    for key in ("shortNames", "categories"):
        if key == "categories" and given.get("kind") and given.get("kind") == given.get("listKind"):
            yield invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
        for index, name in enumerate(given.get(key) or ()):
            if texts := names.dns1035_label(name):
                yield invalid(f"{path}.{key}[{index}]", name, ",".join(texts))


def _conversion(conversion: dict[str, Any]) -> Iterator[FieldError]:
    strategy = conversion.get("strategy", "None")
    if strategy == "Webhook":
        yield forbidden("spec.conversion.strategy", "conversion webhooks are not served here; use None")
    elif strategy != "None":
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif conversion.get("webhook") is not None:
        detail = "should not be set when strategy is not set to Webhook"
        yield forbidden("spec.conversion.webhookClientConfig", detail)


def _stored_versions(obj: Object) -> Iterator[FieldError]:
    stored = (obj.get("status") or {}).get("storedVersions") or []
    known = {version.get("name"): version for version in _spec(obj).get("versions") or ()}
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    for name, version in known.items():
        if version.get("storage") and name not in stored:
            yield invalid(path, stored, f"must have the storage version {name}")
    for index, name in enumerate(stored):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"{path}[{index}]", name, detail)


def _approval(obj: Object, spec: dict[str, Any]) -> Iterator[FieldError]:
    group = spec.get("group", "")
    if not any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io")):
        return
    given = ((obj.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL, "")
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    place = f"metadata.annotations[{_APPROVAL}]"
    if not given:
        yield required(place, f'protected groups must have approval annotation "{_APPROVAL}", {see}')
    elif not given.startswith(("unapproved", "https://", "http://")):
        detail = (
            f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason starting '
            f'with "unapproved", {see}'
        )
        yield invalid(place, given, detail)


def warnings(obj: Object) -> list[str]:
    found: set[str] = set()
    for version in _spec(obj).get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, dict):
            found |= crdschema.unrecognized_formats(schema)
    return [f'unrecognized format "{form}"' for form in sorted(found)]


SERVED = ServedKind(
    kind=CUSTOM_RESOURCE_DEFINITION,
    schema=schema_of("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"),
    name_errors=names.as_dns_subdomain,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_all_but_status,
    default=default,
    validate=validate,
    validate_update=validate_update,
    warnings=warnings,
    has_status=True,
    unconditional_update=False,
    free_finalizers=True,
)
