"""CustomResourceDefinitions at work: each becomes a `ServedKind` for every version that it serves.

The registry follows the store synchronously (`Store.observe`): once a definition is acknowledged its kind is served,
and once it is gone its kind is not. A definition whose names are taken is stored, says so in its conditions, and is
not served until it is changed.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.served import Column, ScalePaths, ServedKind
from danlu.embedded.storage import Change, Store
from danlu.meta import clock, fields, names
from danlu.meta.customkinds import is_established, kinds_of
from danlu.meta.fields import FieldError
from danlu.meta.jsonpath import JsonPath, JsonPathError, printed
from danlu.meta.kind import Kind, Object
from danlu.meta.schema import Schema, structural
from danlu.meta.wellknown import CUSTOM_RESOURCE_DEFINITION

log = logging.getLogger("danlu.apiserver.crds")

RESOURCE = CUSTOM_RESOURCE_DEFINITION.resource
_TERMINATING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_OWN = ("apiVersion", "kind", "metadata")


class CustomKinds:
    """Keeps the registry in step with the definitions in the store."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._paths: dict[str, set[tuple[str, str, str]]] = {}  # definition's name -> what it has in the registry
        store.load_each(RESOURCE, lambda stored: self._serve(stored.name, stored.obj, stored.revision))
        store.observe(self._changed, RESOURCE)

    def _changed(self, change: Change) -> None:
        stored = change.stored
        if change.type == "DELETED":
            self._drop(stored.name, keep=set())
        else:
            self._serve(stored.name, stored.obj, stored.revision)

    def _serve(self, name: str, crd: Object, revision: int) -> None:
        try:
            kinds = served_kinds(crd) if is_established(crd) else []
            if any(stored.revision < revision for stored in self._store.scan_latest(name)):
                kinds = [_defaulting_older(served, revision) for served in kinds]
        except Exception:  # stored by other hands than ours: it must not stop the server
            log.exception("the definition %s cannot be served", name)
            kinds = []
        mine = self._paths.get(name, set())
        current = {path for path in map(_path, kinds) if path in mine or self._registry.by_path(*path) is None}
        self._drop(name, keep=current)
        for served in kinds:
            if _path(served) in current:
                self._registry.add(served)
        self._paths[name] = current

    def _drop(self, name: str, *, keep: set[tuple[str, str, str]]) -> None:
        for path in self._paths.pop(name, set()) - keep:
            self._registry.remove(*path)


def _path(served: ServedKind) -> tuple[str, str, str]:
    return served.kind.group, served.kind.version, served.kind.plural


class Naming(Handler):
    """Admission: a definition gets only names that no other definition of its group has, as Kubernetes' naming does."""

    resources = frozenset({RESOURCE})

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, a: Attributes) -> None:
        if a.obj is None or a.subresource or a.operation not in (CREATE, UPDATE):
            return
        spec = a.obj.get("spec") or {}
        resources: set[str] = set()
        kinds: set[str] = set()
        for stored in self._store.scan_latest(RESOURCE):
            other = stored.obj
            if stored.name == a.name or (other.get("spec") or {}).get("group") != spec.get("group"):
                continue
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {taken.get("plural", ""), taken.get("singular", ""), *taken.get("shortNames", ())}
            kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
        conflict = _conflict(spec.get("names") or {}, resources - {""}, kinds - {""})
        if conflict is not None:
            _refuse_names(a.obj, *conflict)


def _conflict(asked: Mapping[str, Any], resources: set[str], kinds: set[str]) -> tuple[str, str] | None:
    """The last conflict counts, as Kubernetes reports it."""
    found: tuple[str, str] | None = None
    for key, taken in (("plural", resources), ("singular", resources)):
        if asked.get(key) in taken:
            found = (f"{key.title()}Conflict", f"{fields.quoted(asked[key])} is already in use")
    short = [f"{fields.quoted(name)} is already in use" for name in asked.get("shortNames") or () if name in resources]
    if short:
        found = ("ShortNamesConflict", fields.aggregate(short))
    for key, reason in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        if asked.get(key) in kinds:
            found = (reason, f"{fields.quoted(asked[key])} is already in use")
    return found


def _refuse_names(crd: Object, reason: str, message: str) -> None:
    status = crd.setdefault("status", {})
    status["acceptedNames"] = {"plural": "", "kind": ""}
    now = clock.now_rfc3339()
    status["conditions"] = [
        {"type": "NamesAccepted", "status": "False", "lastTransitionTime": now, "reason": reason, "message": message},
        {
            "type": "Established",
            "status": "False",
            "lastTransitionTime": now,
            "reason": "NotAccepted",
            "message": "not all names are accepted",
        },
    ]


# -- from a definition to what the pipeline needs


def served_kinds(crd: Object) -> list[ServedKind]:
    versions = {version["name"]: version for version in crd["spec"].get("versions") or ()}
    return [_served(crd, kind, versions[kind.version]) for kind in kinds_of(crd)]


def _served(crd: Object, kind: Kind, version: Mapping[str, Any]) -> ServedKind:
    subresources = version.get("subresources") or {}
    has_status = subresources.get("status") is not None
    schema = _schema(version)
    scale = _scale(subresources.get("scale"))
    selectable = {one["jsonPath"].removeprefix("."): JsonPath(one["jsonPath"]) for one in _selectable_fields(version)}
    stored_version = next((v["name"] for v in crd["spec"]["versions"] if v.get("storage")), kind.version)
    several = len(crd["spec"]["versions"]) > 1
    terminating = bool((crd.get("metadata") or {}).get("deletionTimestamp"))
    extra: dict[str, Any] = {"verbs": _TERMINATING_VERBS} if terminating else {}
    return ServedKind(
        kind=kind,
        schema=schema,
        name_errors=names.as_dns_subdomain,
        columns=_columns(version),
        prepare_create=_prepare_create(has_status=has_status),
        prepare_update=_prepare_update(has_status=has_status),
        prepare_status=_prepare_status,
        default=lambda obj: schema().default(obj),
        validate=lambda obj: [*schema().validate(obj), *_scale_errors(obj, scale)],
        validate_update=lambda new, old: [*schema().validate(new, old), *_scale_errors(new, scale)],
        validate_status=lambda new, old: schema().validate(new, old),
        warnings=_warnings(kind, version),
        selectable=lambda obj: {name: printed(path.first(obj)) for name, path in selectable.items()},
        selectable_names=frozenset(selectable),
        has_status=has_status,
        custom=True,
        free_finalizers=True,
        unconditional_update=False,
        scale=scale,
        storage_version=kind.version == stored_version,
        to_stored=_as_version(f"{kind.group}/{stored_version}") if several else None,
        from_stored=_as_version(kind.api_version) if several else None,
        **extra,
    )


def _defaulting_older(served: ServedKind, revision: int) -> ServedKind:
    """For objects that were stored before the definition was what it is: they get its defaults when they are read."""
    before = served.from_stored

    def read(obj: Object) -> Object:
        obj = before(obj) if before is not None else obj
        if int(obj["metadata"]["resourceVersion"]) < revision:
            served.default(obj)
        return obj

    return replace(served, from_stored=read) if b'"default":' in orjson.dumps(_given(served)) else served


def _given(served: ServedKind) -> Mapping[str, Any]:
    return served.schema().root.schema


def _schema(version: Mapping[str, Any]) -> Callable[[], Schema]:
    given = (version.get("schema") or {}).get("openAPIV3Schema") or {"x-kubernetes-preserve-unknown-fields": True}
    # As text until it is needed: definitions with pod templates in them are large, and many are never used.
    text = orjson.dumps(given)

    @functools.cache
    def load() -> Schema:
        return structural(orjson.loads(text))

    return load


def _as_version(api_version: str) -> Callable[[Object], Object]:
    return lambda obj: {**obj, "apiVersion": api_version}


def _prepare_create(*, has_status: bool) -> Callable[[Object], None]:
    def prepare(obj: Object) -> None:
        if has_status:
            obj.pop("status", None)
        obj.setdefault("metadata", {})["generation"] = 1

    return prepare


def _prepare_update(*, has_status: bool) -> Callable[[Object, Object], None]:
    def prepare(new: Object, old: Object) -> None:
        if has_status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        generation = old.get("metadata", {}).get("generation") or 1
        changed = {k: v for k, v in new.items() if k not in _OWN} != {k: v for k, v in old.items() if k not in _OWN}
        new.setdefault("metadata", {})["generation"] = generation + 1 if changed else generation

    return prepare


def _prepare_status(new: Object, old: Object) -> None:
    """Only status (and who manages it) comes from the request."""
    status, managed = new.get("status"), new.get("metadata", {}).get("managedFields")
    version = new.get("metadata", {}).get("resourceVersion")
    new.clear()
    new.update(old)
    new["metadata"] = dict(old.get("metadata", {}))
    for key, value in (("managedFields", managed), ("resourceVersion", version)):
        if value is not None:
            new["metadata"][key] = value
    new.pop("status", None)
    if status is not None:
        new["status"] = status


def _warnings(kind: Kind, version: Mapping[str, Any]) -> Callable[[Object], list[str]]:
    deprecated: list[str] = []
    if version.get("deprecated"):
        deprecated = [version.get("deprecationWarning") or f"{kind.api_version} {kind.kind} is deprecated"]

    def warn(obj: Object) -> list[str]:
        finalizers = (obj.get("metadata") or {}).get("finalizers")
        return deprecated + _finalizer_warnings(finalizers) if finalizers else deprecated

    return warn


def _finalizer_warnings(finalizers: Sequence[str]) -> list[str]:
    found = []
    for name in finalizers:
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            found.append(
                f"metadata.finalizers: {fields.quoted(name)}: prefer a domain-qualified finalizer name{path} "
                "to avoid accidental conflicts with other finalizer writers"
            )
    return found


def _selectable_fields(version: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    return version.get("selectableFields") or ()


def _scale(given: Mapping[str, str] | None) -> ScalePaths | None:
    if given is None:
        return None
    return ScalePaths(
        given["specReplicasPath"].removeprefix("."),
        given["statusReplicasPath"].removeprefix("."),
        (given.get("labelSelectorPath") or "").removeprefix("."),
    )


def _scale_errors(obj: Object, scale: ScalePaths | None) -> list[FieldError]:
    if scale is None:
        return []
    errors: list[FieldError] = []
    for path in (scale.spec_replicas, scale.status_replicas):
        value = JsonPath(f".{path}").first(obj)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            errors.append(fields.invalid(f".{path}", value, "should be an integer"))
        elif value < 0:
            errors.append(fields.invalid(path, value, "should be a non-negative integer"))
        elif value > 2**31 - 1:
            errors.append(fields.invalid(path, value, f"should be less than or equal to {2**31 - 1}"))
    return errors


# -- columns


def _columns(version: Mapping[str, Any]) -> tuple[Column, ...]:
    given = version.get("additionalPrinterColumns") or [
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    ]
    name = Column("Name", lambda obj: obj.get("metadata", {}).get("name", ""), format="name")
    return (name, *(_column(one) for one in given))


def _column(given: Mapping[str, Any]) -> Column:
    where = given["jsonPath"]
    return Column(
        given["name"],
        _cell(given["type"], where),
        type=given["type"],
        format=given.get("format", ""),
        priority=given.get("priority", 0),
        description=given.get("description") or f"Custom resource definition column (in JSONPath format): {where}",
    )


def _cell(kind: str, where: str) -> Callable[[Object], Any]:
    try:
        path = JsonPath(where)
    except JsonPathError:
        return lambda _: None

    def cell(obj: Object) -> Any:
        found = path.find(obj)
        return _CELLS[kind](found[0]) if found and found[0] is not None else None

    return cell


def _date(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return clock.age(value)
    except ValueError:
        return "<invalid>"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CELLS: dict[str, Callable[[Any], Any]] = {
    "string": printed,
    "integer": lambda value: int(value) if _number(value) else None,
    "number": lambda value: float(value) if _number(value) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "date": _date,
}
