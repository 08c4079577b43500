"""Roles: what may be done within one namespace."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.embedded.builtin.rbac.rbacrules import ROLE_COLUMNS, rule_errors
from danlu.meta import names
from danlu.meta.fields import FieldError
from danlu.meta.kind import Object
from danlu.meta.wellknown import ROLE


def validate(obj: Object) -> list[FieldError]:
    return rule_errors(obj.get("rules"), namespaced=True)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


SERVED = ServedKind(
    kind=ROLE,
    schema=schema_of("io.k8s.api.rbac.v1.Role"),
    name_errors=names.as_path_segment,
    columns=ROLE_COLUMNS,
    validate=validate,
    validate_update=validate_update,
    create_on_update=True,
)
