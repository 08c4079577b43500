"""What the two kinds of webhook configurations have in common. `admission.webhooks` calls what they name."""

from __future__ import annotations

from urllib.parse import urlsplit

from danlu.embedded.apiserver.admission.webhooks import DEFAULT_TIMEOUT_S
from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin._shared.hooks import AGE, NAME, first_generation, schema_of
from danlu.embedded.builtin.admissionregistration.admissionpolicies import (
    constraint_errors,
    expression_errors,
    rule_errors,
)
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, invalid, not_supported, required
from danlu.meta.kind import Kind, Object

LONGEST_TIMEOUT_S = 30


def default(obj: Object) -> None:
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", DEFAULT_TIMEOUT_S)
        service = (hook.get("clientConfig") or {}).get("service")
        if isinstance(service, dict):
            service.setdefault("port", 443)
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")


def default_mutating(obj: Object) -> None:
    default(obj)
    for hook in obj.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")


def prepare_update(new: Object, old: Object) -> None:
    generation = old["metadata"].get("generation") or 1
    new["metadata"]["generation"] = generation + (new.get("webhooks") != old.get("webhooks"))


def validate(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        if name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
        errors += _hook_errors(hook, name, path)
    return errors


def _hook_errors(hook: Object, name: str, path: str) -> list[FieldError]:
    errors = [invalid(f"{path}.name", name, text) for text in names.dns_subdomain(name)]
    if name and len(name.split(".")) < 3:
        text = "should be a domain with at least three segments separated by dots"
        errors.append(invalid(f"{path}.name", name, text))
    errors += _client_errors(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    errors += constraint_errors(hook, path)
    for index, rule in enumerate(hook.get("rules") or ()):
        errors += rule_errors(rule, f"{path}.rules[{index}]")
    if hook.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(not_supported(f"{path}.failurePolicy", hook.get("failurePolicy") or "", ["Fail", "Ignore"]))
    effects = hook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    elif effects not in ("None", "NoneOnDryRun"):
        errors.append(not_supported(f"{path}.sideEffects", effects, ["None", "NoneOnDryRun"]))
    versions = hook.get("admissionReviewVersions") or []
    if not versions:
        errors.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    elif not {"v1", "v1beta1"} & set(versions):
        text = "must include at least one of v1, v1beta1"
        errors.append(invalid(f"{path}.admissionReviewVersions", versions, text))
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= LONGEST_TIMEOUT_S:
        text = f"the timeout value must be between 1 and {LONGEST_TIMEOUT_S} seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, text))
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        place = f"{path}.matchConditions[{index}]"
        if not condition.get("name"):
            errors.append(required(f"{place}.name"))
        errors += expression_errors(condition.get("expression"), f"{place}.expression")
    return errors


def _client_errors(config: Object, path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service") or {}
    if (url is None) == (config.get("service") is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        parts = urlsplit(url)
        if parts.scheme != "https":
            shown = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            return [invalid(f"{path}.url", url, shown)]
        return [] if parts.netloc else [invalid(f"{path}.url", url, "host must be specified")]
    return [required(f"{path}.service.{field}") for field in ("namespace", "name") if not service.get(field)]


def served(kind: Kind, **more: object) -> ServedKind:
    return ServedKind(
        kind=kind,
        schema=schema_of(f"io.k8s.api.admissionregistration.v1.{kind.kind}"),
        name_errors=names.as_dns_subdomain,
        columns=(
            NAME,
            Column("Webhooks", lambda obj: len(obj.get("webhooks") or ()), type="integer", description="How many."),
            AGE,
        ),
        prepare_create=first_generation,
        prepare_update=prepare_update,
        validate=validate,
        validate_update=lambda new, _old: validate(new),
        **more,  # type: ignore[arg-type]
    )
