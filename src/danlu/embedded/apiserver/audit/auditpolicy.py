"""Audit policies (audit.k8s.io/v1 Policy): the first rule that matches a request says what is recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from danlu.embedded.apiserver.target import PAGE, Target
from danlu.meta.fields import FieldError, invalid, not_supported, required

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import User

API_VERSION = "audit.k8s.io/v1"
NONE, METADATA, REQUEST, REQUEST_RESPONSE = LEVELS = ("None", "Metadata", "Request", "RequestResponse")
RECEIVED, STARTED, COMPLETE, PANIC = STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_POLICY_FIELDS = {"apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"}
_RULE_LISTS = ("users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs", "omitStages")
_RULE_FIELDS = {*_RULE_LISTS, "level", "omitManagedFields"}
_RESOURCE_FIELDS = {"group", "resources", "resourceNames"}


class AuditPolicyError(ValueError):
    """The file cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded of one request."""

    level: str = NONE
    omitted: frozenset[str] = frozenset()
    without_managed_fields: bool = False


NOTHING = Recording()


@dataclass(frozen=True, slots=True)
class Resources:
    group: str
    resources: tuple[str, ...]
    names: frozenset[str]

    def match(self, target: Target) -> bool:
        if self.group not in ("*", target.group):
            return False
        if not self.resources:
            return True
        if self.names and target.name not in self.names:
            return False
        whole = f"{target.resource}/{target.subresource}" if target.subresource else target.resource
        return any(
            resource in ("*", whole)
            or (target.subresource and resource == f"*/{target.subresource}")
            or resource == f"{target.resource}/*"
            for resource in self.resources
        )


@dataclass(frozen=True, slots=True)
class AuditRule:
    recording: Recording
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    namespaces: frozenset[str]
    resources: tuple[Resources, ...]
    urls: tuple[str, ...]

    def matches(self, user: User, target: Target) -> bool:
        if self.users and user.name not in self.users:
            return False
        if self.groups and self.groups.isdisjoint(user.groups):
            return False
        if self.verbs and target.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if target.scope == PAGE or (self.namespaces and target.namespace not in self.namespaces):
                return False
            return not self.resources or any(one.match(target) for one in self.resources)
        if self.urls:
            return target.scope == PAGE and any(_covers(url, target.path) for url in self.urls)
        return True


def _covers(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


class AuditPolicy:
    def __init__(self, rules: Sequence[AuditRule]) -> None:
        self._rules = tuple(rules)

    def of(self, user: User, target: Target) -> Recording:
        for rule in self._rules:
            if rule.matches(user, target):
                return rule.recording
        return NOTHING


def read_policy(path: Path) -> AuditPolicy:
    """Raises PolicyError."""
    import yaml

    try:
        policy = yaml.safe_load(path.read_text())
    except OSError as error:
        raise AuditPolicyError(f"the audit policy {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise AuditPolicyError(f"the audit policy {path} is not YAML: {error}") from error
    try:
        return parse(policy)
    except AuditPolicyError as error:
        raise AuditPolicyError(f"the audit policy {path} cannot be used: {error}") from None


def parse(policy: Any) -> AuditPolicy:
    """Raises PolicyError, in Kubernetes' words where it has some. What it does not know it refuses: a misspelt field
    would else record less than was meant."""
    if not isinstance(policy, dict) or (policy.get("apiVersion"), policy.get("kind")) != (API_VERSION, "Policy"):
        raise AuditPolicyError(f"it must be of apiVersion {API_VERSION}, kind Policy")
    rules = policy.get("rules") or []
    errors = [*_unknown(policy, _POLICY_FIELDS, ""), *_stage_errors(policy.get("omitStages"), "omitStages")]
    if not isinstance(rules, list):
        raise AuditPolicyError("rules must be a list")
    for number, rule in enumerate(rules):
        errors += _rule_errors(rule, f"rules[{number}]")
    if errors:
        raise AuditPolicyError("; ".join(error.message() for error in errors))
    if not rules:
        raise AuditPolicyError("loaded illegal policy with 0 rules")
    return AuditPolicy([_rule(rule, policy) for rule in rules])


def _rule(rule: dict[str, Any], policy: dict[str, Any]) -> AuditRule:
    own = rule.get("omitManagedFields")
    recording = Recording(
        rule["level"],
        frozenset([*(policy.get("omitStages") or ()), *(rule.get("omitStages") or ())]),
        bool(policy.get("omitManagedFields") if own is None else own),
    )
    resources = tuple(
        Resources(one.get("group") or "", tuple(one.get("resources") or ()), frozenset(one.get("resourceNames") or ()))
        for one in rule.get("resources") or ()
    )
    users, groups, verbs, namespaces = (
        frozenset(rule.get(field) or ()) for field in ("users", "userGroups", "verbs", "namespaces")
    )
    return AuditRule(recording, users, groups, verbs, namespaces, resources, tuple(rule.get("nonResourceURLs") or ()))


def _rule_errors(rule: Any, path: str) -> list[FieldError]:
    if not isinstance(rule, dict):
        return [invalid(path, rule, "must be an object")]
    errors = _unknown(rule, _RULE_FIELDS, path)
    level = rule.get("level")
    if not level:
        errors.append(required(f"{path}.level"))
    elif level not in LEVELS:
        errors.append(not_supported(f"{path}.level", level, LEVELS))
    wrong = [field for field in _RULE_LISTS if not isinstance(rule.get(field) or [], list)]
    if wrong:
        return [*errors, *(invalid(f"{path}.{field}", rule[field], "must be a list") for field in wrong)]
    errors += _url_errors(rule.get("nonResourceURLs") or (), f"{path}.nonResourceURLs")
    errors += _stage_errors(rule.get("omitStages"), f"{path}.omitStages")
    for number, one in enumerate(rule.get("resources") or ()):
        errors += _resource_errors(one, f"{path}.resources[{number}]")
    if rule.get("nonResourceURLs") and (rule.get("resources") or rule.get("namespaces")):
        text = "rules cannot apply to both regular resources and non-resource URLs"
        errors.append(invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], text))
    return errors


def _resource_errors(one: Any, path: str) -> list[FieldError]:
    if not isinstance(one, dict):
        return [invalid(path, one, "must be an object")]
    errors = _unknown(one, _RESOURCE_FIELDS, path)
    if one.get("resourceNames") and not one.get("resources"):
        text = "using resourceNames requires at least one resource"
        errors.append(invalid(f"{path}.resourceNames", one["resourceNames"], text))
    return errors


def _url_errors(urls: Sequence[Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for number, url in enumerate(urls):
        if url == "*":
            continue
        if not str(url).startswith("/"):
            text = "non-resource URL rules must begin with a '/' character"
            errors.append(invalid(f"{path}[{number}]", url, text))
        if "*" in str(url)[:-1]:
            text = "non-resource URL wildcards '*' must be the final character of the rule"
            errors.append(invalid(f"{path}[{number}]", url, text))
    return errors


def _stage_errors(stages: Any, path: str) -> list[FieldError]:
    if not isinstance(stages or [], list):
        return [invalid(path, stages, "must be a list")]
    text = f"allowed stages are {','.join(STAGES)}"
    return [invalid(f"{path}[{n}]", stage, text) for n, stage in enumerate(stages or ()) if stage not in STAGES]


def _unknown(given: dict[str, Any], known: set[str], path: str) -> list[FieldError]:
    return [invalid(f"{path}.{name}".lstrip("."), name, "unknown field") for name in given if name not in known]
