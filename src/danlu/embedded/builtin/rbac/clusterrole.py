"""ClusterRoles: what may be done in the whole cluster, or wherever a binding grants it."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.embedded.builtin.rbac.rbacrules import ROLE_COLUMNS, rule_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_selector
from danlu.meta.wellknown import CLUSTER_ROLE


def validate(obj: Object) -> list[FieldError]:
    errors = rule_errors(obj.get("rules"), namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return errors
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required(path, text))
    for index, selector in enumerate(selectors):
        errors += validate_label_selector(selector, f"{path}[{index}]")
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


SERVED = ServedKind(
    kind=CLUSTER_ROLE,
    schema=schema_of("io.k8s.api.rbac.v1.ClusterRole"),
    name_errors=names.as_path_segment,
    columns=ROLE_COLUMNS,
    validate=validate,
    validate_update=validate_update,
    create_on_update=True,
)
