"""Ingresses: which service answers for which host and path. Who serves them: `embedded/ingress`."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.columns import MOST_SHOWN, text_at
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_spec,
    keep_status_and_count,
    schema_of,
)
from danlu.embedded.builtin.networking.ingressclass import reference_errors
from danlu.meta import names, objects
from danlu.meta.addresses import address_errors, is_address
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import INGRESS

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_WITHIN = ("//", "/./", "/../", "%2f", "%2F")
_NOT_LAST = ("/..", "/.")
_NOT_AN_ADDRESS = "must be a DNS name, not an IP address"
_NO_RULES = "either `defaultBackend` or `rules` must be specified"
_CLASS_DEPRECATED = f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"


def prepare_create(obj: Object) -> None:
    obj["status"] = {"loadBalancer": {}}
    first_generation(obj)


# -- what is valid


def validate(obj: Object) -> list[FieldError]:
    errors = _spec_errors(obj.get("spec") or {})
    named, annotated = objects.get(obj, "spec.ingressClassName"), objects.annotations_of(obj).get(CLASS_ANNOTATION)
    if named is not None and annotated is not None and named != annotated:
        text = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{CLASS_ANNOTATION}", annotated, text))
    return errors


def validate_update(new: Object, _old: Object) -> list[FieldError]:
    return _spec_errors(new.get("spec") or {})


def _spec_errors(spec: Object) -> list[FieldError]:
    rules, backend, name = spec.get("rules") or [], spec.get("defaultBackend"), spec.get("ingressClassName")
    errors: list[FieldError] = []
    if not rules and backend is None:
        errors.append(invalid("spec", None, _NO_RULES))
    if backend is not None:
        errors += _backend_errors(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule_errors(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        errors += _tls_errors(tls, f"spec.tls[{index}]")
    if name is not None:
        errors += [invalid("spec.ingressClassName", name, text) for text in names.dns_subdomain(name)]
    return errors


def _rule_errors(rule: Object, path: str) -> list[FieldError]:
    host, http = rule.get("host") or "", rule.get("http")
    errors = [invalid(f"{path}.host", host, _NOT_AN_ADDRESS)] if is_address(host) else []
    if host:
        errors += _host_errors(host, f"{path}.host")
    if http is None:
        return errors
    if not http.get("paths"):
        errors.append(required(f"{path}.http.paths"))
    for index, one in enumerate(http.get("paths") or ()):
        errors += _path_errors(one, f"{path}.http.paths[{index}]")
    return errors


def _host_errors(host: str, path: str) -> list[FieldError]:
    texts = names.wildcard_dns_subdomain(host) if "*" in host else names.dns_subdomain(host)
    return [invalid(path, host, text) for text in texts]


def _path_errors(one: Object, path: str) -> list[FieldError]:
    sort, text, field = one.get("pathType"), one.get("path") or "", f"{path}.path"
    if sort is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    errors: list[FieldError] = []
    if sort not in _PATH_TYPES:
        errors.append(not_supported(f"{path}.pathType", sort, _PATH_TYPES))
    elif not text.startswith("/") and (text or sort != "ImplementationSpecific"):
        errors.append(invalid(field, text, "must be an absolute path"))
    if sort in ("Exact", "Prefix"):
        errors += [invalid(field, text, f"must not contain '{part}'") for part in _NOT_WITHIN if part in text]
        errors += [invalid(field, text, f"cannot end with '{part}'") for part in _NOT_LAST if text.endswith(part)]
    return errors + _backend_errors(one.get("backend") or {}, f"{path}.backend")


def _backend_errors(backend: Object, path: str) -> list[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return reference_errors(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    name, port = service.get("name") or "", service.get("port") or {}
    where = f"{path}.service"
    errors = [invalid(f"{where}.name", name, text) for text in names.dns_label(name)] if name else []
    if not name:
        errors.append(required(f"{where}.name"))
    return errors + _port_errors(port, path)


def _port_errors(port: Object, path: str) -> list[FieldError]:
    name, number = port.get("name") or "", port.get("number") or 0
    if name and number:
        return [invalid(path, "", "cannot set both port name & port number")]
    if name:
        return [invalid(f"{path}.service.port.name", name, text) for text in names.port_name(name)]
    if number:
        return [invalid(f"{path}.service.port.number", number, text) for text in names.port_number(number)]
    return [required(path, "port name or number is required")]


def _tls_errors(tls: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, host in enumerate(tls.get("hosts") or ()):
        errors += _host_errors(host, f"{path}.hosts[{index}]")
    secret = tls.get("secretName") or ""
    texts = names.dns_subdomain(secret) if secret else []
    return errors + [invalid(f"{path}.secretName", secret, text) for text in texts]


def validate_status(new: Object, _old: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, point in enumerate(objects.get(new, "status.loadBalancer.ingress") or ()):
        path, address, host = f"status.loadBalancer.ingress[{index}]", point.get("ip") or "", point.get("hostname")
        errors += address_errors(address, f"{path}.ip") if address else []
        if host:
            errors += [invalid(f"{path}.hostname", host, text) for text in names.dns_subdomain(host)]
            if is_address(host):
                errors.append(invalid(f"{path}.hostname", host, _NOT_AN_ADDRESS))
    return errors


def warnings(obj: Object) -> list[str]:
    """Only on creation: an object that is already stored has a resourceVersion."""
    annotated = CLASS_ANNOTATION in objects.annotations_of(obj)
    new = not objects.get(obj, "metadata.resourceVersion")
    return [_CLASS_DEPRECATED] if annotated and new and objects.get(obj, "spec.ingressClassName") is None else []


# -- columns


def _hosts(obj: Object) -> str:
    rules = objects.get(obj, "spec.rules") or ()
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if len(hosts) > MOST_SHOWN:
        return f"{','.join(hosts[:MOST_SHOWN])} + {len(rules) - MOST_SHOWN} more..."
    return ",".join(hosts) or "*"


def _addresses(obj: Object) -> str:
    points = objects.get(obj, "status.loadBalancer.ingress") or ()
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""}))


SERVED = ServedKind(
    kind=INGRESS,
    schema=schema_of("io.k8s.api.networking.v1.Ingress"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Class", text_at("spec.ingressClassName", "<none>"), description="Who serves it."),
        Column("Hosts", _hosts, description="For which hosts."),
        Column("Address", _addresses, description="Where it answers."),
        Column("Ports", lambda obj: "80, 443" if objects.get(obj, "spec.tls") else "80", description="With TLS, two."),
        AGE,
    ),
    prepare_create=prepare_create,
    prepare_update=keep_status_and_count,
    prepare_status=keep_spec,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    warnings=warnings,
    has_status=True,
)
