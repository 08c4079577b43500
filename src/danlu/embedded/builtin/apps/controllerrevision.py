"""ControllerRevisions: one saved template of a StatefulSet or a DaemonSet. What was saved never changes."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import number_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.meta import names
from danlu.meta.fields import FieldError, immutable, not_negative, required
from danlu.meta.kind import Object
from danlu.meta.owners import controller_of
from danlu.meta.wellknown import CONTROLLER_REVISION


def validate(obj: Object) -> list[FieldError]:
    errors = not_negative("revision", obj.get("revision"))
    data = obj.get("data")
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return not_negative("revision", new.get("revision")) + immutable("data", new.get("data"), old.get("data"))


def _controller(obj: Object) -> str:
    """`statefulset.apps/web`."""
    controller = controller_of(obj)
    if controller is None:
        return "<none>"
    group, slash, _ = controller.get("apiVersion", "").partition("/")
    kind = controller.get("kind", "").lower()
    return f"{kind}.{group}/{controller.get('name')}" if slash else f"{kind}/{controller.get('name')}"


SERVED = ServedKind(
    kind=CONTROLLER_REVISION,
    schema=schema_of("io.k8s.api.apps.v1.ControllerRevision"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Controller", _controller, description="Controller of the object"),
        Column("Revision", number_at("revision"), description="The number of the revision."),
        AGE,
    ),
    validate=validate,
    validate_update=validate_update,
)
