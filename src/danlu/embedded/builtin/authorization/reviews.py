"""The kinds that are questions: who is this token, who am I, and what may one do. Answered, never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from danlu.embedded.apiserver.auth.tokens import BadToken
from danlu.embedded.apiserver.request import User
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin._shared.hooks import schema_of
from danlu.errors import BadRequest
from danlu.meta import names, wellknown
from danlu.meta.clock import now_rfc3339
from danlu.meta.fields import FieldError, invalid, invalid_error, required
from danlu.meta.kind import Kind, Object

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Call

_RESOURCE_FIELDS = ("verb", "group", "resource", "subresource", "namespace", "name")


# -- authentication


def token_review(call: Call, review: Object) -> Object:
    spec = review.get("spec") or {}
    token, audiences = spec.get("token") or "", spec.get("audiences") or []
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    status: Object = {}
    try:
        user, common = call.server.authenticator.review(token, audiences)
        status = {"authenticated": True, "user": _user_info(user), "audiences": list(common)}
    except BadToken as error:
        status = {"user": {}, "error": _shown_error(str(error))}
    return {**review, "spec": spec, "status": status}


def _shown_error(text: str) -> str:
    return text if text.startswith("invalid bearer token") else f"[invalid bearer token, {text}]"


def self_subject_review(call: Call, review: Object) -> Object:
    return {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "metadata": {"creationTimestamp": now_rfc3339()},
        "status": {"userInfo": _user_info(call.user)},
    }


def _user_info(user: User) -> Object:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = user.extra
    return info


# -- authorization


def subject_access_review(call: Call, review: Object) -> Object:
    spec = review.get("spec") or {}
    _refuse(_spec_errors(spec, named=True) + _metadata_errors(review))
    return {**review, "status": _access(call, _user_of(spec), spec)}


def local_subject_access_review(call: Call, review: Object) -> Object:
    spec = review.get("spec") or {}
    namespace = review.setdefault("metadata", {}).setdefault("namespace", call.namespace)
    errors = _spec_errors(spec, named=True) + _metadata_errors(review, "must be empty except for namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        errors.append(
            invalid("spec.resourceAttributes.namespace", resource.get("namespace", ""), "must match metadata.namespace")
        )
    if spec.get("nonResourceAttributes") is not None:
        shown = _as_go_names(spec["nonResourceAttributes"])
        errors.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
    _refuse(errors)
    if namespace != call.namespace:
        raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {call.namespace}")
    return {**review, "status": _access(call, _user_of(spec), spec)}


def self_subject_access_review(call: Call, review: Object) -> Object:
    spec = review.get("spec") or {}
    _refuse(_spec_errors(spec, named=False) + _metadata_errors(review))
    return {**review, "status": _access(call, call.user, spec)}


def self_subject_rules_review(call: Call, review: Object) -> Object:
    namespace = (review.get("spec") or {}).get("namespace") or ""
    if not namespace:
        raise BadRequest("no namespace on request")
    rules, problem = call.server.authorizer.rules_for(call.user, namespace)
    status: Object = {
        "resourceRules": [
            _only(rule, "verbs", "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")
        ],
        "nonResourceRules": [_only(rule, "verbs", "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
    if problem:
        status["evaluationError"] = problem
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "metadata": {}, "spec": {}, "status": status}


def _only(rule: Object, *fields: str) -> Object:
    return {field: rule[field] for field in fields if rule.get(field)}


def _user_of(spec: Object) -> User:
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), spec.get("extra") or {})


def _access(call: Call, user: User, spec: Object) -> Object:
    asked = spec.get("resourceAttributes")
    authorizer = call.server.authorizer
    if asked is not None:
        verb, group, resource, subresource, namespace, name = (asked.get(field) or "" for field in _RESOURCE_FIELDS)
        decision = authorizer.authorize(user, verb, group, resource, subresource, namespace, name)
    else:
        path = spec["nonResourceAttributes"]
        decision = authorizer.authorize(user, path.get("verb") or "", "", "", "", "", "", path.get("path") or "")
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _spec_errors(spec: Object, *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid("spec.nonResourceAttributes", _as_go_names(path), text))
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, text))
    if named and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    for field in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(field)
        if selector is not None:
            errors += _selector_errors(f"spec.resourceAttributes.{field}", selector)
    return errors


def _as_go_names(attributes: Object) -> Object:
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}


def _selector_errors(path: str, selector: Object) -> list[FieldError]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        return [invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        return [required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")]
    return []


def _metadata_errors(review: Object, text: str = "must be empty") -> list[FieldError]:
    meta = review.get("metadata") or {}
    unexpected = {key for key, value in meta.items() if value} - {"managedFields"}
    if "except" in text:
        unexpected.discard("namespace")
    return [invalid("metadata", meta, text)] if unexpected else []


def _refuse(errors: list[FieldError]) -> None:
    """Kubernetes has forgotten the kind by the time it checks a review, and its message shows that."""
    if errors:
        error = invalid_error(Kind("authorization.k8s.io", "v1", "", ""), "", errors)
        error.details.pop("kind", None)
        raise error


def _served(kind: Kind, package: str, answer: Callable[[Call, Object], Object]) -> ServedKind:
    return ServedKind(
        kind=kind,
        schema=schema_of(f"io.k8s.api.{package}.v1.{kind.kind}"),
        name_errors=names.as_path_segment,
        verbs=("create",),
        answer=answer,
    )


SERVED: tuple[ServedKind, ...] = (
    _served(wellknown.TOKEN_REVIEW, "authentication", token_review),
    _served(wellknown.SELF_SUBJECT_REVIEW, "authentication", self_subject_review),
    _served(wellknown.SUBJECT_ACCESS_REVIEW, "authorization", subject_access_review),
    _served(wellknown.SELF_SUBJECT_ACCESS_REVIEW, "authorization", self_subject_access_review),
    _served(wellknown.LOCAL_SUBJECT_ACCESS_REVIEW, "authorization", local_subject_access_review),
    _served(wellknown.SELF_SUBJECT_RULES_REVIEW, "authorization", self_subject_rules_review),
)
