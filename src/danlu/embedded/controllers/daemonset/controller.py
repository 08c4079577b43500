"""The DaemonSet controller: one `_Sync` for each look at one daemon set."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from danlu import errors
from danlu.client.informer import MODIFIED
from danlu.embedded.controllers._shared import podcontrol as states
from danlu.embedded.controllers._shared.history import DAEMON_SET_HASH, History, Revisions
from danlu.embedded.controllers._shared.podcontrol import PodControl
from danlu.embedded.controllers.daemonset import eligibility
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONTROLLER_REVISION, DAEMON_SET, NODE
from danlu.runtime import Controller, Manager, Outcome, Request
from danlu.runtime.outcomewriter import write_status

MOST_PODS_PER_SYNC = 250
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
FIRST_FAILED_BACKOFF_S, LONGEST_FAILED_BACKOFF_S = 1.0, 900.0


def make(manager: Manager) -> Controller:
    sets = DaemonSetController(manager)
    controller = Controller("daemonset", sets.reconcile)
    controller.watches(sets.daemon_sets)
    sets.control.wakes(controller, sets.daemon_sets)

    def node_changed(event: str, node: Object, old: Object | None) -> None:
        """Heartbeats change no daemon's mind; labels and taints may."""
        if event == MODIFIED and old is not None and _character(node) == _character(old):
            return
        for daemon_set in sets.daemon_sets.list():
            meta = daemon_set["metadata"]
            controller.queue.add(Request(meta["namespace"], meta["name"]))

    sets.nodes.add_handler(node_changed)
    return controller


def _character(node: Object) -> tuple[object, object]:
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")


@dataclass(slots=True)
class _Failures:
    """Failed pods of one daemon set on one node."""

    delay_s: float
    at: datetime


class DaemonSetController:
    def __init__(self, manager: Manager) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.recorder = manager.recorder("daemonset-controller")
        self.control = PodControl(manager, DAEMON_SET, "daemonset-controller")
        self.daemon_sets = manager.informer(DAEMON_SET)
        self.nodes = manager.informer(NODE)
        self.history = History(manager.client, manager.informer(CONTROLLER_REVISION), DAEMON_SET, DAEMON_SET_HASH)
        self.failures: dict[Request, dict[str, _Failures]] = {}  # by daemon set and node

    async def reconcile(self, request: Request) -> Outcome | None:
        daemon_set = self.daemon_sets.get(request.namespace, request.name)
        if daemon_set is None or objects.is_deleting(daemon_set):
            self.failures.pop(request, None)
            return None
        if not any((daemon_set["spec"].get("selector") or {}).values()):
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.warning(daemon_set, "SelectingAll", text)
            return None
        pods = await self.control.claim(daemon_set, states.selector_of(daemon_set))
        revisions = await self.history.sync(daemon_set)
        return await _Sync(self, daemon_set, pods, revisions, self.clock()).run()


@dataclass(slots=True)
class _Sync:
    controller: DaemonSetController
    daemon_set: Object
    pods: list[Object]
    revisions: Revisions
    now: datetime
    nodes: list[Object] = field(init=False)
    look_again: list[float] = field(default_factory=list)  # seconds

    def __post_init__(self) -> None:
        self.nodes = self.controller.nodes.list()

    @property
    def hash(self) -> str:
        return objects.labels_of(self.revisions.present).get(DAEMON_SET_HASH, "")

    @property
    def min_ready(self) -> int:
        return int(self.daemon_set["spec"].get("minReadySeconds") or 0)

    async def run(self) -> Outcome:
        failure: BaseException | None = await self._manage()
        if failure is None and self.daemon_set["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            self._refresh()
            failure = await self._roll()
        self._refresh()
        await write_status(self.controller.client, DAEMON_SET, self.daemon_set, self._status())
        if failure is not None:
            raise failure
        await self._truncate()
        wait = states.next_availability(self.pods, self.min_ready, self.now)
        if wait is not None:
            self.look_again.append(wait)
        return Outcome(requeue_after=min(self.look_again, default=None))

    def _refresh(self) -> None:
        """What was just written is already in the cache."""
        selector = states.selector_of(self.daemon_set)
        owned = self.controller.control.informer.by_index(states.BY_CONTROLLER, self.daemon_set["metadata"]["uid"])
        self.pods = [pod for pod in owned if selector.matches(objects.labels_of(pod))]

    async def _truncate(self) -> None:
        limit = self.daemon_set["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        used = {objects.labels_of(pod).get(DAEMON_SET_HASH) for pod in self.pods} | {self.hash}
        live = {
            one["metadata"]["name"]
            for one in self.revisions.everything
            if objects.labels_of(one).get(DAEMON_SET_HASH) in used
        }
        await self.controller.history.truncate(self.revisions.everything, live, limit)

    def _by_node(self) -> dict[str, list[Object]]:
        """Oldest first, and those that are on the node before those on their way."""
        found: dict[str, list[Object]] = {}
        for pod in self.pods:
            node = eligibility.target(pod)
            if node and not (states.is_finished(pod) and objects.is_deleting(pod)):
                found.setdefault(node, []).append(pod)
        for pods in found.values():
            pods.sort(key=lambda pod: (not pod["spec"].get("nodeName"), _age(pod)))
        return found

    # -- a pod where there should be one, none where there should not

    async def _manage(self) -> BaseException | None:
        by_node = self._by_node()
        create: list[str] = []
        delete: list[Object] = []
        for node in self.nodes:
            name = node["metadata"]["name"]
            should_run, may_stay = eligibility.judge(node, self.daemon_set)
            pods = by_node.get(name, [])
            if should_run and not pods:
                create.append(name)
            elif may_stay:
                running = self._without_finished(name, pods, delete)
                if not running and should_run and self._max_surge(1) > 0:
                    create.append(name)
                delete += self._doubled(running)
            else:
                delete += [pod for pod in pods if not objects.is_deleting(pod)]
        known = {node["metadata"]["name"] for node in self.nodes}
        for name, pods in by_node.items():
            if name not in known:
                delete += [pod for pod in pods if not pod["spec"].get("nodeName")]
        return await self._carry_out(create, delete)

    def _without_finished(self, node: str, pods: list[Object], delete: list[Object]) -> list[Object]:
        running = []
        for pod in pods:
            meta = pod["metadata"]
            where = f"{meta['namespace']}/{meta['name']} on node {node}"
            if objects.is_deleting(pod):
                continue
            if states.phase(pod) == "Failed":
                wait = self._failed_wait(node)
                if wait > 0:
                    self.look_again.append(wait)
                    continue
                text = f"Found failed daemon pod {where}, will try to kill it"
                self.controller.recorder.warning(self.daemon_set, "FailedDaemonPod", text)
                delete.append(pod)
            elif states.phase(pod) == "Succeeded":
                text = f"Found succeeded daemon pod {where}, will try to delete it"
                self.controller.recorder.normal(self.daemon_set, "SucceededDaemonPod", text)
                delete.append(pod)
            else:
                running.append(pod)
        return running

    def _failed_wait(self, node: str) -> float:
        """Seconds until a failed pod on this node may be replaced; doubles with each one, and is forgotten in peace."""
        meta = self.daemon_set["metadata"]
        known = self.controller.failures.setdefault(Request(meta["namespace"], meta["name"]), {})
        last = known.get(node)
        since = (self.now - last.at).total_seconds() if last is not None else 0.0
        if last is not None and since < last.delay_s:
            return last.delay_s - since
        forgotten = last is None or since > 2 * LONGEST_FAILED_BACKOFF_S
        delay = FIRST_FAILED_BACKOFF_S if last is None or forgotten else min(last.delay_s * 2, LONGEST_FAILED_BACKOFF_S)
        known[node] = _Failures(delay, self.now)
        return 0.0

    def _doubled(self, running: list[Object]) -> list[Object]:
        """All but the oldest; with surge one old and one new may be side by side until the new one is available."""
        if self._max_surge(1) == 0:
            return running[1:]
        new = [pod for pod in running if self._is_updated(pod)]
        old = [pod for pod in running if not self._is_updated(pod)]
        surplus = new[1:] + old[1:]
        if new and old and (not states.is_ready(old[0]) or self._is_available(new[0])):
            surplus.append(old[0])
        return surplus

    # -- rolling update

    def _is_updated(self, pod: Object) -> bool:
        return objects.labels_of(pod).get(DAEMON_SET_HASH) == self.hash

    def _is_available(self, pod: Object) -> bool:
        return states.is_available(pod, self.min_ready, self.now)

    def _limit(self, name: str, desired: int) -> int:
        strategy = self.daemon_set["spec"]["updateStrategy"]
        rolling = strategy.get("rollingUpdate") or {}
        return states.share(rolling.get(name), desired, round_up=True) if strategy["type"] == "RollingUpdate" else 0

    def _max_surge(self, desired: int) -> int:
        return self._limit("maxSurge", desired)

    async def _roll(self) -> BaseException | None:
        by_node = self._by_node()
        should_run = {n["metadata"]["name"] for n in self.nodes if eligibility.judge(n, self.daemon_set)[0]}
        for name in should_run:
            by_node.setdefault(name, [])
        surge = self._max_surge(len(should_run))
        unavailable = self._limit("maxUnavailable", len(should_run))
        if surge > 0:
            return await self._roll_with_surge(by_node, should_run, surge)
        return await self._roll_in_place(by_node, unavailable or 1)

    def _old_and_new(self, pods: list[Object]) -> tuple[list[Object], list[Object]]:
        staying = [pod for pod in pods if not objects.is_deleting(pod)]
        return [p for p in staying if not self._is_updated(p)], [p for p in staying if self._is_updated(p)]

    async def _roll_in_place(self, by_node: dict[str, list[Object]], max_unavailable: int) -> BaseException | None:
        without_service = 0
        replaced: list[Object] = []  # out of date and not available anyway
        candidates: list[Object] = []
        for _, pods in sorted(by_node.items()):
            old, new = self._old_and_new(pods)
            if len(old) + len(new) != 1:
                without_service += 1
            elif new:
                without_service += not self._is_available(new[0])
            elif not self._is_available(old[0]):
                without_service += 1
                replaced.append(old[0])
            else:
                candidates.append(old[0])
        room = max(0, max_unavailable - without_service)
        return await self._carry_out([], replaced + candidates[:room])

    async def _roll_with_surge(
        self, by_node: dict[str, list[Object]], should_run: set[str], max_surge: int
    ) -> BaseException | None:
        surging = available = 0
        delete: list[Object] = []
        misplaced: list[Object] = []
        create: list[str] = []
        candidates: list[str] = []
        for node, pods in sorted(by_node.items()):
            old, new = self._old_and_new(pods)
            if len(old) > 1 or len(new) > 1:
                surging += 1
                continue
            serves = any(map(self._is_available, (old or new)[:1]))
            available += serves
            if not old:
                continue
            if new:
                if self._is_available(new[0]):
                    delete.append(old[0])
                else:
                    surging += 1
            elif node not in should_run:
                (misplaced if serves else delete).append(old[0])
            else:
                (candidates if serves else create).append(node)
        delete += misplaced[: max(0, available - len(should_run))]
        create += candidates[: max(0, max_surge - surging)]
        return await self._carry_out(create, delete)

    # -- writing

    async def _carry_out(self, create: list[str], delete: list[Object]) -> BaseException | None:
        create, delete = create[:MOST_PODS_PER_SYNC], delete[:MOST_PODS_PER_SYNC]

        async def one(n: int) -> None:
            await self.controller.control.create(self.daemon_set, self._pod(create[n]))

        _, failure = await states.slow_start(len(create), one)
        if isinstance(failure, errors.ApiError) and states.is_namespace_ending(failure):
            failure = None
        try:
            await self.controller.control.delete_all(self.daemon_set, delete)
        except errors.ApiError as error:
            failure = failure or error
        return failure

    def _pod(self, node: str) -> Object:
        pod = states.from_template(self.daemon_set["spec"]["template"], self.daemon_set, DAEMON_SET)
        pod["spec"]["tolerations"] = eligibility.tolerations(pod["spec"])
        eligibility.bind(pod["spec"], node)
        labels = pod["metadata"]["labels"]
        labels[DAEMON_SET_HASH] = self.hash
        generation = objects.annotations_of(self.daemon_set).get(TEMPLATE_GENERATION)
        if generation:
            labels["pod-template-generation"] = generation
        return pod

    def _status(self) -> Object:
        by_node = self._by_node()
        desired = current = misscheduled = ready = updated = available = 0
        for node in self.nodes:
            pods = by_node.get(node["metadata"]["name"], [])
            if not eligibility.judge(node, self.daemon_set)[0]:
                misscheduled += bool(pods)
                continue
            desired += 1
            if pods:
                current += 1
                ready += states.is_ready(pods[0])
                available += self._is_available(pods[0])
                updated += self._is_updated(pods[0])
        before = self.daemon_set.get("status") or {}
        collisions = self.revisions.collisions or before.get("collisionCount")
        return {
            "currentNumberScheduled": current,
            "numberMisscheduled": misscheduled,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            **states.nonzero(
                observedGeneration=self.daemon_set["metadata"].get("generation", 0),
                updatedNumberScheduled=updated,
                numberAvailable=available,
                numberUnavailable=desired - available,
            ),
            **({"collisionCount": collisions} if collisions else {}),
            **({"conditions": before["conditions"]} if before.get("conditions") else {}),
        }


def _age(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]
