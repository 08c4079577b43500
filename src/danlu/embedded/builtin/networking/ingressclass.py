"""IngressClasses: which controller serves an Ingress."""

from __future__ import annotations

import re

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, first_generation, next_generation, schema_of
from danlu.embedded.builtin._shared.workloads import spec_of
from danlu.meta import names, objects
from danlu.meta.fields import FieldError, forbidden, immutable, invalid, not_supported, required, too_long
from danlu.meta.kind import Object
from danlu.meta.wellknown import INGRESS_CLASS

DEFAULT_ANNOTATION = "ingressclass.kubernetes.io/is-default-class"
_LONGEST_CONTROLLER = 250
_SCOPES = ("Cluster", "Namespace")
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def default(obj: Object) -> None:
    parameters = spec_of(obj).get("parameters")
    if isinstance(parameters, dict) and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def validate(obj: Object) -> list[FieldError]:
    spec, path = obj.get("spec") or {}, "spec.controller"
    controller = spec.get("controller") or ""
    errors = [too_long(path, "", _LONGEST_CONTROLLER)] if len(controller.encode()) > _LONGEST_CONTROLLER else []
    errors += _domain_path_errors(controller, path)
    parameters = spec.get("parameters")
    return errors if parameters is None else errors + _parameters_errors(parameters, "spec.parameters")


def _domain_path_errors(text: str, path: str) -> list[FieldError]:
    if not text:
        return [required(path)]
    domain, _, rest = text.partition("/")
    if not domain or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = [invalid(path, domain, why) for why in names.dns_subdomain(domain)]
    if not re.fullmatch(_PATH, rest):
        errors.append(invalid(path, rest, names.regex_text("Invalid path", _PATH)))
    return errors


def reference_errors(reference: Object, path: str) -> list[FieldError]:
    """Another object by group, kind and name."""
    group = reference.get("apiGroup")
    errors = [invalid(f"{path}.apiGroup", group, text) for text in names.dns_subdomain(group)] if group else []
    if group == "":
        errors += [invalid(f"{path}.apiGroup", group, text) for text in names.dns_subdomain(group)]
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        errors += [invalid(f"{path}.{field}", value, text) for text in names.path_segment(value)]
        if not value:
            errors.append(required(f"{path}.{field}"))
    return errors


def _parameters_errors(parameters: Object, path: str) -> list[FieldError]:
    errors = reference_errors(parameters, path)
    scope: str | None = parameters.get("scope")
    namespace: str | None = parameters.get("namespace")
    if scope is None:
        errors.append(required(f"{path}.scope"))
    elif scope not in _SCOPES:
        errors.append(not_supported(f"{path}.scope", scope, _SCOPES))
    elif scope == "Cluster" and namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif namespace is None:
        if scope == "Namespace":
            errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
    else:
        errors += [invalid(f"{path}.namespace", namespace, text) for text in names.dns_label(namespace)]
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    fixed = immutable("spec.controller", objects.get(new, "spec.controller"), objects.get(old, "spec.controller"))
    return fixed + validate(new)


def is_default(obj: Object) -> bool:
    return bool(objects.annotations_of(obj).get(DEFAULT_ANNOTATION) == "true")


def _name(obj: Object) -> str:
    return f"{objects.name(obj)} (default)" if is_default(obj) else objects.name(obj)


def _parameters(obj: Object) -> str:
    parameters = objects.get(obj, "spec.parameters")
    if not parameters:
        return "<none>"
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{parameters.get('kind') or ''}{group}/{parameters.get('name') or ''}"


SERVED = ServedKind(
    kind=INGRESS_CLASS,
    schema=schema_of("io.k8s.api.networking.v1.IngressClass"),
    name_errors=names.as_dns_subdomain,
    columns=(
        Column("Name", _name, format="name", description="The name of the class, marked where it is the default."),
        Column("Controller", text_at("spec.controller"), description="Who serves its Ingresses."),
        Column("Parameters", _parameters, description="An object with further settings."),
        AGE,
    ),
    prepare_create=first_generation,
    prepare_update=next_generation,
    default=default,
    validate=validate,
    validate_update=validate_update,
)
