"""The life of a TensorStack job: one look at it, and what follows from that.

The master speaks for the job: it succeeds when the master does, and fails when the master has failed and may not be
restarted. Any other replica that fails is restarted by its policy, as long as the job has restarts left, and told of.
"""

from __future__ import annotations

from datetime import datetime

from danlu.kinds._served.tensorboardspec import TENSORBOARD
from danlu.kinds._training import children, endings, gang, ports, replicas, restarts, trouble
from danlu.kinds._training.job import ALWAYS, EXIT_CODE, MADE_AT_ONCE, NEVER, Job
from danlu.kinds._training.observing import Observed
from danlu.kinds._training.replicas import MISSING, ReplicaState
from danlu.kinds._training.tensorstack import pods, report
from danlu.kinds._training.tensorstack.flavour import Flavour, prefix, restartable
from danlu.kinds._training.tensorstack.report import JobConditions
from danlu.meta import objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Creation, EventNote, Outcome

REJECTED_PAUSE_S = 2.0  # a node that had no room for a pod may have it when another has really gone


def _never_ran(state: ReplicaState) -> bool:
    """Its node would not take it: it failed without any of its containers having been made."""
    status = (state.pod or {}).get("status") or {}
    return state.phase == replicas.FAILED and bool(status.get("reason")) and not status.get("containerStatuses")


def reconcile(flavour: Flavour, obj: Object, observed: Observed, now: datetime) -> Outcome:
    return _Look(flavour, obj, observed, now).run()


class _Look:
    def __init__(self, flavour: Flavour, obj: Object, observed: Observed, now: datetime) -> None:
        self.flavour = flavour
        self.job: Job = flavour.job(obj)
        self.observed = observed
        self.now = now
        self.before: Object = obj.get("status") or {}
        self.status: Object = objects.copy(self.before)
        self.conditions = JobConditions(self.status.get("conditions"), rfc3339(now))
        self.states = self._observe()
        self.outcome = Outcome()
        self._removed: set[tuple[str, str]] = set()  # kind and name of what is in `outcome.delete`
        scheduling = self.job.policy.scheduling
        self.engine = gang.engine(observed.settings, scheduling) if scheduling else None

    def _observe(self) -> list[ReplicaState]:
        """Each type may have another training container."""
        found = {role.name: self.flavour.container_name(role.template["spec"]) for role in self.job.roles}
        by_container = {
            name: replicas.observe(self.job, self.observed.pods, self.observed.services, name)
            for name in dict.fromkeys(found.values())
        }
        return [by_container[found[replica.role.name]][number] for number, replica in enumerate(self.job.replicas)]

    # -- the questions, in order

    def run(self) -> Outcome:
        if not self.before:
            self._tell("Normal", "Created", f"A {self.job.kind.kind} has been created: {self.job.name}")
        if self.conditions.is_true("Completed"):
            self._after_the_end()
        elif self.job.policy.suspend:
            self._paused()
        else:
            self._active()
        self._tensorboard()
        self._write_status()
        return self.outcome

    def _active(self) -> None:
        if self.conditions.is_true("Paused"):
            self.conditions.set("Paused", False, "Resumed", "The job has been resumed.")
            self._tell("Normal", "Resumed", "The job has been resumed.")
            self.status["startTime"] = rfc3339(self.now)
        self.status.setdefault("startTime", rfc3339(self.now))
        master = next(state for state in self.states if state.name == self.flavour.master(self.job).name)
        again, lost = self._failed()
        left = endings.seconds_to_deadline(self.job, self.status["startTime"], self.now)
        if master.phase == replicas.SUCCEEDED:
            self._succeed()
        elif master in lost:
            self._fail(self._why(master), [master])
        elif left is not None and left <= 0:
            self._fail(f"the job ran longer than activeDeadlineSeconds ({self.job.policy.deadline_s} s)", [], stop=True)
        else:
            self._look_again(left)
            self._keep_going(again, lost)

    def _failed(self) -> tuple[list[ReplicaState], list[ReplicaState]]:
        """Replicas to be made again, and those that stay as they are: by their policy, or for want of restarts."""
        left = (self.job.policy.backoff_limit or 0) - self._restarts()
        again: list[ReplicaState] = []
        lost: list[ReplicaState] = []
        for state in self.states:
            if _never_ran(state):
                again.append(state)  # no failure of the replica's: not counted, and whatever its policy
            elif not self._wants_restart(state):
                if state.phase == replicas.FAILED:
                    lost.append(state)
            elif state.counted or left > 0:
                left -= 0 if state.counted else 1
                again.append(state)
            elif state.phase == replicas.FAILED:
                lost.append(state)
        return again, lost

    def _wants_restart(self, state: ReplicaState) -> bool:
        policy = state.replica.role.restart
        if state.phase == replicas.SUCCEEDED:
            return policy == ALWAYS and state.name != self.flavour.master(self.job).name
        if state.phase != replicas.FAILED or policy == NEVER:
            return False
        return policy != EXIT_CODE or restartable(state.exit_code)

    def _restarts(self) -> int:
        return sum(state.replaced for state in self.states)

    # -- going on

    def _keep_going(self, again: list[ReplicaState], lost: list[ReplicaState]) -> None:
        for child in [
            *replicas.surplus(self.job, self.observed.pods), *replicas.surplus(self.job, self.observed.services)
        ]:  # fmt: skip
            self._remove(child)
        if self._gang_is_admitted():
            self._make_missing()
        self._replace(again)
        found = trouble.find(self.states, self.observed)
        self._phase()
        waiting = self._waiting(found, again)
        failure = "; ".join(self._error_in_pod(state) for state in lost)
        was = self.conditions.is_true("Initialized")
        told = [one.get("message") for one in self.conditions.items]
        self.conditions.go_on(self.states, waiting, failure)
        if self.conditions.is_true("Initialized") and not was:
            self._tell("Normal", "Start", report.INITIALIZED)
        if found and found.message not in told and not self.observed.refused:
            self._tell("Warning", found.reason, found.message)
        if failure and failure not in told:
            self._tell("Warning", "ErrorInPod", failure)

    def _phase(self) -> None:
        if any(state.phase in (replicas.RUNNING, replicas.SUCCEEDED) for state in self.states):
            self.status["phase"] = report.RUNNING
        elif self.before.get("phase") in (report.PAUSED, report.RESUMING):
            self.status["phase"] = report.RESUMING
        else:
            self.status["phase"] = report.PENDING

    def _waiting(self, found: trouble.Trouble | None, again: list[ReplicaState]) -> tuple[str, str] | None:
        if found is not None:
            return found.reason, found.message
        if again:
            names = ", ".join(self._error_in_pod(state) for state in again)
            return "Restarting", f"Replicas are restarted: {names}"
        running = sum(state.phase in (replicas.RUNNING, *replicas.FINISHED) for state in self.states)
        if running < len(self.states):
            return "Pending", f"{running} of {len(self.states)} pods are running."
        return None

    def _make_missing(self) -> None:
        at_once = self.observed.settings.shared_network
        planned = self._ports()
        made: list[Creation] = []
        services: list[Creation] = []
        resumed = self.conditions.has("Paused")
        for state in self.states:
            unnamed = state.service is None and (at_once or state.addressed)
            missing = state.phase == MISSING
            if missing and len(made) >= MADE_AT_ONCE:
                self._look_again(0.0)  # the rest: after these, in the job's order
                missing = False
            if not unnamed and not missing:
                continue
            if unnamed:
                asked_for = self.flavour.port_for_each_replica or state.name == self.flavour.master(self.job).name
                wait = children.name_patience_s(asked_for)
                services.append(Creation(pods.service(self.flavour, self.job, state.replica, planned), patience_s=wait))
            if missing:
                marks = self.engine.marks(self.job, state.replica) if self.engine else gang.Marks()
                pod = pods.pod(
                    self.flavour, self.job, state.replica, planned, marks,
                    resumed=resumed, cores=self.observed.settings.shared_cores,
                )  # fmt: skip
                made.append(Creation(pod, self._made(state)))
        if at_once:
            # They hold the ports, and names are to resolve when the first replica asks.
            self.outcome.create += [*services, *made]
        else:
            # A pod without an address has no use for a name, and each service costs the cluster four more writes.
            self.outcome.create += made
            self.outcome.create_last += services

    def _made(self, state: ReplicaState) -> EventNote:
        if state.replaced:
            text = f"Create the replica[{{}}] again, after {state.replaced} restart(s)."
            return EventNote("Normal", "RestartReplica", text)
        known = [
            one["name"]
            for task in self.before.get("tasks") or ()
            for one in task.get("replicas") or ()
            if one.get("uid")
        ]
        if state.name in known:
            return EventNote("Normal", "NewReplica", "Create the replica[{}] again.")
        return EventNote("Normal", "NewReplica", "Create the replica[{}] for the first time.")

    def _replace(self, again: list[ReplicaState]) -> None:
        for state in again:
            if _never_ran(state):
                self._replace_rejected(state)
                continue
            wait = restarts.pause_s(state, self.now)
            if wait > 0:
                self._look_again(wait)
                continue
            if state.service is None:
                continue  # it is being made, and remembers the failure
            note = restarts.note_replaced(self.job, state)
            if note is not None:
                self.outcome.apply.append(note)
                self._tell_restart(state)
            if state.pod is not None:
                self._remove(state.pod)

    def _replace_rejected(self, state: ReplicaState) -> None:
        assert state.pod is not None
        status = state.pod["status"]
        began = restarts.ended_at(state.pod)
        wait = REJECTED_PAUSE_S - (self.now - began).total_seconds() if began else 0.0
        if wait > 0:
            self._look_again(wait)
            return
        text = f"Pod[{state.name}] was not run by its node: {status.get('message') or status.get('reason')}"
        self._tell("Warning", status.get("reason") or "Rejected", text)
        self._remove(state.pod)

    def _tell_restart(self, state: ReplicaState) -> None:
        """With the last lines of its log: they go with the pod."""
        if state.phase == replicas.SUCCEEDED:
            self._tell("Normal", "Ended", f"Pod[{state.name}] has ended; it is restarted")
            return
        words = self._last_words([state])
        text = f"{self._error_in_pod(state)}; it is restarted"
        self._tell("Warning", "ErrorInPod", f"{text}\n{words}" if words else text)

    def _ports(self) -> ports.Ports:
        # A template's own port of that name is looked for in the training container of the first type.
        return ports.for_job(
            self.job,
            self.observed,
            container=self.flavour.container_name(self.job.roles[0].template["spec"]),
            port_name=self.flavour.port_name,
            default=self.flavour.port,
            per_replica=self.flavour.port_for_each_replica,
        )

    def _gang_is_admitted(self) -> bool:
        if self.engine is None:
            return True
        self.outcome.apply += gang.wanted(self.job, self.engine, self.observed.others)
        return gang.is_admitted(self.job, self.engine, self.observed.others)

    # -- ending

    def _succeed(self) -> None:
        self.status["phase"] = report.SUCCEEDED
        self.status["completionTime"] = rfc3339(self.now)
        self.conditions.succeed()
        self._tell("Normal", report.SUCCEEDED, report.DONE)
        self._clean_up()

    def _fail(self, why: str, dead: list[ReplicaState], *, stop: bool = False) -> None:
        """`stop`: whatever still runs is ended, whatever the clean-up policy says: that is what a deadline is for."""
        message = f"{self.job.kind.kind} {self.job.name} has failed: {why}"
        words = self._last_words(dead)
        self.status["phase"] = report.FAILED
        self.status["completionTime"] = rfc3339(self.now)
        self.conditions.fail(f"{message}\n{words}" if words else message)
        if dead:
            self.conditions.set("ReplicaFailure", True, "ErrorInPod", self._error_in_pod(dead[0]))
        self._tell("Warning", report.FAILED, f"{message}\n{words}" if words else message)
        self._clean_up()
        if stop:
            for pod in endings.unfinished(self.observed.pods):
                self._remove(pod)

    def _why(self, state: ReplicaState) -> str:
        if state.exit_code is not None:
            return f"{state.name} failed with exit code {state.exit_code}"
        status = (state.pod or {}).get("status") or {}
        told = ": ".join(filter(None, (status.get("reason"), status.get("message"))))
        return f"{state.name} failed" + (f" ({told})" if told else "")

    def _error_in_pod(self, state: ReplicaState) -> str:
        if state.exit_code is None:
            return f"Pod[{state.name}] failed"
        return f"Pod[{state.name}] exited with error code {state.exit_code}"

    def _last_words(self, dead: list[ReplicaState]) -> str:
        """Only the program's own lines: who it was and with which code stands before them."""
        for state in dead:
            container = self.flavour.container_name(state.replica.role.template["spec"])
            ended = ((replicas.training_status(state.pod, container) or {}).get("state") or {}).get("terminated") or {}
            return trouble.tail(ended.get("message") or "")
        return ""

    def _clean_up(self) -> None:
        gone, services = endings.to_clean(self.job.policy.clean, self.observed.pods, self.observed.services)
        for child in [*gone, *services]:
            self._remove(child)
        self._remove_group()

    def _after_the_end(self) -> None:
        self._clean_up()

    def _paused(self) -> None:
        for pod in self.observed.pods:
            self._remove(pod)
        self._remove_group()
        self.status["phase"] = report.PAUSED
        text = "The job has been paused."
        if not self.conditions.is_true("Paused"):
            self._tell("Normal", "Paused", text)
        self.conditions.set("Paused", True, "Paused", text)
        self.conditions.set("Running", False, "Paused", text)
        self.conditions.set("Completed", False, "NotFinished", text)

    # -- the rest

    def _remove(self, child: Object) -> None:
        named = (child["kind"], child["metadata"]["name"])
        if not objects.is_deleting(child) and named not in self._removed:
            self._removed.add(named)
            self.outcome.delete.append(child)

    def _remove_group(self) -> None:
        group = gang.of_job(self.job, self.observed.others)
        if group is not None:
            self._remove(group)

    def _tensorboard(self) -> None:
        wanted = self.job.spec.get("tensorboardSpec")
        name = prefix(self.job.obj)
        found = next((one for one in self.observed.others if one["kind"] == TENSORBOARD.kind), None)
        if not wanted:
            self.status.pop("tensorboard", None)
            if found is not None:
                self._remove(found)
            return
        child = {
            "apiVersion": TENSORBOARD.api_version,
            "kind": TENSORBOARD.kind,
            "metadata": {
                "name": name,
                "namespace": self.job.namespace,
                "ownerReferences": [owners.reference(self.job.obj, self.job.kind)],
            },
            "spec": wanted,
        }
        # Only what the job says is kept so: one who suspends it in the console is not overruled. The pods come first.
        if found is not None or not self.outcome.create or self.observed.refused:
            self.outcome.apply.append(child)
        self.status["tensorboard"] = report.tensorboard(found, name)

    def _write_status(self) -> None:
        ended = self.conditions.is_true("Completed") or self.job.policy.suspend
        told = report.tasks(self.job, self.states, self.before.get("tasks") or (), ended=ended)
        self.status["tasks"] = told
        self.status["aggregate"] = report.aggregate(told)
        self.status["backoffCount"] = sum(task["restartCount"] for task in told)
        self.status["conditions"] = self.conditions.items
        self.outcome.status = self.status
        self.outcome.patient = not self.outcome.events and report.said(self.status) == report.said(self.before)

    def _tell(self, type: str, reason: str, message: str) -> None:
        self.outcome.events.append(EventNote(type, reason, message))

    def _look_again(self, seconds: float | None) -> None:
        if seconds is not None:
            waiting = self.outcome.requeue_after
            self.outcome.requeue_after = seconds if waiting is None else min(waiting, seconds)
