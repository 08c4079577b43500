"""Admission: what happens to a write between "well-formed" and "stored".

All plugins mutate, in the order of `standard_chain`; the kind validates; then all plugins validate in the same order.
Plugins are synchronous and read only memory, so nothing can come between their decision and the store. Each says which
resources it handles: the chain asks only those, and a ConfigMap pays for the two plugins that concern it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from danlu.embedded.apiserver.auth.forbidden import resource_forbidden
from danlu.embedded.settings import PodSecuritySettings
from danlu.errors import Forbidden
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.apiserver.auth.rbac import Authorizer
    from danlu.embedded.apiserver.request import User
    from danlu.embedded.apiserver.served import ServedKind
    from danlu.embedded.storage.store import Store

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"
GENERATED = 5  # letters that the server adds to a generateName


@dataclass(slots=True)
class Attributes:
    """One write, as admission sees it."""

    operation: str  # CREATE, UPDATE, DELETE, CONNECT
    served: ServedKind
    namespace: str
    name: str
    subresource: str
    obj: Object | None  # may be changed in `mutate`, and only there
    old: Object | None
    user: User
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    mutating: bool = False  # kept by the chain
    audited: dict[str, str] = field(default_factory=dict)  # annotations for an audit log

    def forbidden(self, text: str) -> Forbidden:
        """The refusal of a plugin. Kubernetes mutates before it makes a name up, and so names the prefix there."""
        kind = self.served.kind
        meta = (self.obj or {}).get("metadata") or {}
        prefix = meta.get("generateName") or ""
        name = self.name or meta.get("name") or prefix or "Unknown"
        made_up = name.startswith(prefix) and len(name) == len(prefix) + GENERATED  # not so `web-0` of a StatefulSet
        if self.mutating and prefix and self.operation == CREATE and made_up:
            name = prefix
        return resource_forbidden(kind.plural, kind.group, name, text)


class Plugin(Protocol):
    def mutate(self, a: Attributes) -> None: ...
    def validate(self, a: Attributes) -> None: ...


class Handler:
    """A plugin's base: handles the resources it names (None: all of them) and does nothing until it is overridden."""

    resources: frozenset[str] | None = None

    def mutate(self, a: Attributes) -> None:
        pass

    def validate(self, a: Attributes) -> None:
        pass


Step = Callable[[Attributes], None]


class Chain:
    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self._mutating: dict[str, tuple[Step, ...]] = {}
        self._validating: dict[str, tuple[Step, ...]] = {}

    def mutate(self, a: Attributes) -> None:
        a.mutating = True
        resource = a.served.key
        steps = self._mutating.get(resource)
        if steps is None:
            steps = self._mutating[resource] = self._steps(resource, "mutate")
        for step in steps:
            step(a)

    def validate(self, a: Attributes) -> None:
        a.mutating = False
        resource = a.served.key
        steps = self._validating.get(resource)
        if steps is None:
            steps = self._validating[resource] = self._steps(resource, "validate")
        for step in steps:
            step(a)

    def _steps(self, resource: str, step: str) -> tuple[Step, ...]:
        return tuple(
            getattr(plugin, step)
            for plugin in self.plugins
            if _handles(plugin, resource) and getattr(type(plugin), step) is not getattr(Handler, step)
        )


def _handles(plugin: Plugin, resource: str) -> bool:
    resources = getattr(plugin, "resources", None)
    return resources is None or resource in resources


def standard_chain(
    store: Store,
    authorizer: Authorizer,
    further: Sequence[Plugin] = (),
    pod_security: PodSecuritySettings | None = None,
) -> Chain:
    """The plugins of a cluster, in Kubernetes' own order; quota is last, so that it counts only what else passed."""
    from danlu.embedded.apiserver.admission.certificate_requests import CertificateAdmission
    from danlu.embedded.apiserver.admission.default_tolerations import DefaultTolerations
    from danlu.embedded.apiserver.admission.ingress_class import DefaultIngressClass
    from danlu.embedded.apiserver.admission.limit_ranger import LimitRanger
    from danlu.embedded.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
    from danlu.embedded.apiserver.admission.pod_security import PodSecurity
    from danlu.embedded.apiserver.admission.priority import Priority
    from danlu.embedded.apiserver.admission.pvc_resize import ClaimResize
    from danlu.embedded.apiserver.admission.rbac_escalation import RbacEscalation
    from danlu.embedded.apiserver.admission.resource_quota import ResourceQuota
    from danlu.embedded.apiserver.admission.runtime_class import RuntimeClass
    from danlu.embedded.apiserver.admission.service_account import ServiceAccount
    from danlu.embedded.apiserver.admission.storage_class import DefaultStorageClass
    from danlu.embedded.apiserver.admission.storage_object_in_use import StorageObjectInUse

    return Chain(
        (
            NamespaceLifecycle(store),
            RbacEscalation(authorizer),
            LimitRanger(store),
            ServiceAccount(store),
            PodSecurity(store, pod_security or PodSecuritySettings()),
            Priority(store),
            DefaultTolerations(),
            DefaultStorageClass(store),
            StorageObjectInUse(),
            RuntimeClass(store),
            CertificateAdmission(authorizer),
            DefaultIngressClass(store),
            ClaimResize(store),
            *further,
            ResourceQuota(store),
        )
    )
