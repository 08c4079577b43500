"""ClusterRoleBindings: who has a cluster role everywhere."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.embedded.builtin.rbac.rbacrules import binding_columns, binding_errors, default_binding, reference_errors
from danlu.meta import names
from danlu.meta.fields import FieldError
from danlu.meta.kind import Object
from danlu.meta.wellknown import CLUSTER_ROLE_BINDING


def validate(obj: Object) -> list[FieldError]:
    return binding_errors(obj, ("ClusterRole",), namespaced=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new) + reference_errors(new, old)


SERVED = ServedKind(
    kind=CLUSTER_ROLE_BINDING,
    schema=schema_of("io.k8s.api.rbac.v1.ClusterRoleBinding"),
    name_errors=names.as_path_segment,
    columns=binding_columns("clusterRoleBinding"),
    default=default_binding,
    validate=validate,
    validate_update=validate_update,
    create_on_update=True,
)
