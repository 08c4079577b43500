"""The life of a job, whatever its kind: what follows from one reconcile of it. The only state machine there is.

It decides restarts, backoff, deadlines, success, clean-up and gangs. How a spec is read and how all that is told is a
dialect's (`jobkind`, `report`).

The order of the questions matters. Success comes before everything that could fail the job: a master that has ended
well and a worker that was killed because of it are seen in one reconcile. What is for good comes before what is
counted, and both before the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from danlu.kinds._training import children, endings, gang, replicas, restarts, trouble
from danlu.kinds._training.job import MADE_AT_ONCE
from danlu.kinds._training.jobkind import JobKind
from danlu.kinds._training.observation import Observed
from danlu.kinds._training.reconciliation import JobReconciliation
from danlu.kinds._training.replicas import MISSING, ReplicaState
from danlu.kinds._training.report import BACKOFF_LIMIT, DEADLINE, REPLICAS, Failure, Progress
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Creation, Outcome

POD_GROUP = "PodGroup"


def reconcile(kind: JobKind, obj: Object, observed: Observed, now: datetime) -> Outcome:
    return Lifecycle(JobReconciliation(kind, obj, observed, now)).run() if kind.is_ours(obj) else Outcome()


class Lifecycle:
    def __init__(self, reconciliation: JobReconciliation) -> None:
        self.reconciliation = reconciliation
        self.kind, self.job, self.outcome = reconciliation.kind, reconciliation.job, reconciliation.outcome
        self.report = reconciliation.kind.report(reconciliation)
        self._removed: set[tuple[str, str]] = set()  # kind and name of what is in `outcome.delete`

    # -- the questions, in order

    def run(self) -> Outcome:
        self.report.begin()
        goes_on = False
        if self.report.is_over:
            self._after_the_end()
        elif self.job.policy.suspend:
            self._suspend()
        else:
            goes_on = self._active()
        self._keep_companions(goes_on)
        self.report.write()
        return self.outcome

    def _active(self) -> bool:
        """Whether it goes on."""
        reconciliation, states = self.reconciliation, self.reconciliation.states
        is_new = self._start()
        if (replaced := trouble.replaced_images(states)) is not None:
            self.report.images_replaced(replaced)
        verdict = self.kind.judge(self.job, states)
        failures = restarts.sort(self.job, states, self.kind.rules, reconciliation.master)
        fatal = self.kind.fatal(reconciliation, failures.lost)
        left = endings.seconds_to_deadline(self.job, reconciliation.status["startTime"], reconciliation.now)
        if verdict.succeeded:
            self._succeed(verdict.succeeded)
        elif fatal:
            self._fail(Failure(REPLICAS, fatal))
        elif not self.kind.rules.limit_is_budget and restarts.over_limit(self.job, states):
            self._fail(Failure(BACKOFF_LIMIT, states))
        elif left is not None and left <= 0:
            self._fail(Failure(DEADLINE))
        else:
            self.outcome.requeue_within(left)
            self._go_on(verdict.running, failures, is_new)
            return True
        return False

    def _start(self) -> bool:
        """Whether it has not been active before."""
        status = self.reconciliation.status
        is_new = "startTime" not in status
        if self.report.is_suspended:
            self.report.resumed()
            status["startTime"] = self.reconciliation.stamp
        status.setdefault("startTime", self.reconciliation.stamp)
        return is_new

    # -- going on

    def _go_on(self, running: str, failures: restarts.Failures, is_new: bool) -> None:
        observed = self.reconciliation.observed
        self._remove_all(replicas.surplus(self.job, (*observed.pods, *observed.services)))
        if self._gang_is_admitted():
            self._make_missing()
        if is_new:
            self.outcome.events += self.kind.notes(self.job, observed.settings)
        self.report.restarting(failures.again)
        for state in failures.again:
            self._replace(state)
        found = trouble.find(self.reconciliation.states, observed)
        self.report.goes_on(Progress(running, failures.again, failures.lost, found))

    def _gang_is_admitted(self) -> bool:
        engine, others = self.reconciliation.engine, self.reconciliation.observed.others
        if engine is None:
            return True
        self.outcome.apply += gang.wanted(self.job, engine, others)
        return gang.is_admitted(self.job, engine, others)

    def _make_missing(self) -> None:
        states = self.reconciliation.states
        at_once = self.reconciliation.observed.settings.shared_network
        unnamed = [state for state in states if state.service is None and (at_once or state.addressed)]
        missing = [
            state for state in states if state.phase == MISSING and self.kind.may_start(self.job, state.replica, states)
        ]
        if not unnamed and not missing:
            return
        if len(missing) > MADE_AT_ONCE:
            self.outcome.requeue_within(0.0)  # the rest: after these, in the job's order
            missing = missing[:MADE_AT_ONCE]
        planned = self.reconciliation.ports()
        services = [
            self._creation(children.replica_service(self.reconciliation, one.replica, planned), one) for one in unnamed
        ]
        for state in missing:
            self.report.making(state.replica)
        pods = [self._creation(children.replica_pod(self.reconciliation, one.replica, planned), one) for one in missing]
        if at_once:
            # They hold the ports, and names are to resolve when the first replica asks.
            self.outcome.create += [*services, *pods]
        else:
            # A pod without an address has no use for a name, and each service costs the cluster four more writes.
            self.outcome.create += pods
            self.outcome.create_last += services

    def _creation(self, obj: Object, state: ReplicaState) -> Creation:
        refused = self.report.refused_reason.format(obj["kind"])
        if obj["kind"] == "Pod":
            return Creation(obj, self.report.made(state), refused)
        # A service is not told of: it stands for the pod of the same name. Others look for a replica by name where all
        # listen; else they look only for the first.
        asked_for = self.kind.port.for_each_replica or self.reconciliation.is_master(state.replica)
        return Creation(obj, None, refused, children.name_max_wait_s(asked_for))

    def _replace(self, state: ReplicaState) -> None:
        """Once its pause is over: the failure is written down, the pod goes, and the next reconcile makes another."""
        rejected = self.kind.rules.replaces_rejected and restarts.never_ran(state)
        pause = restarts.rejected_pause_s if rejected else restarts.pause_s
        wait = pause(state, self.reconciliation.now)
        if wait > 0:
            self.outcome.requeue_within(wait)
            return
        if rejected:
            self.report.rejected(state)
        elif state.service is None:
            return  # it is being made, and remembers the failure
        elif (note := restarts.note_replaced(self.job, state)) is not None:
            self.outcome.apply.append(note)
            self.report.restarted(state)
        if state.pod is not None:
            self._remove(state.pod)

    # -- ending

    def _succeed(self, text: str) -> None:
        self.reconciliation.status["completionTime"] = self.reconciliation.stamp
        self.report.succeeded(text)
        self._clean_up()
        self.outcome.requeue_within(self.job.policy.ttl_s)

    def _fail(self, failure: Failure) -> None:
        self.reconciliation.status["completionTime"] = self.reconciliation.stamp
        self.report.failed(failure)
        cleans = self.job.policy.clean != "None"
        running = endings.unfinished(self.reconciliation.observed.pods)
        if failure.stops and not cleans:
            self._stop(running)
        self._clean_up()
        if running and not failure.stops and not cleans:
            self.report.left_running(running)
        self.outcome.requeue_within(self.job.policy.ttl_s)

    def _suspend(self) -> None:
        self._stop(self.reconciliation.observed.pods)
        self._remove_group()
        self.report.suspended()

    def _after_the_end(self) -> None:
        self.report.after_the_end()
        self._clean_up()
        left = endings.seconds_to_live(
            self.job, self.reconciliation.status.get("completionTime"), self.reconciliation.now
        )
        if left is not None and left <= 0:
            self.outcome.delete.append(self.job.obj)
            self.report.expired()
        else:
            self.outcome.requeue_within(left)

    def _stop(self, pods: Iterable[Object]) -> None:
        self._remove_all(pods)
        if not self.kind.services_outlive_pods:
            self._remove_all(self.reconciliation.observed.services)

    def _clean_up(self) -> None:
        observed = self.reconciliation.observed
        for found in endings.to_clean(self.job.policy.clean, observed.pods, observed.services):
            self._remove_all(found)
        self._remove_group()

    # -- children

    def _keep_companions(self, goes_on: bool) -> None:
        """Those that are wanted are there and those that are not are gone."""
        observed = self.reconciliation.observed
        found = self.kind.all_companions(self.job, observed)
        if not found and not observed.others:
            return
        wanted = {_key(one.obj): one for one in found if goes_on or one.outlives}
        there = {_key(one) for one in observed.others}
        self._remove_all(one for one in observed.others if one["kind"] != POD_GROUP and _key(one) not in wanted)
        first: list[Creation] = []
        pods_come_first = bool(self.outcome.create) and not observed.refused
        for key, one in wanted.items():
            if one.once and key not in there:
                first.append(Creation(one.obj, refused=self.report.refused_reason.format(one.obj["kind"])))
            elif not one.once and (one.before_pods or key in there or not pods_come_first):
                self.outcome.apply.append(one.obj)
        self.outcome.create[:0] = first

    def _remove_group(self) -> None:
        group = gang.of_job(self.job, self.reconciliation.observed.others)
        if group is not None:
            self._remove(group)

    def _remove_all(self, found: Iterable[Object]) -> None:
        for child in found:
            self._remove(child)

    def _remove(self, child: Object) -> None:
        key = _key(child)
        if not objects.is_deleting(child) and key not in self._removed:
            self._removed.add(key)
            self.outcome.delete.append(child)
            self.report.removed(child)


def _key(obj: Object) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]
