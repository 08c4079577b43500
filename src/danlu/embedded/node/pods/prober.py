"""The probes of a pod's containers: startup first, then liveness and readiness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from danlu.embedded.node.pods import podstatus, probes
from danlu.embedded.node.pods.localpod import LocalPod
from danlu.embedded.node.pods.members import Member
from danlu.embedded.node.pods.termination import Termination
from danlu.meta.kind import Object

Changed = Callable[[Member, bool], None]  # the container, and whether it passed


class Prober:
    def __init__(self, pod: LocalPod, termination: Termination) -> None:
        self._pod = pod
        self._termination = termination

    def begin(self, member: Member) -> None:
        view, spec = member.view, member.spec
        if not view.started:
            member.tasks.append(self._probe(member, "Startup", spec["startupProbe"], self._on_startup))
            return
        if "livenessProbe" in spec:
            member.tasks.append(self._probe(member, "Liveness", spec["livenessProbe"], self._on_liveness))
        if "readinessProbe" in spec:
            member.tasks.append(self._probe(member, "Readiness", spec["readinessProbe"], self._on_readiness))
        else:
            view.ready = True
        self._pod.wake.set()

    def _probe(self, member: Member, what: str, settings: Object, changed: Changed) -> asyncio.Task[None]:
        def failed(said: str) -> None:
            self._pod.event("Warning", "Unhealthy", f"{what} probe failed: {said}", member)

        def verdict(passed: bool) -> None:
            changed(member, passed)

        initially = member.view.ready if what == "Readiness" else what == "Liveness"
        return asyncio.create_task(
            probes.watch(settings, member, initially=initially, changed=verdict, failed=failed, once=what == "Startup")
        )

    def _on_startup(self, member: Member, passed: bool) -> None:
        if passed:
            member.view.started = True
            self.begin(member)
        else:
            self._termination.kill(member, self._failed(member, "startup"), "startupProbe")

    def _on_liveness(self, member: Member, passed: bool) -> None:
        if not passed:
            self._termination.kill(member, self._failed(member, "liveness"), "livenessProbe")

    def _on_readiness(self, member: Member, passed: bool) -> None:
        member.view.ready = passed
        self._pod.publisher.publish()

    def _failed(self, member: Member, probe: str) -> str:
        never = podstatus.restart_policy(self._pod.pod["spec"], member.spec) == "Never"
        return f"Container {member.view.name} failed {probe} probe" + ("" if never else ", will be restarted")
