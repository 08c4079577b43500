"""For several people: each namespace has a user of its own on the machine, and its pods run as that one.

Pods of `danlu up` share the kernel's list of processes. What keeps those of two people apart is what keeps two accounts
of any Linux apart: a process may signal, trace, and look into the files and memory of its own user's processes alone.
So a pod gets the number of its namespace as user and group, may not choose another, and may not become another (no new
privileges: setuid programs of the machine are in its tree). OpenShift does the same with ranges of numbers.

The number follows from the namespace's uid, which the server made up: there is nothing to keep, and nothing to forge.
Namespaces of the system are left alone: nobody but an administrator makes pods there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from danlu.embedded.apiserver.admission import CREATE, DELETE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

# systemd's table of numbers leaves those from 0x70000000 on to nobody: no account, no container of another program.
FIRST_USER, USERS = 0x70000000, 1 << 27
SYSTEM = frozenset(("kube-system", "kube-public", "kube-node-lease"))
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
ENFORCE = "pod-security.kubernetes.io/enforce"
BASELINE = "baseline"
AT_LEAST_BASELINE = (BASELINE, "restricted")
MASTERS = "system:masters"


def user_of(namespace: Object) -> int:
    return FIRST_USER + UUID(namespace["metadata"]["uid"]).int % USERS


class NamespaceUsers(Handler):
    resources = frozenset({"pods", "namespaces"})

    def __init__(self, store: Store, system: frozenset[str] = SYSTEM) -> None:
        """`system`: namespaces of the administrator, whose pods are let be."""
        self._system = system
        self._users = Mirror(store, NAMESPACE.resource, user_of)

    def mutate(self, a: Attributes) -> None:
        if a.obj is None or a.operation == DELETE:
            return
        if a.served.kind.plural == "namespaces":
            if a.operation == CREATE and a.name not in self._system:
                a.obj["metadata"].setdefault("labels", {}).setdefault(ENFORCE, BASELINE)
            return
        if a.namespace in self._system or not isinstance(a.obj.get("spec"), dict):
            return
        spec = a.obj["spec"]
        user = self._user(a)
        if a.operation == CREATE and not a.subresource:
            wanted = {"runAsUser": user, "runAsGroup": user, "fsGroup": user, "runAsNonRoot": True}
            spec["securityContext"] = wanted | _given(spec.get("securityContext"))
        for container in _containers(spec):
            own = container["securityContext"] = _given(container.get("securityContext"))
            own.setdefault("allowPrivilegeEscalation", False)

    def validate(self, a: Attributes) -> None:
        if a.obj is None or a.operation == DELETE:
            return
        if a.served.kind.plural == "namespaces":
            if a.name not in SYSTEM and MASTERS not in a.user.groups:
                _keep_baseline(a, a.obj)
            return
        if a.namespace in SYSTEM:
            return
        spec = a.obj.get("spec")
        if not isinstance(spec, dict):
            return  # a binding, an eviction
        user = self._user(a)
        problem = _problem(spec, user)
        if problem:
            raise a.forbidden(f"{problem}; on this shared instance pods of namespace {a.namespace} run as user {user}")

    def is_stranger(self, pod: Object) -> bool:
        """A stored pod that has not ended and does not run as its namespace's user."""
        namespace = pod["metadata"]["namespace"]
        if namespace in SYSTEM or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return False
        user = self._users.get("", namespace)
        return user is None or bool(_problem(pod["spec"], user))

    def _user(self, a: Attributes) -> int:
        user = self._users.get("", a.namespace)
        if user is None:
            raise a.forbidden(f"namespace {a.namespace} was not found, and its user is not known")
        others = [name for name, number in self._users.items() if number == user and name != a.namespace]
        if others:  # one in a hundred million; a new namespace has another number
            raise a.forbidden(f"namespaces {a.namespace} and {others[0]} have the same user; make one of them anew")
        return user


def _keep_baseline(a: Attributes, namespace: Object) -> None:
    """Whoever has every right in a namespace may label it; how far its pods are trusted is not theirs to say."""
    labels = namespace["metadata"].get("labels") or {}
    before = ((a.old or {}).get("metadata") or {}).get("labels") or {}
    for label, allowed in ((ENFORCE, AT_LEAST_BASELINE), (f"{ENFORCE}-version", (None, "latest"))):
        value = labels.get(label)
        if value not in allowed and (a.old is None or value != before.get(label)):
            said = "nothing" if value is None else value
            raise a.forbidden(
                f"{label} says {said}; on this shared instance only an administrator goes below {BASELINE}"
            )


def _given(context: Any) -> Object:
    return {name: value for name, value in (context or {}).items() if value is not None}


def _containers(spec: Object) -> list[Object]:
    return [one for field in CONTAINERS for one in spec.get(field) or () if isinstance(one, dict)]


def _problem(spec: Object, user: int) -> str:
    """What in the pod would make it somebody else; "" for nothing."""
    of_pod = spec.get("securityContext") or {}
    places = [("spec.securityContext", of_pod)]
    for field in CONTAINERS:
        for index, container in enumerate(spec.get(field) or ()):
            own = container.get("securityContext") or {}
            places.append((f"spec.{field}[{index}].securityContext", own))
            if own.get("allowPrivilegeEscalation") is not False:
                return f"spec.{field}[{index}].securityContext.allowPrivilegeEscalation: must be false"
    for place, context in places:
        for name in ("runAsUser", "runAsGroup", "fsGroup"):
            value = context.get(name)
            if value != user and (value is not None or context is of_pod):
                return f"{place}.{name}: Invalid value: {value}: must be {user}"
        if set(context.get("supplementalGroups") or ()) - {user}:
            return f"{place}.supplementalGroups: must be empty"
    return ""
