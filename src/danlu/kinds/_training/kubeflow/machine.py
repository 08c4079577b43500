"""The life of a Kubeflow job: one look at it, and what follows from that.

The order of the questions matters. Success comes before everything that could fail the job: a master that has ended
well and a worker that was killed because of it are seen in one look. What is for good comes before what is counted,
and both before the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from danlu.kinds._training import children, endings, gang, ports, replicas, restarts, trouble
from danlu.kinds._training.job import EXIT_CODE, MADE_AT_ONCE, Job, Replica
from danlu.kinds._training.kubeflow import labels
from danlu.kinds._training.kubeflow.conditions import (
    CREATED,
    FAILED,
    RESTARTING,
    RUNNING,
    SUCCEEDED,
    SUSPENDED,
    JobConditions,
)
from danlu.kinds._training.kubeflow.flavour import Flavour
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.replicas import MISSING, ReplicaState
from danlu.meta import conditions, objects
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Creation, EventNote, Outcome

MANAGED_HERE = (None, "", "kubeflow.org/training-operator")


def reconcile(flavour: Flavour, obj: Object, observed: Observed, now: datetime) -> Outcome:
    if (obj["spec"].get("runPolicy") or {}).get("managedBy") not in MANAGED_HERE:
        return Outcome()
    return _Look(flavour, obj, observed, now).run()


class _Look:
    def __init__(self, flavour: Flavour, obj: Object, observed: Observed, now: datetime) -> None:
        self.flavour = flavour
        self.job: Job = flavour.job(obj)
        self.observed = observed
        self.now = now
        self.stamp = rfc3339(now)
        self.status: Object = objects.copy(obj.get("status") or {})
        self.conditions = JobConditions(self.status.get("conditions"), self.kind, self.stamp)
        self.states = replicas.observe(self.job, observed.pods, observed.services, flavour.container)
        self.outcome = Outcome()
        self.engine = gang.engine(observed.settings, self.job.policy.scheduling)

    @property
    def kind(self) -> str:
        return self.flavour.kind.kind

    # -- the questions, in order

    def run(self) -> Outcome:
        if self.conditions.finished:
            self._after_the_end()
            return self.outcome
        self.conditions.add(CREATED, f"{self.kind} {self.job.name} is created.")
        if self.job.policy.suspend:
            self._suspended()
        else:
            self._active()
        self._write_status()
        return self.outcome

    def _active(self) -> None:
        self._started()
        verdict = self.flavour.judge(self.job, self.states)
        lost = [state for state in self.states if restarts.is_permanent(state) and not self._ignored(state)]
        left = endings.seconds_to_deadline(self.job, self.status["startTime"], self.now)
        if verdict.succeeded:
            self._succeed(verdict.succeeded)
        elif lost:
            self._fail_for_good(lost)
        elif restarts.over_limit(self.job, self.states):
            text = f"Job {self.job.name} has failed because it has reached the specified backoff limit"
            self._fail_and_stop(text, with_words=True)
        elif left is not None and left <= 0:
            text = f"Job {self.job.name} has failed because it was active longer than specified deadline"
            self._fail_and_stop(text)
        else:
            self._look_again(left)
            self._keep_going(verdict.running)

    def _ignored(self, state: ReplicaState) -> bool:
        return self.flavour.ignores_failures(self.job, state.replica.role)

    def _started(self) -> None:
        if self.conditions.is_true(SUSPENDED):
            text = f"{self.kind} {self.job.name} is resumed."
            self.conditions.add(SUSPENDED, text, status="False", reason="Resumed")
            self._event("Normal", "Resumed", text)
            self.status["startTime"] = self.stamp
        self.status.setdefault("startTime", self.stamp)

    # -- going on

    def _keep_going(self, running: str) -> None:
        self._remove(replicas.surplus(self.job, self.observed.pods), replicas.surplus(self.job, self.observed.services))
        if self._gang_is_admitted():
            self._make_missing()
        self._apply_companions()
        restarting = self._replace_failed()
        self._count(self.states)
        if not restarting and running:
            self.conditions.add(RUNNING, running)
        found = trouble.find(self.states, self.observed)
        if self.conditions.block(found) and found and not self.observed.refused:
            self.outcome.events.append(EventNote("Warning", found.reason, found.message))

    def _make_missing(self) -> None:
        at_once = self.observed.settings.shared_network
        unnamed = [state for state in self.states if state.service is None and (at_once or state.addressed)]
        missing = [state for state in self.states if state.phase == MISSING]
        if not unnamed and not missing:
            return
        if len(missing) > MADE_AT_ONCE:
            self._look_again(0.0)  # the rest: after these, in the job's order
            missing = missing[:MADE_AT_ONCE]
        planned = self._ports()
        services = [
            _creation(self._service(state.replica, planned), children.name_patience_s(self._is_asked_for(state)))
            for state in unnamed
        ]
        for state in missing:
            self._warn_of_overwritten(state.replica)
        pods = [_creation(self._pod(state.replica, planned)) for state in missing]
        if at_once:
            # They hold the ports, and names are to resolve when the first replica asks.
            self.outcome.create += [*services, *pods]
        else:
            # A pod without an address has no use for a name, and each service costs the cluster four more writes.
            self.outcome.create += pods
            self.outcome.create_last += services

    def _is_asked_for(self, state: ReplicaState) -> bool:
        """Whether others look for it by name: all do where all listen, else only the first is looked for."""
        return self.flavour.port_for_each_replica or self.flavour.is_master(self.job, state.replica)

    def _replace_failed(self) -> bool:
        """Whether there is a replica that failed and is made again, now or in a while."""
        failed = [state for state in self.states if restarts.is_replaceable(state)]
        for role in self.job.roles:
            count = sum(1 for state in failed if state.replica.role.name == role.name)
            if count:
                text = f"{self.kind} {self.job.name} is restarting because {count} {role.name} replica(s) failed."
                if self.conditions.add(RESTARTING, text):
                    self._event("Warning", RESTARTING, text)
        for state in failed:
            wait = restarts.pause_s(state, self.now)
            if wait > 0:
                self._look_again(wait)
                continue
            if state.service is None:
                continue  # it is being made, and remembers the failure
            note = restarts.note_replaced(self.job, state)
            if note is not None:
                self.outcome.apply.append(note)
            if state.pod is not None:
                self._remove([state.pod], [])
        return bool(failed)

    def _gang_is_admitted(self) -> bool:
        if self.engine is None:
            return True
        self.outcome.apply += gang.wanted(self.job, self.engine, self.observed.others)
        return gang.is_admitted(self.job, self.engine, self.observed.others)

    def _apply_companions(self) -> None:
        wanted = self.flavour.companions(self.job)
        if self.observed.settings.autoscaling:
            self.outcome.apply += wanted
        elif wanted and not self.status.get("replicaStatuses"):  # the first look
            text = "elasticPolicy.metrics has no effect: there are no autoscalers here; use kubectl scale"
            self.outcome.events.append(EventNote("Warning", "NoAutoscaler", text))

    # -- ending

    def _succeed(self, text: str) -> None:
        self.conditions.block(None)
        self.conditions.add(SUCCEEDED, text)
        self._event("Normal", SUCCEEDED, text)
        self.status["completionTime"] = self.stamp
        self._count(self.states, succeeded=True)
        self._clean_up()

    def _fail_for_good(self, lost: Sequence[ReplicaState]) -> None:
        role = lost[0].replica.role
        count = sum(1 for state in lost if state.replica.role.name == role.name)
        if role.restart == EXIT_CODE:
            text = f'job "{self.job.name}" is failing because "{role.name}" replica(s) failed.'
        else:
            text = self.flavour.failed(self.job, role, count)
        self._fail(text, lost, "Warning" if role.restart == EXIT_CODE else "Normal")
        self._count(self.states, stopped=self.job.policy.clean != "None")
        self._clean_up()
        kept = endings.unfinished(self.observed.pods) if self.job.policy.clean == "None" else []
        if kept:
            names = ", ".join(sorted(pod["metadata"]["name"] for pod in kept))
            told = f"{names} left running: runPolicy.cleanPodPolicy is None; with Running they would have been ended"
            self.outcome.events.append(EventNote("Warning", "PodsLeftRunning", told))

    def _fail_and_stop(self, text: str, *, with_words: bool = False) -> None:
        """Whatever still runs is ended, whatever cleanPodPolicy says: that is what limits are for."""
        self._fail(text, self.states if with_words else [], "Normal")
        self._count(self.states, stopped=True)
        if self.job.policy.clean == "None":
            self._remove(endings.unfinished(self.observed.pods), self.observed.services)
        self._clean_up()

    def _fail(self, text: str, dead: Iterable[ReplicaState], event: str) -> None:
        words = trouble.last_words(dead, self.flavour.container)
        message = f"{text}\n{words}" if words else text
        self.conditions.block(None)
        self.conditions.add(FAILED, message)
        self._event(event, FAILED, message)
        self.status["completionTime"] = self.stamp

    def _clean_up(self) -> None:
        self._remove(*endings.to_clean(self.job.policy.clean, self.observed.pods, self.observed.services))
        self._remove_others()
        self._look_again(self.job.policy.ttl_s)

    def _after_the_end(self) -> None:
        """Replicas that a failed job has left running are counted on; what is cleaned up stays as it was counted."""
        if self.conditions.is_true(FAILED) and all(state.pod is not None for state in self.states):
            self._count(self.states)
            self._write_status()
        self._remove(*endings.to_clean(self.job.policy.clean, self.observed.pods, self.observed.services))
        self._remove_others()
        left = endings.seconds_to_live(self.job, self.status.get("completionTime"), self.now)
        if left is not None and left <= 0:
            self.outcome.delete.append(self.job.obj)
            self.outcome.events.append(EventNote("Normal", "SuccessfulDeletePod", f"Deleted job: {self.job.name}"))
        else:
            self._look_again(left)

    def _suspended(self) -> None:
        self._remove(self.observed.pods, self.observed.services)
        self._remove_others()
        text = f"{self.kind} {self.job.name} is suspended."
        self.conditions.block(None)
        if self.conditions.is_true(RUNNING):
            self.conditions.add(RUNNING, text, status="False", reason=SUSPENDED)
        if self.conditions.add(SUSPENDED, text):
            self._event("Normal", SUSPENDED, text)
        self._count([])

    # -- children

    def _ports(self) -> ports.Ports:
        return ports.for_job(
            self.job,
            self.observed,
            container=self.flavour.container,
            port_name=self.flavour.port_name,
            default=self.flavour.port,
            per_replica=self.flavour.port_for_each_replica,
        )

    def _pod(self, replica: Replica, planned: ports.Ports) -> Object:
        marks = self.engine.marks(self.job, replica) if self.engine else gang.Marks()
        named = labels.of_replica(self.job, replica, is_master=self.flavour.is_master(self.job, replica))
        pod = children.pod(
            self.job,
            replica,
            labels={**named, **marks.labels},
            annotations=marks.annotations,
            scheduler=marks.scheduler,
            restart=restarts.pod_policy(replica.role.restart),
        )
        pod["spec"].update(marks.spec)
        training = children.training_container(pod["spec"], self.flavour.container)
        children.set_port(training, self.flavour.port_name, planned[replica.name])
        everywhere = self.flavour.environment_everywhere
        targets = pod["spec"]["containers"] if everywhere else [training]
        children.add_environment(targets, self.flavour.environment(self.job, replica, planned))
        children.set_threads(
            training,
            cores=self.observed.settings.shared_cores,
            replicas=self.job.total,
            processes=self.flavour.processes(self.job, training),
        )
        return pod

    def _service(self, replica: Replica, planned: ports.Ports) -> Object:
        found = children.training_container(replica.role.template["spec"], self.flavour.container)
        training = {"ports": objects.copy(found.get("ports") or [])}
        children.set_port(training, self.flavour.port_name, planned[replica.name])
        return children.service(
            self.job,
            replica,
            labels=labels.of_replica(self.job, replica),
            selector=labels.selector(self.job, replica),
            ports=children.ports_for_service(training),
        )

    def _warn_of_overwritten(self, replica: Replica) -> None:
        spec = replica.role.template.get("spec") or {}
        if spec.get("restartPolicy"):
            text = "Restart policy in pod template will be overwritten by restart policy in replica spec"
            self.outcome.events.append(EventNote("Warning", "SetPodTemplateRestartPolicy", text))
        if self.engine and spec.get("schedulerName"):
            text = "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten"
            self.outcome.events.append(EventNote("Warning", "SetPodTemplateSchedulerName", text))

    def _remove(self, pods: Iterable[Object], services: Iterable[Object]) -> None:
        for what, found in (("Pod", pods), ("Service", services)):
            for one in found:
                if not objects.is_deleting(one):
                    name = one["metadata"]["name"]
                    self.outcome.delete.append(one)
                    told = f"Deleted {what.lower()}: {name}"
                    self.outcome.events.append(EventNote("Normal", f"SuccessfulDelete{what}", told))

    def _remove_others(self) -> None:
        self.outcome.delete += [one for one in self.observed.others if one["kind"] != "PodGroup"]
        group = gang.of_job(self.job, self.observed.others)
        if group is not None and not objects.is_deleting(group):
            self.outcome.delete.append(group)
            for reason, text in (
                ("JobTerminated", "Job has been terminated. Deleting PodGroup"),
                ("SuccessfulDeletePodGroup", f"Deleted PodGroup: {self.job.name}"),
            ):
                self.outcome.events.append(EventNote("Normal", reason, text))

    # -- status

    def _count(self, states: Sequence[ReplicaState], *, succeeded: bool = False, stopped: bool = False) -> None:
        before = self.status.get("replicaStatuses") or {}
        counted: Object = {}
        for role in self.job.roles:
            mine = [state for state in states if state.replica.role.name == role.name]
            found = {
                "active": sum(1 for state in mine if state.phase == replicas.RUNNING),
                "succeeded": sum(1 for state in mine if state.phase == replicas.SUCCEEDED),
                "failed": sum(1 for state in mine if state.phase == replicas.FAILED or (stopped and state.down)),
            }
            if succeeded:
                found["succeeded"] += found["active"]
            if succeeded or stopped:
                found["active"] = 0
            self._tell_exits(mine, before.get(role.name) or {}, found)
            counted[role.name] = {name: number for name, number in found.items() if number}
            if self.flavour.scales:
                counted[role.name]["selector"] = labels.role_selector(self.job, role)
        self.status["replicaStatuses"] = counted

    def _tell_exits(self, states: Sequence[ReplicaState], before: Object, counted: Object) -> None:
        """Of what failed, once for each change of the counts; that a replica has ended well is told by the counts."""
        if before.get("failed", 0) == counted["failed"]:
            return
        for state in states:
            if state.exit_code:
                text = f"Pod: {self.job.namespace}.{state.name} exited with code {state.exit_code}"
                self.outcome.events.append(EventNote("Normal", "ExitedWithCode", text))

    def _write_status(self) -> None:
        self.status["conditions"] = self.conditions.items
        before = self.job.obj.get("status") or {}
        if {**before, "lastReconcileTime": ""} == {**self.status, "lastReconcileTime": ""}:
            self.status = before
        else:
            self.status["lastReconcileTime"] = self.stamp
        self.outcome.status = self.status
        told = [one for one in self.conditions.items if one["type"] != CREATED]
        self.outcome.patient = not self.outcome.events and told == [
            one for one in before.get("conditions") or () if one["type"] != CREATED
        ]
        starts = self.conditions.is_true(RUNNING) and not conditions.is_true(before.get("conditions"), RUNNING)
        waits = any(state.phase == replicas.PENDING for state in self.states)
        self.outcome.beginning = starts and waits and not self.outcome.events

    def _event(self, type: str, reason: str, message: str) -> None:
        self.outcome.events.append(EventNote(type, f"{self.kind}{reason}", message))

    def _look_again(self, seconds: float | None) -> None:
        if seconds is not None:
            waiting = self.outcome.requeue_after
            self.outcome.requeue_after = seconds if waiting is None else min(waiting, seconds)


def _creation(obj: Object, patience_s: float = 0.0) -> Creation:
    kind = obj["kind"]
    # A service is not told of: it stands for the pod of the same name.
    made = EventNote("Normal", "SuccessfulCreatePod", "Created pod: {}") if kind == "Pod" else None
    return Creation(obj, made, f"FailedCreate{kind}", patience_s)
