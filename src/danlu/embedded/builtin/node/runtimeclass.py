"""RuntimeClasses: what `spec.runtimeClassName` of a pod may name; what it takes from one: `admission/runtime_class.py`.

The node has one way to run a container, so the handler decides nothing, and whoever makes a class is told so.
"""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.embedded.builtin._shared.podspec.placementrules import toleration_errors
from danlu.embedded.builtin._shared.quantities import canonicalise
from danlu.embedded.builtin._shared.resources import requirement_errors
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, duplicate, immutable, invalid, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_labels
from danlu.meta.wellknown import RUNTIME_CLASS

_SCHEDULING = "scheduling"


def default(obj: Object) -> None:
    canonicalise(objects.get(obj, "overhead.podFixed"))


def validate(obj: Object) -> list[FieldError]:
    handler = obj.get("handler") or ""
    errors = [invalid("handler", handler, text) for text in names.dns_label(handler)] if handler else []
    if not handler:
        errors.append(required("handler"))
    fixed = objects.get(obj, "overhead.podFixed")
    errors += requirement_errors({"limits": fixed} if fixed else None, "overhead")
    scheduling = obj.get(_SCHEDULING) or {}
    errors += validate_labels(scheduling.get("nodeSelector"), f"{_SCHEDULING}.nodeSelector")
    return errors + _toleration_errors(scheduling.get("tolerations") or [], f"{_SCHEDULING}.tolerations")


def _toleration_errors(tolerations: list[Object], path: str) -> list[FieldError]:
    errors = toleration_errors(tolerations, path)
    seen: set[tuple[Any, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(field) or "" for field in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(f"{path}[{index}]", toleration))
        seen.add(key)
    return errors


def warnings(obj: Object) -> list[str]:
    from danlu.diagnose import stated

    return [stated("DL-RUNTIME-ONE", handler=obj.get("handler") or "")]


SERVED = ServedKind(
    kind=RUNTIME_CLASS,
    schema=schema_of("io.k8s.api.node.v1.RuntimeClass"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, Column("Handler", text_at("handler"), description="What would run the containers."), AGE),
    default=default,
    validate=validate,
    validate_update=lambda new, old: immutable("handler", new.get("handler"), old.get("handler")),
    warnings=warnings,
)
