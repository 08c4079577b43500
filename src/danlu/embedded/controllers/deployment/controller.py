"""The Deployment controller: one `_Sync` for each look at one deployment. The status is written once, at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from danlu import errors
from danlu.client.informer import DELETED
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers.deployment import revisions, rollout
from danlu.meta import conditions, objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.meta.wellknown import DEPLOYMENT, POD, REPLICA_SET
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status


def make(manager: Manager) -> Controller:
    deployments = DeploymentController(manager)
    controller = Controller("deployment", deployments.reconcile)
    controller.watches(deployments.deployments)
    states.wake_owners(controller, deployments.replica_sets, deployments.deployments)

    def pod_ended(event: str, pod: Object, _old: Object | None) -> None:
        """Recreate waits until the last old pod is gone, of which no replica set tells."""
        if event != DELETED and not states.is_finished(pod):
            return
        above = owners.controller_of(pod)
        if above is None or above["kind"] != REPLICA_SET.kind:
            return
        replica_set = deployments.replica_sets.get(pod["metadata"]["namespace"], above["name"])
        top = owners.controller_of(replica_set) if replica_set is not None else None
        if top is not None and top["kind"] == DEPLOYMENT.kind:
            controller.queue.add(Request(pod["metadata"]["namespace"], top["name"]))

    deployments.pods.add_handler(pod_ended)
    return controller


class DeploymentController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.recorder = manager.recorder("deployment-controller")
        self.deployments = manager.informer(DEPLOYMENT)
        self.replica_sets = states.index_by_owner(manager.informer(REPLICA_SET))
        self._claims = states.ChildClaims(self.client, self.replica_sets, DEPLOYMENT)
        self.pods = states.index_by_owner(manager.informer(POD))

    async def reconcile(self, request: Request) -> Outcome | None:
        deployment = self.deployments.get(request.namespace, request.name)
        if deployment is None:
            return None
        if not any((deployment["spec"].get("selector") or {}).values()):
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self.recorder.warning(deployment, "SelectingAll", text)
            return None
        selector = states.selector_of(deployment)
        owned = await states.claim(self._claims, deployment, selector)
        return await _Sync(self, deployment, owned, self.clock()).run()


@dataclass(slots=True)
class _Sync:
    controller: DeploymentController
    deployment: Object
    owned: list[Object]  # replica sets
    now: datetime
    held: list[Object] = field(init=False)  # conditions, on their way into the status
    collisions: int | None = field(init=False)
    new: Object | None = None
    old: list[Object] = field(default_factory=list)
    has_new_revision: bool = False

    def __post_init__(self) -> None:
        status = self.deployment.get("status") or {}
        self.held = objects.copy(status.get("conditions") or [])
        self.collisions = status.get("collisionCount")
        self._sort_out()

    def _sort_out(self) -> None:
        """The replica set of the present template is the new one; should there be several, the oldest."""
        template = self.deployment["spec"]["template"]
        ordered = rollout.oldest_first(self.owned)
        same = (one for one in ordered if revisions.same_template(one["spec"]["template"], template))
        self.new = next(same, None)
        self.old = [one for one in ordered if one is not self.new]

    @property
    def everything(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new is not None else ())]

    # -- the whole

    async def run(self) -> Outcome:
        if objects.is_deleting(self.deployment):
            await self._write(self._counts())
            return Outcome()
        self._note_pause()
        await self._adopt_revision()
        if self.deployment["spec"].get("paused"):
            await self._scale()
            await self._clean_up()
            await self._write(self._counts())
        elif self._was_scaled():
            await self._scale()
            await self._write(self._counts())
        else:
            if rollout.is_rolling(self.deployment):
                await self._roll()
            else:
                await self._recreate()
            if rollout.is_complete(self.deployment, self.deployment.get("status") or {}):
                await self._clean_up()
            await self._write(self._with_progress(self._counts()))
        due = rollout.deadline(self.deployment, self.deployment.get("status") or {})
        if due is None:
            return Outcome()
        return Outcome(requeue_after=max(0.0, (due - self.now).total_seconds()) + 1.0)

    # -- revisions

    async def _adopt_revision(self) -> None:
        """The new replica set, where there is one, carries the highest revision and the deployment's annotations."""
        if self.new is None:
            return
        wanted = revisions.annotations_for(self.deployment, self.new, revisions.newest(self.old) + 1)
        min_ready = self.deployment["spec"].get("minReadySeconds") or 0
        spec = self.new["spec"]
        if wanted != objects.annotations_of(self.new) or (spec.get("minReadySeconds") or 0) != min_ready:
            await self._update(self.new, wanted, {**spec, "minReadySeconds": min_ready})
        self._set_revision(wanted.get(revisions.REVISION, ""))
        if conditions.get(self.held, "Progressing") is None:
            self._progress("True", "FoundNewReplicaSet", f'Found new replica set "{self.new["metadata"]["name"]}"')

    def _set_revision(self, revision: str) -> None:
        """Goes out with the status: through the main resource a new annotation would count as a new generation."""
        meta = self.deployment["metadata"]
        annotations = objects.annotations_of(self.deployment)
        if annotations.get(revisions.REVISION) != revision:
            changed = {**meta, "annotations": {**annotations, revisions.REVISION: revision}}
            self.deployment = {**self.deployment, "metadata": changed}
            self.has_new_revision = True

    async def _create_new(self) -> None:
        if self.new is not None:
            return
        made = self._new_replica_set()
        name, size = made["metadata"]["name"], rollout.replicas(made)
        try:
            self.new = await self.controller.client.create(REPLICA_SET, made)
        except errors.AlreadyExists:
            # Ours are all known, so it is another's, or of another template with the same hash: take another hash.
            self.collisions = (self.collisions or 0) + 1
            await self._write(self._counts())
            raise
        except errors.ApiError as error:
            if not states.is_namespace_ending(error):
                text = f'Failed to create new replica set "{name}": {error}'
                self._progress("False", "ReplicaSetCreateError", text)
                self.controller.recorder.warning(self.deployment, "ReplicaSetCreateError", text)
                await self._write(self._counts())
            raise
        if size > 0:
            text = f"Scaled up replica set {name} from 0 to {size}"
            self.controller.recorder.normal(self.deployment, "ScalingReplicaSet", text)
        self._progress("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        self._set_revision(made["metadata"]["annotations"][revisions.REVISION])

    def _new_replica_set(self) -> Object:
        spec, meta = self.deployment["spec"], self.deployment["metadata"]
        hashed = revisions.template_hash(spec["template"], self.collisions)
        template = objects.copy(spec["template"])
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels[revisions.HASH_LABEL] = hashed
        selector = objects.copy(spec["selector"])
        selector.setdefault("matchLabels", {})[revisions.HASH_LABEL] = hashed
        made: Object = {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.kind,
            "metadata": {
                "name": revisions.name_of(meta["name"], hashed),
                "namespace": meta["namespace"],
                "labels": dict(labels),
                "ownerReferences": [owners.reference(self.deployment, DEPLOYMENT)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        made["spec"]["replicas"] = rollout.new_size(self.deployment, self.old, made)
        made["metadata"]["annotations"] = {
            **revisions.annotations_for(self.deployment, made, revisions.newest(self.old) + 1),
            **self._size_annotations(),
        }
        return made

    async def _clean_up(self) -> None:
        """Of old replica sets that are down to nothing only the newest few are kept, to roll back to."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit in (None, rollout.NO_LIMIT):
            return
        alive = [one for one in self.old if not objects.is_deleting(one)]
        surplus = max(0, len(alive) - int(limit or 0))
        for one in sorted(alive, key=revisions.revision)[:surplus]:
            meta = one["metadata"]
            seen = rollout.counted(one, "observedGeneration") >= meta.get("generation", 0)
            if rollout.replicas(one) == 0 and rollout.counted(one, "replicas") == 0 and seen:
                try:
                    await self.controller.client.delete(
                        REPLICA_SET, meta["name"], meta["namespace"], uid=meta["uid"], propagation="Background"
                    )
                except errors.NotFound:
                    continue

    # -- sizes

    def _size_annotations(self) -> dict[str, str]:
        wanted = rollout.replicas(self.deployment)
        return revisions.size_annotations(wanted, wanted + rollout.max_surge(self.deployment))

    def _was_scaled(self) -> bool:
        """Whether `replicas` was changed since the replica sets were last sized."""
        wanted = rollout.replicas(self.deployment)
        desired = (revisions.number(one, revisions.DESIRED_REPLICAS) for one in rollout.active(self.everything))
        return any(one is not None and one != wanted for one in desired)

    async def _scale(self) -> None:
        wanted = rollout.replicas(self.deployment)
        running = rollout.active(self.everything)
        if len(running) <= 1:
            # Nothing is rolling: the one that runs, or the latest, takes the size.
            latest = self.new if self.new is not None else (self.old[-1] if self.old else None)
            one = running[0] if running else latest
            if one is not None:
                await self._resize(one, wanted)
            return
        if self.new is not None and self._is_saturated(self.new):
            for one in rollout.active(self.old):
                await self._resize(one, 0)
        elif rollout.is_rolling(self.deployment):
            for one, size in rollout.proportional_sizes(self.deployment, running):
                await self._resize(one, size, always=True)

    def _is_saturated(self, new: Object) -> bool:
        wanted = rollout.replicas(self.deployment)
        desired = revisions.number(new, revisions.DESIRED_REPLICAS)
        return rollout.replicas(new) == desired == rollout.counted(new, "availableReplicas") == wanted

    async def _resize(self, one: Object, size: int, *, always: bool = False) -> bool:
        before = rollout.replicas(one)
        annotations = {**objects.annotations_of(one), **self._size_annotations()}
        if before == size and not (always and annotations != objects.annotations_of(one)):
            return False
        await self._update(one, annotations, {**one["spec"], "replicas": size})
        if before == size:
            return False
        direction = "up" if size > before else "down"
        text = f"Scaled {direction} replica set {one['metadata']['name']} from {before} to {size}"
        self.controller.recorder.normal(self.deployment, "ScalingReplicaSet", text)
        return True

    async def _update(self, one: Object, annotations: dict[str, str], spec: Object) -> None:
        changed = {**one, "metadata": {**one["metadata"], "annotations": annotations}, "spec": spec}
        updated = await self.controller.client.update(REPLICA_SET, changed)
        if one is self.new:
            self.new = updated
        else:
            self.old = [updated if each is one else each for each in self.old]

    async def _roll(self) -> None:
        """First the new one grows, as far as maxSurge lets it; only then old ones shrink."""
        await self._create_new()
        assert self.new is not None
        wanted = rollout.replicas(self.deployment)
        if rollout.replicas(self.new) > wanted:
            grown = await self._resize(self.new, wanted)
        else:
            grown = await self._resize(self.new, rollout.new_size(self.deployment, self.everything, self.new))
        if not grown:
            for one, size in rollout.old_sizes(self.deployment, self.old, self.new):
                await self._resize(one, size)

    async def _recreate(self) -> None:
        """All old pods end before the first new one begins."""
        shrunk = [await self._resize(one, 0) for one in rollout.active(self.old)]
        if any(shrunk) or self._old_pods_run():
            return
        await self._create_new()
        assert self.new is not None
        await self._resize(self.new, rollout.replicas(self.deployment))

    def _old_pods_run(self) -> bool:
        if rollout.total_counted(self.old, "replicas") > 0:
            return True
        return any(
            not states.is_finished(pod)
            for one in self.old
            for pod in self.controller.pods.by_index(states.BY_CONTROLLER, one["metadata"]["uid"])
        )

    # -- status

    def _counts(self) -> Object:
        everything, new = self.everything, [self.new] if self.new is not None else []
        available = rollout.total_counted(everything, "availableReplicas")
        ending = [(one.get("status") or {}).get("terminatingReplicas") for one in everything if one.get("status")]
        status: Object = states.nonzero(
            observedGeneration=self.deployment["metadata"].get("generation", 0),
            replicas=rollout.total_counted(everything, "replicas"),
            updatedReplicas=rollout.total_counted(new, "replicas"),
            readyReplicas=rollout.total_counted(everything, "readyReplicas"),
            availableReplicas=available,
            unavailableReplicas=max(0, rollout.total(everything) - available),
        )
        status["terminatingReplicas"] = sum(count or 0 for count in ending)
        if self.collisions is not None:
            status["collisionCount"] = self.collisions
        if available >= rollout.replicas(self.deployment) - rollout.max_unavailable(self.deployment):
            text = "Deployment has minimum availability."
            self._set("Available", "True", "MinimumReplicasAvailable", text)
        else:
            text = "Deployment does not have minimum availability."
            self._set("Available", "False", "MinimumReplicasUnavailable", text)
        return status

    def _with_progress(self, status: Object) -> Object:
        old_status = self.deployment.get("status") or {}
        name = self.new["metadata"]["name"] if self.new is not None else self.deployment["metadata"]["name"]
        subject = f'{"ReplicaSet" if self.new is not None else "Deployment"} "{name}"'
        current = conditions.get(self.held, "Progressing")
        done = (
            current is not None
            and current.get("reason") == "NewReplicaSetAvailable"
            and status.get("replicas") == status.get("updatedReplicas")
        )
        if not rollout.has_deadline(self.deployment):
            conditions.remove(self.held, "Progressing")
        elif not done:
            if rollout.is_complete(self.deployment, status):
                self._progress("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
            elif rollout.has_progressed(old_status, status):
                self._progress("True", "ReplicaSetUpdated", f"{subject} is progressing.", anew=True)
            elif self._is_overdue():
                self._progress("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
        self._note_failures()
        return status

    def _is_overdue(self) -> bool:
        due = rollout.deadline(self.deployment, {"conditions": self.held})
        return due is not None and self.now > due

    def _note_failures(self) -> None:
        for one in [*([self.new] if self.new is not None else ()), *self.old]:
            failed = conditions.get((one.get("status") or {}).get("conditions"), "ReplicaFailure")
            if failed is not None:
                self._set("ReplicaFailure", failed["status"], failed.get("reason", ""), failed.get("message", ""))
                return
        conditions.remove(self.held, "ReplicaFailure")

    def _note_pause(self) -> None:
        current = conditions.get(self.held, "Progressing")
        reason = current.get("reason") if current is not None else None
        if not rollout.has_deadline(self.deployment) or reason == "ProgressDeadlineExceeded":
            return
        paused = bool(self.deployment["spec"].get("paused"))
        if paused and reason != "DeploymentPaused":
            self._progress("Unknown", "DeploymentPaused", "Deployment is paused")
        elif not paused and reason == "DeploymentPaused":
            self._progress("Unknown", "DeploymentResumed", "Deployment is resumed")

    def _progress(self, status: str, reason: str, message: str, *, anew: bool = False) -> None:
        if rollout.has_deadline(self.deployment):
            self._set("Progressing", status, reason, message, anew=anew)

    def _set(self, type: str, status: str, reason: str, message: str, *, anew: bool = False) -> None:
        """`anew` moves lastUpdateTime even when nothing else changes: the deadline counts from there."""
        current = conditions.get(self.held, type)
        if current is not None and current["status"] == status and current.get("reason") == reason and not anew:
            return
        at = rfc3339(self.now)
        kept = current["lastTransitionTime"] if current is not None and current["status"] == status else at
        conditions.remove(self.held, type)
        made = {"type": type, "status": status, "lastUpdateTime": at, "lastTransitionTime": kept}
        self.held.append({**made, "reason": reason, "message": message})

    async def _write(self, status: Object) -> None:
        if self.held:
            status["conditions"] = self.held
        client = self.controller.client
        if self.has_new_revision:
            self.deployment = await client.update_status(DEPLOYMENT, {**self.deployment, "status": status})
            self.has_new_revision = False
        else:
            self.deployment = await write_status(client, DEPLOYMENT, self.deployment, status)
