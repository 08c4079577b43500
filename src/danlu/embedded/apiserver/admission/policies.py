"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: rules in CEL that users set up for writes of any kind.

Policies are compiled once when they are written. Without any, a write pays for two look-ups in an empty dictionary.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from danlu.embedded.apiserver.admission import Attributes, Handler
from danlu.embedded.apiserver.admission.policymatcher import matches, may_match
from danlu.embedded.apiserver.mirror import Mirror
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.storage.store import Store
from danlu.errors import ApiError, BadRequest, Forbidden, Invalid, RequestTooLarge, Unauthorized
from danlu.meta import clock, objects
from danlu.meta.kind import Object
from danlu.meta.labels import from_label_selector
from danlu.meta.patch import apply, json_patch
from danlu.meta.wellknown import (
    MUTATING_POLICY,
    MUTATING_POLICY_BINDING,
    NAMESPACE,
    VALIDATING_POLICY,
    VALIDATING_POLICY_BINDING,
)

OWN_KINDS = frozenset(
    kind.resource for kind in (VALIDATING_POLICY, VALIDATING_POLICY_BINDING, MUTATING_POLICY, MUTATING_POLICY_BINDING)
)
LONGEST_MESSAGE = 5 * 1024
Environment = dict[str, Any]
Program = Callable[[Environment], Any]
REASONS: dict[str, type[ApiError]] = {kind.reason: kind for kind in (Unauthorized, Forbidden, Invalid, RequestTooLarge)}


class AdmissionPolicyError(Exception):
    """An expression that has no answer; what becomes of the request is the policy's failurePolicy."""


def compile_expression(text: str, *, messages: bool = False) -> Program:
    """Raises checker.Problem."""
    from danlu.meta.cel.checker import DYN, CheckProblem, check
    from danlu.meta.cel.evaluator import compile_tree
    from danlu.meta.cel.values import CelError

    variables = dict.fromkeys(("object", "oldObject", "request", "params", "namespaceObject", "variables"), DYN)
    tree, _ = check(text, variables, ("Object", "JSONPatch") if messages else ())
    try:
        return compile_tree(tree)
    except CelError as error:
        raise CheckProblem(str(error)) from None


def evaluate(program: Program, text: str, environment: Environment) -> Any:
    from danlu.meta.cel.costs import Budget, CostExceeded
    from danlu.meta.cel.evaluator import BUDGET
    from danlu.meta.cel.values import CelError

    try:
        return program({**environment, BUDGET: Budget()})
    except (CelError, CostExceeded) as error:
        raise AdmissionPolicyError(f"expression '{text.strip()}' resulted in error: {error}") from None


@dataclass(slots=True)
class AdmissionPolicy:
    """One policy, compiled. Validation of the kind keeps out what does not compile."""

    name: str
    spec: Mapping[str, Any]
    conditions: list[tuple[str, Program]]
    variables: list[tuple[str, str, Program]]
    programs: list[tuple[Mapping[str, Any], Program]] = field(default_factory=list)  # validations, or mutations
    texts: list[Program | None] = field(default_factory=list)  # messageExpressions beside the validations

    @property
    def fails_closed(self) -> bool:
        return bool(self.spec.get("failurePolicy") != "Ignore")


def compiled(policy: Object) -> AdmissionPolicy:
    spec = policy.get("spec") or {}
    found = AdmissionPolicy(
        policy["metadata"]["name"],
        spec,
        [(one["expression"], compile_expression(one["expression"])) for one in spec.get("matchConditions") or ()],
        [
            (one["name"], one["expression"], compile_expression(one["expression"], messages=True))
            for one in spec.get("variables") or ()
        ],
    )
    for one in spec.get("validations") or ():
        text = one.get("messageExpression")
        found.programs.append((one, compile_expression(one["expression"])))
        found.texts.append(compile_expression(text) if text else None)
    for one in spec.get("mutations") or ():
        found.programs.append((one, compile_expression(mutation_text(one), messages=True)))
    return found


def mutation_text(mutation: Mapping[str, Any]) -> str:
    part = mutation.get("applyConfiguration") or mutation.get("jsonPatch") or {}
    return str(part.get("expression") or "")


def bound(binding: Object) -> Object:
    """The binding itself. Raises for one that names no policy, which the mirror then leaves out."""
    if not isinstance(binding["spec"]["policyName"], str):
        raise TypeError("spec.policyName is no text")
    return binding


class Policies(Handler):
    resources = None

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        # By what a write is about; until a policy, a binding or a kind changes. Most writes concern none.
        self._candidates: dict[tuple[object, ...], list[tuple[AdmissionPolicy, Object]]] = {}
        self._validating = Mirror(store, VALIDATING_POLICY.resource, compiled, self._forget)
        self._mutating = Mirror(store, MUTATING_POLICY.resource, compiled, self._forget)
        self._validating_bindings = Mirror(store, VALIDATING_POLICY_BINDING.resource, bound, self._forget)
        self._mutating_bindings = Mirror(store, MUTATING_POLICY_BINDING.resource, bound, self._forget)
        registry.observe(self._candidates.clear)

    def _forget(self, _: str) -> None:
        self._candidates.clear()

    # -- validating

    def validate(self, a: Attributes) -> None:
        if not self._validating_bindings.namespaces or a.served.key in OWN_KINDS or a.user.starting:
            return
        for policy, binding, environment in self._concerned(a, self._validating, self._validating_bindings):
            try:
                if not self._conditions_hold(policy, environment):
                    continue
                for index, (validation, program) in enumerate(policy.programs):
                    problem = self._problem(policy, index, validation, program, environment)
                    if problem:
                        self._act(a, policy, binding, problem, validation.get("reason") or "Invalid")
            except AdmissionPolicyError as error:
                if policy.fails_closed:
                    self._act(a, policy, binding, str(error), "Invalid")

    def _problem(
        self,
        policy: AdmissionPolicy,
        index: int,
        validation: Mapping[str, Any],
        program: Program,
        environment: Environment,
    ) -> str:
        """ "" when the validation holds."""
        if evaluate(program, validation["expression"], environment) is True:
            return ""
        text = policy.texts[index]
        if text is not None:
            try:
                said = evaluate(text, "", environment)
                if isinstance(said, str) and said.strip() and len(said) <= LONGEST_MESSAGE and "\n" not in said.strip():
                    return said.strip()
            except AdmissionPolicyError:
                pass  # the plain message stands in for one that cannot be made
        return str(validation.get("message") or "").strip() or f"failed expression: {validation['expression'].strip()}"

    def _act(self, a: Attributes, policy: AdmissionPolicy, binding: Object, problem: str, reason: str) -> None:
        actions = binding["spec"].get("validationActions") or ()
        name = binding["metadata"]["name"]
        if "Warn" in actions:
            a.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{name}': {problem}"
            )
        if "Deny" in actions:
            raise _denied(
                a, f"ValidatingAdmissionPolicy '{policy.name}' with binding '{name}' denied request: {problem}", reason
            )

    # -- mutating

    def mutate(self, a: Attributes) -> None:
        if not self._mutating_bindings.namespaces or a.obj is None or a.served.key in OWN_KINDS or a.user.starting:
            return
        for policy, binding, environment in self._concerned(a, self._mutating, self._mutating_bindings):
            try:
                environment["object"] = a.obj  # as the policy before this one left it
                if self._conditions_hold(policy, environment):
                    for mutation, program in policy.programs:
                        change = evaluate(program, mutation_text(mutation), {**environment, "object": a.obj})
                        _replace(a, _mutated(a, mutation, change))
            except AdmissionPolicyError as error:
                if policy.fails_closed:
                    text = (
                        f"policy '{policy.name}' with binding '{binding['metadata']['name']}' denied request: {error}"
                    )
                    raise _denied(a, text, "Invalid") from None

    # -- both

    def _concerned(
        self, a: Attributes, policies: Mirror[AdmissionPolicy], bindings: Mirror[Object]
    ) -> Iterator[tuple[AdmissionPolicy, Object, Environment]]:
        candidates = self._candidates_for(a, policies, bindings)
        namespace = self._namespace(a) if candidates else None
        for policy, binding in candidates:
            spec = binding["spec"]
            if not matches(policy.spec.get("matchConstraints") or {}, a, namespace, self._registry):
                continue
            if not matches(spec.get("matchResources") or {}, a, namespace, self._registry):
                continue
            for params in self._params(a, policy, spec.get("paramRef")):
                yield policy, binding, self._environment(a, policy, namespace, params)

    def _candidates_for(
        self, a: Attributes, policies: Mirror[AdmissionPolicy], bindings: Mirror[Object]
    ) -> list[tuple[AdmissionPolicy, Object]]:
        kind = a.served.kind
        key = (policies is self._mutating, kind.group, kind.version, kind.plural, a.operation, a.subresource)
        found = self._candidates.get(key)
        if found is None:
            found = self._candidates[key] = []
            for _, binding in sorted(bindings.items(), key=lambda one: (one[1]["spec"].get("policyName", ""), one[0])):
                spec = binding["spec"]
                policy = policies.get("", spec.get("policyName") or "")
                if policy is None or not may_match(policy.spec.get("matchConstraints") or {}, a, self._registry):
                    continue
                if may_match(spec.get("matchResources") or {}, a, self._registry):
                    found.append((policy, binding))
        return found

    def _conditions_hold(self, policy: AdmissionPolicy, environment: Environment) -> bool:
        return all(evaluate(program, text, environment) is True for text, program in policy.conditions)

    def _namespace(self, a: Attributes) -> Object | None:
        if not a.namespace or a.served.key == NAMESPACE.resource:
            return None
        stored = self._store.latest(NAMESPACE.resource, "", a.namespace)
        return self._store.shared(stored) if stored is not None else None

    def _environment(
        self, a: Attributes, policy: AdmissionPolicy, namespace: Object | None, params: Object | None
    ) -> Environment:
        environment: Environment = {
            "object": a.obj,
            "oldObject": a.old,
            "request": request_of(a),
            "params": params,
            "namespaceObject": namespace,
            "variables": {},
        }
        for name, text, program in policy.variables:
            with contextlib.suppress(AdmissionPolicyError):  # whoever uses it fails; who does not is not concerned
                environment["variables"][name] = evaluate(program, text, environment)
        return environment

    def _params(
        self, a: Attributes, policy: AdmissionPolicy, reference: Mapping[str, Any] | None
    ) -> list[Object | None]:
        wanted = policy.spec.get("paramKind")
        if not wanted or not reference:
            return [None]
        group, _, version = str(wanted.get("apiVersion") or "").rpartition("/")
        served = self._registry.by_kind(group, version, wanted.get("kind") or "")
        found: list[Object | None] = []
        if served is not None:
            namespace = (reference.get("namespace") or a.namespace) if served.kind.namespaced else ""
            if reference.get("name"):
                stored = self._store.latest(served.key, namespace, reference["name"])
                found = [stored.obj] if stored is not None else []
            else:
                selector = from_label_selector(reference.get("selector"))
                every = self._store.scan_latest(served.key)
                found = [
                    one.obj
                    for one in every
                    if (not served.kind.namespaced or one.namespace == namespace) and selector.matches(one.labels)
                ]
        if not found and reference.get("parameterNotFoundAction") == "Deny" and policy.fails_closed:
            text = f"policy '{policy.name}': no params found for policy binding with `Deny` parameterNotFoundAction"
            raise _denied(a, text, "Invalid")
        return found


def request_of(a: Attributes) -> Object:
    kind = a.served.kind
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request: Object = {
        "kind": named,
        "requestKind": named,
        "resource": resource,
        "requestResource": resource,
        "subResource": a.subresource,
        "requestSubResource": a.subresource,
        "name": a.name,
        "namespace": a.namespace,
        "operation": a.operation,
        "userInfo": {"username": a.user.name, "groups": list(a.user.groups), "extra": dict(a.user.extra)},
        "dryRun": a.dry_run,
        "options": a.options,
    }
    if a.user.uid:
        request["userInfo"]["uid"] = a.user.uid
    return request


def _mutated(a: Attributes, mutation: Mapping[str, Any], change: Any) -> Object:
    """The object after one mutation."""
    assert a.obj is not None
    before = {**a.obj, "metadata": {key: value for key, value in a.obj["metadata"].items() if key != "managedFields"}}
    kind = a.served.kind
    try:
        if mutation.get("patchType") == "JSONPatch":
            if not isinstance(change, list):
                raise AdmissionPolicyError("a JSONPatch mutation must give a list of JSONPatch")
            new = json_patch(objects.copy(before), [dict(one) for one in change])
        else:
            if not isinstance(change, dict):
                raise AdmissionPolicyError("an ApplyConfiguration mutation must give an Object")
            wanted = {**change, "apiVersion": kind.api_version, "kind": kind.kind}
            wanted["metadata"] = {**(change.get("metadata") or {}), "name": before["metadata"].get("name", "")}
            now = clock.now_rfc3339()
            new = apply(before, wanted, "admission-policy", True, a.served.schema(), kind.api_version, now)
    except (BadRequest, Invalid) as error:
        raise AdmissionPolicyError(error.message) from None
    problems = a.served.schema().type_errors(new)
    if problems:
        raise AdmissionPolicyError(f"the mutated object is not a {kind.kind}: {problems[0]}")
    return new


def _replace(a: Attributes, new: Object) -> None:
    """Takes over what a policy may change, which is neither the object's identity nor who owns its fields."""
    assert a.obj is not None
    kept = {
        key: a.obj["metadata"][key]
        for key in ("name", "generateName", "namespace", "uid", "creationTimestamp", "resourceVersion", "managedFields")
        if key in a.obj["metadata"]
    }
    metadata = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    identity = {"apiVersion": a.obj["apiVersion"], "kind": a.obj["kind"]}
    a.obj.clear()
    a.obj.update({**new, **identity, "metadata": {**metadata, **kept}})
    a.served.default(a.obj)


def _denied(a: Attributes, text: str, reason: str) -> ApiError:
    refused = a.forbidden(text)
    return REASONS.get(reason, Invalid)(refused.message, {**refused.details, "causes": [{"message": text}]})
