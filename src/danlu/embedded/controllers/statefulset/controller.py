"""The StatefulSet controller: one `_Sync` for each look at one set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from danlu import errors
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.history import STATEFUL_SET_HASH, History, Revisions, template_of
from danlu.embedded.controllers.statefulset import identity
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status


def make(manager: Manager) -> Controller:
    sets = StatefulSetController(manager)
    controller = Controller("statefulset", sets.reconcile)
    controller.watches(sets.stateful_sets)
    states.wake_owners(controller, sets.pods, sets.stateful_sets)
    return controller


class StatefulSetController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.recorder = manager.recorder("statefulset-controller")
        self.stateful_sets = manager.informer(STATEFUL_SET)
        self.pods = states.index_by_owner(manager.informer(POD))
        self.claims = manager.informer(PERSISTENT_VOLUME_CLAIM)
        self.history = History(manager.client, manager.informer(CONTROLLER_REVISION), STATEFUL_SET, STATEFUL_SET_HASH)

    async def reconcile(self, request: Request) -> Outcome | None:
        stateful_set = self.stateful_sets.get(request.namespace, request.name)
        if stateful_set is None:
            return None
        selector = states.selector_of(stateful_set)
        pods = await states.claim(
            states.ChildClaims(self.client, self.pods, STATEFUL_SET),
            stateful_set,
            selector,
            can_adopt=lambda pod: identity.is_member(stateful_set, pod),
        )
        revisions = await self.history.sync(stateful_set)
        return await _Sync(self, stateful_set, pods, revisions, self.clock()).run()


@dataclass(slots=True)
class _Sync:
    controller: StatefulSetController
    stateful_set: Object
    pods: list[Object]
    revisions: Revisions
    now: datetime
    current: Object = field(init=False)  # the revision that pods not yet updated have
    update: Object = field(init=False)

    def __post_init__(self) -> None:
        self.update = self.revisions.present
        name = (self.stateful_set.get("status") or {}).get("currentRevision")
        known = {revision["metadata"]["name"]: revision for revision in self.revisions.everything}
        self.current = known.get(name, self.update) if name else self.update

    @property
    def spec(self) -> Object:
        spec: Object = self.stateful_set["spec"]
        return spec

    @property
    def ordered(self) -> bool:
        return bool(self.spec.get("podManagementPolicy") != "Parallel")

    async def run(self) -> Outcome:
        failure: errors.ApiError | None = None
        if not objects.is_deleting(self.stateful_set):
            try:
                await self._settle()
            except errors.ApiError as error:
                failure = error
        pods = self.controller.pods.by_index(states.BY_CONTROLLER, self.stateful_set["metadata"]["uid"])
        await write_status(self.controller.client, STATEFUL_SET, self.stateful_set, self._status(pods))
        if failure is not None:
            raise failure
        await self._truncate(pods)
        return Outcome(requeue_after=states.next_availability(pods, self._min_ready, self.now))

    async def _truncate(self, pods: list[Object]) -> None:
        limit = self.spec.get("revisionHistoryLimit")
        if limit is None or limit < 0:
            return
        live = {self.current["metadata"]["name"], self.update["metadata"]["name"], *map(identity.revision_of, pods)}
        await self.controller.history.truncate(self.revisions.everything, live, limit)

    # -- pods

    async def _settle(self) -> None:
        """Pods that are missing come first, then those beyond the size go, then old ones are replaced."""
        wanted = identity.ordinals(self.stateful_set)
        present = {identity.ordinal(pod): pod for pod in self.pods}
        condemned = sorted(
            (pod for number, pod in present.items() if number >= 0 and number not in wanted),
            key=identity.ordinal,
            reverse=True,
        )
        if self.ordered:
            for number in wanted:
                if not await self._process(number, present.get(number)):
                    return
        else:
            numbers = identity.to_process(wanted, present, states.room_for(self.pods))
            _, failure = await states.slow_start(
                len(numbers), lambda n: self._process(numbers[n], present.get(numbers[n]))
            )
            if failure is not None:
                raise failure
        for pod in condemned:
            await self._own_claims(pod)
        kept = [pod for number, pod in sorted(present.items()) if number in wanted]
        if await self._remove(condemned, kept):
            await self._replace(wanted, present)

    async def _process(self, number: int, pod: Object | None) -> bool:
        """Brings one ordinal where it should be. False: the next ones have to wait for it."""
        if pod is None:
            await self._create(number)
            return False
        if states.is_finished(pod):
            if not objects.is_deleting(pod):
                await self._delete(pod)
            return False
        if states.phase(pod) == "Pending":
            await self._make_claims(pod, number)
        if self.ordered and not self._is_available(pod):
            return False
        await self._mend(pod, number)
        return True

    async def _create(self, number: int) -> None:
        revision, template = self.update, self.spec["template"]
        if number < identity.start(self.stateful_set) + self._kept():
            revision, template = self.current, template_of(self.current)
        pod = identity.new_pod(self.stateful_set, template, number, revision["metadata"]["name"])
        if self._waits_for_claims(pod, number):
            return
        name = pod["metadata"]["name"]
        try:
            await self._make_claims(pod, number)
            made = await self.controller.client.create(POD, pod)
        except errors.AlreadyExists:
            raise
        except errors.ApiError as error:
            self._record("create", name, error)
            raise
        await self._own_claims(made)
        self._record("create", name)

    def _kept(self) -> int:
        """How many of the first ordinals keep the current revision while an update is under way."""
        strategy = self.spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate")
        if rolling is not None:
            return int(rolling.get("partition") or 0)
        if strategy.get("type") == "RollingUpdate":
            return int((self.stateful_set.get("status") or {}).get("currentReplicas") or 0)
        return 0

    async def _mend(self, pod: Object, number: int) -> None:
        meta = pod["metadata"]
        labels = identity.missing_labels(pod)
        if labels:
            try:
                await self.controller.client.patch(
                    POD, meta["name"], meta["namespace"], {"metadata": {"labels": labels}}
                )
            except errors.ApiError as error:
                self._record("update", meta["name"], error)
                raise
            self._record("update", meta["name"])
        await self._own_claims(pod)

    async def _remove(self, condemned: list[Object], replicas: list[Object]) -> bool:
        """Scales down from the highest ordinal, one by one unless parallel. False: not finished."""
        if not self.ordered:
            for pod in condemned:
                if not objects.is_deleting(pod):
                    await self._delete(pod)
            return True
        unhealthy = [pod for pod in (*replicas, *reversed(condemned)) if not self._is_available(pod)]
        first_unhealthy = unhealthy[0] if unhealthy else None
        for pod in condemned:
            if objects.is_deleting(pod):
                return False
            if not self._is_available(pod) and pod is not first_unhealthy:
                return False
            await self._delete(pod)
            return False
        return True

    async def _replace(self, wanted: range, present: Mapping[int, Object]) -> None:
        """Rolling update, from the highest ordinal down to the partition; one pod at a time is without service."""
        strategy = self.spec.get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        for number in reversed(wanted[partition:]):
            pod = present.get(number)
            if pod is None:
                return
            if identity.revision_of(pod) != self.update["metadata"]["name"] and not objects.is_deleting(pod):
                await self._delete(pod)
                return
            if not self._is_available(pod):
                return

    async def _delete(self, pod: Object) -> None:
        meta = pod["metadata"]
        try:
            await self.controller.client.delete(POD, meta["name"], meta["namespace"], uid=meta["uid"])
        except (errors.NotFound, errors.Conflict):
            return
        except errors.ApiError as error:
            self._record("delete", meta["name"], error)
            raise
        self._record("delete", meta["name"])

    @property
    def _min_ready(self) -> int:
        return int(self.spec.get("minReadySeconds") or 0)

    def _is_available(self, pod: Object) -> bool:
        return not objects.is_deleting(pod) and states.is_available(pod, self._min_ready, self.now)

    # -- claims

    def _waits_for_claims(self, pod: Object, number: int) -> bool:
        """A claim that is going away with a predecessor of the pod must be gone before the pod may come back."""
        policy = self.spec.get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenScaled") != "Delete":
            return False
        return any(identity.is_stale(claim, POD, pod) for claim in self._claims(number))

    def _claims(self, number: int) -> list[Object]:
        namespace = self.stateful_set["metadata"]["namespace"]
        templates = identity.claim_templates(self.stateful_set)
        names = (identity.claim_name(self.stateful_set, template, number) for template in templates)
        found = (self.controller.claims.get(namespace, name) for name in names)
        return [claim for claim in found if claim is not None]

    async def _make_claims(self, pod: Object, number: int) -> None:
        held = {claim["metadata"]["name"]: claim for claim in self._claims(number)}
        for claim in identity.new_claims(self.stateful_set, number):
            name = claim["metadata"]["name"]
            existing = held.get(name)
            if existing is not None:
                if objects.is_deleting(existing):
                    raise errors.Conflict(f"pvc {name} is being deleted")
                continue
            whose = f"Pod {pod['metadata']['name']} in StatefulSet {self.stateful_set['metadata']['name']}"
            try:
                await self.controller.client.create(PERSISTENT_VOLUME_CLAIM, claim)
            except errors.AlreadyExists:
                continue
            except errors.ApiError as error:
                text = f"Create Claim {name} for {whose} failed error: {error}"
                self.controller.recorder.warning(self.stateful_set, "FailedCreate", text)
                raise
            text = f"Create Claim {name} {whose} success"
            self.controller.recorder.normal(self.stateful_set, "SuccessfulCreate", text)

    async def _own_claims(self, pod: Object) -> None:
        for claim in self._claims(identity.ordinal(pod)):
            name = claim["metadata"]["name"]
            if identity.has_foreign_controller(claim, self.stateful_set, pod):
                text = (
                    f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                    "the retention policy is ignored for this claim"
                )
                self.controller.recorder.warning(self.stateful_set, "ConflictingController", text)
            wanted = identity.wanted_owners(claim, self.stateful_set, pod)
            if wanted != (claim["metadata"].get("ownerReferences") or []):
                changed = {**claim, "metadata": {**claim["metadata"], "ownerReferences": wanted}}
                await self.controller.client.update(PERSISTENT_VOLUME_CLAIM, changed)

    # -- what is told

    def _record(self, verb: str, pod: str, error: Exception | None = None) -> None:
        subject = f"{verb.capitalize()} Pod {pod} in StatefulSet {self.stateful_set['metadata']['name']}"
        recorder = self.controller.recorder
        if error is None:
            recorder.normal(self.stateful_set, f"Successful{verb.capitalize()}", f"{subject} successful")
        else:
            recorder.warning(self.stateful_set, f"Failed{verb.capitalize()}", f"{subject} failed error: {error}")

    def _status(self, pods: list[Object]) -> Object:
        current, update = self.current["metadata"]["name"], self.update["metadata"]["name"]
        staying = [identity.revision_of(pod) for pod in pods if not objects.is_deleting(pod)]
        ready = [pod for pod in pods if states.phase(pod) == "Running" and states.is_ready(pod)]
        counts = {
            "currentReplicas": staying.count(current),
            "updatedReplicas": staying.count(update),
            "readyReplicas": len(ready),
        }
        wanted = self.spec["replicas"]
        rolling = (self.spec.get("updateStrategy") or {}).get("type") == "RollingUpdate"
        if rolling and counts["updatedReplicas"] == counts["readyReplicas"] == len(pods) == wanted:
            current, counts["currentReplicas"] = update, counts["updatedReplicas"]
        held = (self.stateful_set.get("status") or {}).get("conditions")
        return {
            "replicas": len(pods),
            "availableReplicas": sum(states.is_available(pod, self._min_ready, self.now) for pod in ready),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": self.revisions.collisions,
            **states.nonzero(observedGeneration=self.stateful_set["metadata"].get("generation", 0), **counts),
            **({"conditions": held} if held else {}),
        }
