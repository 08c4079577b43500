"""Looks for other operators of our kinds, and keeps the guards of one that does not run from locking the kinds up.

A webhook with failurePolicy Fail whose service nobody stands behind refuses every write: in Kubernetes as here, and
rightly, for nobody may pass a guard because it is asleep. But the guard of an operator whose work we do asks for no
more than our definitions' own rules, and here that operator often cannot run at all. So its failurePolicy becomes
Ignore while nothing answers, in the object itself, with an annotation and an event, and Fail again when something does.
Webhooks of anybody else stay as they are, whatever they guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from danlu.diagnose import Cause, stated
from danlu.diagnose.cause import said
from danlu.kinds._operators import findings
from danlu.kinds._operators.known import KNOWN, KnownOperator
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import DEPLOYMENT, ENDPOINT_SLICE, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager
from danlu.runtime.reconcile import Outcome, Request

SERVICE_NAME = "kubernetes.io/service-name"
LOOK_AGAIN_S = 5.0  # at a service: nobody tells us that its pods are ready
Told = Callable[[Sequence[Cause]], None]


class OtherOperators:
    def __init__(self, manager: Manager, kinds: Sequence[Kind], told: Told) -> None:
        """`told`: everything found, each time that it has changed."""
        self._client = manager.client
        self._kinds = kinds
        self._told = told
        self._recorder = manager.recorder("danlu-operator")
        self._deployments = manager.informer(DEPLOYMENT)
        self._configurations = {kind: manager.informer(kind) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)}
        self._known = {operator.manager: operator for operator in KNOWN}
        self._found: dict[str, list[Cause]] = {}
        self.controller = Controller("other operators", self.reconcile, workers=1)
        for informer in (self._deployments, *self._configurations.values()):
            self.controller.watches(informer, self._concerned)

    def _concerned(self, obj: Object) -> list[Request]:
        return [
            Request("", operator.manager)
            for operator in KNOWN
            if operator.is_workload(obj) or any(findings.guards(operator, obj, self._kinds))
        ]

    async def reconcile(self, request: Request) -> Outcome | None:
        operator = self._known[request.name]
        kinds = [kind for kind in self._kinds if kind.group == operator.group]
        causes = self._causes_of_deployments(operator, kinds)
        guarded = False
        for kind, informer in self._configurations.items():
            for configuration in informer.list():
                guarding = [*findings.guards(operator, configuration, kinds)]
                if guarding:
                    guarded = True
                    causes += await self._look_after(operator, kind, configuration, guarding)
        if causes != self._found.get(operator.manager, []):
            self._found[operator.manager] = causes
            self._told([cause for found in self._found.values() for cause in found])
        return Outcome(requeue_after=LOOK_AGAIN_S) if guarded else None

    def _causes_of_deployments(self, operator: KnownOperator, kinds: Sequence[Kind]) -> list[Cause]:
        words = ", ".join(kind.kind for kind in kinds)
        by_place = {
            f"{obj['metadata']['namespace']}/{obj['metadata']['name']}": obj for obj in self._deployments.list()
        }
        causes = []
        for one in findings.installed(operator, by_place.values()):
            namespace, _, name = one.place.partition("/")
            about = {"operator": operator.name, "kinds": words, "namespace": namespace, "name": name}
            cause = Cause("DL-TWO-OPERATORS" if one.runs else "DL-OPERATOR-IDLE", about)
            causes.append(cause)
            if cause not in self._found.get(operator.manager, ()):
                self._recorder.warning(by_place[one.place], "AnotherOperator", said([cause]))
        return causes

    async def _look_after(
        self, operator: KnownOperator, kind: Kind, configuration: Object, guarding: Sequence[Object]
    ) -> list[Cause]:
        """What is told of one configuration, which is as it should be then."""
        silent = {hook["name"] for hook in guarding if not await self._is_answered(hook)}
        wanted = findings.policies(configuration, {hook["name"] for hook in guarding}, silent)
        before, aside = findings.set_aside(configuration), findings.set_aside(wanted or configuration)
        cause = Cause(
            "DL-WEBHOOK-ASIDE",
            {
                "operator": operator.name,
                "webhooks": ", ".join(sorted(aside)),
                "resource": kind.singular_name,
                "name": configuration["metadata"]["name"],
            },
        )
        if wanted is not None:
            written = await self._client.update(kind, wanted)
            if aside:
                self._recorder.warning(written, "WebhookSetAside", said([cause]))
            elif before:
                back = stated("DL-WEBHOOK-BACK", webhooks=", ".join(sorted(before)))
                self._recorder.normal(written, "WebhookBack", back)
        return [cause] if aside else []

    async def _is_answered(self, webhook: Object) -> bool:
        service = findings.backend(webhook)
        if service is None:
            return True
        namespace, name = service
        slices = await self._client.list(ENDPOINT_SLICE, namespace, labels=f"{SERVICE_NAME}={name}")
        return findings.is_answered(slices.items)
