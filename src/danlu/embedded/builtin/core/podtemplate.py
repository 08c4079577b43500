"""PodTemplates: a template by itself, for whoever wants to keep one. Nothing runs it."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import NAME, first_generation, schema_of
from danlu.embedded.builtin._shared.podspec import default_pod_template, validate_pod_template
from danlu.meta import names
from danlu.meta.fields import FieldError
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD_TEMPLATE


def default(obj: Object) -> None:
    if not isinstance(obj.get("template"), dict):
        obj["template"] = {}
    default_pod_template(obj["template"])


def prepare_update(new: Object, old: Object) -> None:
    generation = old["metadata"].get("generation", 1)
    new["metadata"]["generation"] = generation + (new.get("template") != old.get("template"))


def validate(obj: Object) -> list[FieldError]:
    return validate_pod_template(obj.get("template") or {}, "template")


def validate_update(new: Object, old: Object) -> list[FieldError]:
    return validate(new)


def _joined(field: str) -> Column:
    def value(obj: Object) -> str:
        containers = ((obj.get("template") or {}).get("spec") or {}).get("containers") or ()
        return ",".join(container.get(field) or "" for container in containers)

    return Column("Containers" if field == "name" else "Images", value, description="Of the template's containers.")


def _pod_labels(obj: Object) -> str:
    labels = ((obj.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


SERVED = ServedKind(
    kind=POD_TEMPLATE,
    schema=schema_of("io.k8s.api.core.v1.PodTemplate"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        _joined("name"),
        _joined("image"),
        Column("Pod Labels", _pod_labels, description="The labels that pods of this template have."),
    ),
    prepare_create=first_generation,
    prepare_update=prepare_update,
    default=default,
    validate=validate,
    validate_update=validate_update,
)
