"""Pod Security admission: a namespace's labels say what its pods may ask of the node (`meta/podsecurity`).

Pods are refused (enforce). Templates of workloads are only warned of, for their pods are looked at when they come; and
whoever makes a namespace stricter is told which of its pods would not be taken any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.embedded.settings import PodSecuritySettings
from danlu.meta import owners, wellknown
from danlu.meta.fields import invalid_error
from danlu.meta.kind import Object
from danlu.meta.podsecurity import (
    PRIVILEGED,
    LevelVersion,
    PodSecurityPolicy,
    detailed,
    evaluate,
    is_significant_update,
    policy_of,
    reasons,
    strictness,
)

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

PODS, NAMESPACES = wellknown.POD.resource, wellknown.NAMESPACE.resource
TEMPLATES = frozenset(
    {
        "podtemplates", "replicationcontrollers", "replicasets.apps", "deployments.apps", "statefulsets.apps",
        "daemonsets.apps", "jobs.batch",
    }
)  # fmt: skip
IGNORED = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
MOST_LOOKED_AT = 3000  # pods of a namespace that becomes stricter
AUDIT = "pod-security.kubernetes.io/"


class PodSecurity(Handler):
    resources = TEMPLATES | {PODS, NAMESPACES}

    def __init__(self, store: Store, settings: PodSecuritySettings) -> None:
        self._store = store
        self._settings = settings
        self._defaults = PodSecurityPolicy(
            *(LevelVersion(*stated) for stated in (settings.enforce, settings.audit, settings.warn))
        )
        self._policies = Mirror(store, NAMESPACES, self._policy)

    def _policy(self, namespace: Object) -> PodSecurityPolicy:
        return policy_of(namespace["metadata"].get("labels") or {}, self._defaults)[0]

    def validate(self, a: Attributes) -> None:
        if a.obj is None or a.operation not in (CREATE, UPDATE):
            return
        if a.served.key == NAMESPACES:
            if not a.subresource:
                self._validate_namespace(a, a.obj)
            return
        policy = self._policies.get("", a.namespace) or self._defaults
        if policy.asks_nothing or self._is_exempt(a):
            return
        if a.served.key == PODS:
            if a.subresource not in IGNORED and not (a.old is not None and not is_significant_update(a.obj, a.old)):
                self._evaluate(a, policy, a.obj, enforce=True)
        elif not a.subresource:
            template = a.obj.get("template") or (a.obj.get("spec") or {}).get("template")
            if template:
                self._evaluate(a, policy, template, enforce=False)

    def _is_exempt(self, a: Attributes) -> bool:
        by = [
            word
            for word, one, exempt in (
                ("namespace", a.namespace, self._settings.exempt_namespaces),
                ("user", a.user.name, self._settings.exempt_users),
            )
            if one in exempt
        ]
        if by:
            a.audited[f"{AUDIT}exempt"] = by[0]
        return bool(by)

    def _evaluate(self, a: Attributes, policy: PodSecurityPolicy, pod: Object, *, enforce: bool) -> None:
        metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        if spec.get("runtimeClassName") in self._settings.exempt_runtime_classes:
            a.audited[f"{AUDIT}exempt"] = "runtimeClass"
            return
        found = {level: evaluate(level, metadata, spec) for level in {policy.enforce, policy.audit, policy.warn}}
        if found[policy.audit]:
            text = f'would violate PodSecurity "{policy.audit}": {detailed(found[policy.audit])}'
            a.audited[f"{AUDIT}audit-violations"] = text
        if enforce:
            a.audited[f"{AUDIT}enforce-policy"] = str(policy.enforce)
            if found[policy.enforce]:
                raise a.forbidden(f'violates PodSecurity "{policy.enforce}": {detailed(found[policy.enforce])}')
        if found[policy.warn]:
            a.warnings.append(f'would violate PodSecurity "{policy.warn}": {detailed(found[policy.warn])}')

    # -- namespaces

    def _validate_namespace(self, a: Attributes, namespace: Object) -> None:
        wanted, errors = policy_of(namespace["metadata"].get("labels") or {}, self._defaults)
        before, earlier = policy_of(((a.old or {}).get("metadata") or {}).get("labels") or {}, self._defaults)
        if errors and (a.operation == CREATE or errors != earlier):
            raise invalid_error(a.served.kind, a.name, errors)
        if a.operation == CREATE or wanted.enforce == before.enforce or wanted.enforce.level == PRIVILEGED:
            return
        same_version = wanted.enforce.version == before.enforce.version
        if same_version and strictness(wanted.enforce.level) <= strictness(before.enforce.level):
            return
        if a.name not in self._settings.exempt_namespaces:
            a.warnings.extend(self._existing(a.name, wanted.enforce))

    def _existing(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Which pods that are there would not be taken: one of each sort, with how many more there are."""
        pods = self._sorted(stored.obj for stored in self._store.scan_latest(PODS, namespace))
        told: list[str] = []
        if len(pods) > MOST_LOOKED_AT:
            told.append(
                f"new PodSecurity enforce level only checked against the first {MOST_LOOKED_AT} of {len(pods)} "
                "existing pods"
            )
        by_warning: dict[str, list[str]] = {}
        for pod in pods[:MOST_LOOKED_AT]:
            violations = evaluate(enforce, pod["metadata"], pod.get("spec") or {})
            if violations:
                by_warning.setdefault(reasons(violations), []).append(pod["metadata"]["name"])
        if by_warning:
            told.append(
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforce}"'
            )
        return told + sorted(_counted(min(names), len(names), warning) for warning, names in by_warning.items())

    def _sorted(self, pods: Iterable[Object]) -> Sequence[Object]:
        """The first pod of each owner before all others: they tell the most, should there be too many to look at."""
        first: list[Object] = []
        others: list[Object] = []
        seen: set[str] = set()
        for pod in pods:
            if (pod.get("spec") or {}).get("runtimeClassName") in self._settings.exempt_runtime_classes:
                continue
            owner = owners.controller_of(pod)
            (others if owner is not None and owner["uid"] in seen else first).append(pod)
            if owner is not None:
                seen.add(owner["uid"])
        return first + others


def _counted(name: str, count: int, warning: str) -> str:
    others = count - 1
    more = "" if not others else f" (and {others} other {'pod' if others == 1 else 'pods'})"
    return f"{name}{more}: {warning}"
