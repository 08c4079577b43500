"""The kubelet: registers the machine as one node or several, and keeps a worker for each pod bound to it.

Started after the API server; `stop(kill_pods=False)` leaves the pods running for the next start to adopt.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import DELETED, Informer
from danlu.embedded import permissions
from danlu.embedded.node import adoption, eviction, launch, machine, nodeobject, reclaim, status, volumes
from danlu.embedded.node.admission import refusal
from danlu.embedded.node.context import Devices, NodeContext
from danlu.embedded.node.images import Catalogue
from danlu.embedded.node.nodeobject import HOST_ADDRESS, Offer
from danlu.embedded.node.podsockets import PodSockets
from danlu.embedded.node.podworker import PodWorker
from danlu.embedded.node.sandbox import Capabilities
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.node.traces import remove_tree
from danlu.meta import objects
from danlu.meta.clock import now_rfc3339, now_rfc3339_micro
from danlu.meta.kind import Object
from danlu.meta.wellknown import LEASE, NODE, POD
from danlu.runtime.recorder import EventRecorder
from danlu.settings import NodeShare

__all__ = ["Agent", "NodeContext"]

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 40


class Surroundings(Protocol):
    """What other parts of the node give a pod; `NoSurroundings` gives nothing."""

    def extended_resources(self, share: NodeShare, nodes: int) -> dict[str, int]: ...
    def node_labels(self, share: NodeShare, nodes: int) -> dict[str, str]: ...
    def assign(self, node: str, pod: Object, container: Object) -> Devices: ...
    def release(self, pod_uid: str) -> None: ...
    async def hosts_file(self, pod: Object, address: str) -> str: ...
    def api_address(self) -> tuple[str, int] | None: ...
    @property
    def addressed_services(self) -> Callable[[str], Sequence[Object]] | None: ...


class NoSurroundings:
    addressed_services: Callable[[str], Sequence[Object]] | None = None

    def extended_resources(self, share: NodeShare, nodes: int) -> dict[str, int]:
        return {"nvidia.com/gpu": share.gpus} if share.gpus else {}

    def node_labels(self, share: NodeShare, nodes: int) -> dict[str, str]:
        return {"nvidia.com/gpu.present": "true"} if share.gpus else {}

    def assign(self, node: str, pod: Object, container: Object) -> Devices:
        return Devices()

    def release(self, pod_uid: str) -> None:
        return None

    async def hosts_file(self, pod: Object, address: str) -> str:
        return ""

    def api_address(self) -> tuple[str, int] | None:
        return None


class Agent:
    def __init__(
        self,
        client: Client,
        data_dir: Path,
        *,
        shares: Sequence[NodeShare] = (),
        settings: NodeSettings | None = None,
        surroundings: Surroundings | None = None,
        sockets: PodSockets | None = None,
        port: int = 0,
        pods: Informer | None = None,
        disk_alarm: Callable[[], str] = lambda: "",
    ) -> None:
        """`port` is where the API of this machine listens, for the Node's daemonEndpoints.

        `pods` is an informer of all pods that others keep; without it each node has its own. `disk_alarm` says why the
        store has no room, or nothing.
        """
        self.client = client
        self.data_dir = data_dir
        self.shares = list(shares) or [NodeShare("danlu")]
        self.settings = settings or NodeSettings()
        self.surroundings = surroundings or NoSurroundings()
        self.port = port
        self.sockets = sockets or PodSockets.of(data_dir, self.settings.pod_network)
        self.sockets.pod_of, self.sockets.report = self._pod, self._report
        self.containers, self.addresses = self.sockets.containers, self.sockets.addresses
        self.containers.refused = self._refused_port
        self.spawner = self.containers.spawner
        self.offers = [self._offer(share) for share in self.shares]
        self.workers: dict[str, PodWorker] = {}
        self._contexts: dict[str, NodeContext] = {}
        self._pods = pods
        self._informers: list[Informer] = []  # our own
        self._tasks: set[asyncio.Task[None]] = set()
        self._nodes: dict[str, Object] = {}  # as the API answered last
        self._pressures: dict[str, float] = {}  # condition -> when it was last seen
        self._disk_alarm = disk_alarm
        self._look_now = asyncio.Event()
        self._next_look_at_logs = 0.0
        self._stopped = False

    @property
    def capabilities(self) -> Capabilities:
        return self.spawner.capabilities

    # -- life

    async def start(self) -> None:
        """Returns when the nodes are ready and all pods that are theirs are being looked after."""
        permissions.make_closed(self.data_dir / "pods")
        await self.spawner.start()
        for uid in adoption.pods_on_disk(self.data_dir):
            self.addresses.reserve(uid)
        catalogue = Catalogue(self.data_dir, strict=self.settings.strict_images)
        catalogue.environments()  # read now, so that the first pod need not wait for it
        for offer in self.offers:
            self._contexts[offer.name] = self._context(offer.name, catalogue)
            await self._begin_node(offer)
        await self._mark_absent()
        if self._pods is not None:
            await self._pods.synced()
            self._pods.add_handler(self._heard)
        else:
            selectors = [f"spec.nodeName={offer.name}" for offer in self.offers]
            self._informers = [Informer(self.client, POD, fields=selector) for selector in selectors]
            for informer in self._informers:
                informer.add_handler(self._heard)
                informer.start()
            await asyncio.gather(*(informer.synced() for informer in self._informers))
        self._spawn(self._clear_orphans())
        self._spawn(self._heartbeat())
        self._spawn(self._look_after_machine())

    async def stop(self, *, kill_pods: bool = False) -> None:
        self._stopped = True
        await asyncio.gather(*(informer.stop() for informer in self._informers))
        if kill_pods:
            await self._kill_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self.workers.values():
            await worker.let_go()
        await asyncio.gather(*(context.recorder.stop() for context in self._contexts.values()))
        await self.containers.close()
        await self.spawner.stop()

    def longest_grace_s(self) -> float:
        return max((worker.grace_s for worker in self.workers.values()), default=0.0)

    async def _kill_all(self) -> None:
        """Every pod's containers end with their grace. Pods that would be restarted are, at the next start."""
        workers = [worker for worker in self.workers.values() if not worker.finished.is_set()]
        await asyncio.gather(*(worker.pause() for worker in workers), return_exceptions=True)

    def _spawn(self, work: object) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- the nodes

    def _offer(self, share: NodeShare) -> Offer:
        count = len(self.shares)
        cpu = int(share.cpu * 1000) if share.cpu is not None else machine.cores() * 1000 // count
        memory = share.memory if share.memory is not None else machine.memory_total() // count
        return Offer(
            share.name,
            cpu,
            memory,
            nodeobject.storage_of(self.data_dir) // count,
            self.settings.pods,
            self.surroundings.extended_resources(share, count),
            self.surroundings.node_labels(share, count),
        )

    def _context(self, name: str, catalogue: Catalogue) -> NodeContext:
        around = self.surroundings
        return NodeContext(
            self.client,
            str(self.data_dir),
            name,
            self.settings,
            EventRecorder(self.client, "kubelet", name),
            self.containers,
            catalogue,
            self.addresses,
            self.sockets,
            HOST_ADDRESS,
            around.hosts_file,
            lambda pod, container: around.assign(name, pod, container),
            around.release,
            around.api_address,
            around.addressed_services,
        )

    async def _begin_node(self, offer: Offer) -> None:
        """What is refused here (a policy, a webhook) must not stop the start: the heartbeat tries again."""
        try:
            await self._register(offer)
        except errors.ApiError as error:
            log.warning("node %s: %s; the heartbeat will try again", offer.name, error)
            self._nodes.setdefault(offer.name, nodeobject.new(offer))

    async def _register(self, offer: Offer) -> None:
        node = nodeobject.new(offer)
        try:
            known = await self.client.create(NODE, node)
            self._contexts[offer.name].recorder.event(known, "Normal", "Starting", "Starting kubelet.")
        except errors.AlreadyExists:
            known = await self.client.patch(
                NODE, offer.name, None, {"metadata": {"labels": node["metadata"]["labels"]}}
            )
        self._nodes[offer.name] = known
        await self._write_node(offer)
        try:
            await self._renew(offer)
        except errors.ApiError as error:
            log.warning("lease of node %s: %s; the heartbeat will try again", offer.name, error)

    async def _mark_absent(self) -> None:
        """Nodes of an earlier start that this one does not have would look Ready until their lease ran out."""
        own = {offer.name for offer in self.offers}
        for node in (await self.client.list(NODE)).items:
            if nodeobject.is_left_over(node, own):
                try:
                    await self.client.update_status(NODE, {**node, "status": nodeobject.absent(node, now_rfc3339())})
                except errors.ApiError as error:
                    log.warning(
                        "node %s: %s; it counts as absent when its lease has run out", objects.name(node), error
                    )

    async def _write_node(self, offer: Offer) -> None:
        old = self._nodes[offer.name].get("status") or {}
        wanted = nodeobject.status(offer, old, set(self._pressures), now_rfc3339(), self.capabilities.mode, self.port)
        try:
            self._nodes[offer.name] = await self.client.patch(
                NODE, offer.name, None, {"status": wanted}, subresource="status"
            )
        except errors.NotFound:
            # Someone deleted the node while its machine is well: it comes back, as a kubelet that restarts would.
            self._nodes[offer.name] = await self.client.create(NODE, nodeobject.new(offer))
            await self.client.patch(NODE, offer.name, None, {"status": wanted}, subresource="status")

    async def _renew(self, offer: Offer) -> None:
        renewed = {"renewTime": now_rfc3339_micro()}
        try:
            await self.client.patch(LEASE, offer.name, LEASE_NAMESPACE, {"spec": renewed})
        except errors.NotFound:
            meta = self._nodes[offer.name]["metadata"]
            owner = {"apiVersion": "v1", "kind": "Node", "name": offer.name, "uid": meta["uid"]}
            lease = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": offer.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
                "spec": {"holderIdentity": offer.name, "leaseDurationSeconds": LEASE_S, **renewed},
            }
            with contextlib.suppress(errors.AlreadyExists):
                await self.client.create(LEASE, lease, LEASE_NAMESPACE)

    async def _heartbeat(self) -> None:
        written = time.monotonic()
        while True:
            await asyncio.sleep(self.settings.heartbeat_s)
            due = time.monotonic() - written >= self.settings.status_s
            for offer in self.offers:
                try:
                    if not self._nodes[offer.name]["metadata"].get("uid"):
                        await self._register(offer)
                    await self._renew(offer)
                    if due:
                        await self._write_node(offer)
                except Exception as error:
                    log.warning("heartbeat of node %s: %s", offer.name, error)
            written = time.monotonic() if due else written

    # -- the pods

    def _heard(self, event: str, pod: Object, _old: Object | None) -> None:
        if self._stopped or pod["spec"].get("nodeName") not in self._contexts:
            return
        uid = pod["metadata"]["uid"]
        worker = self.workers.get(uid)
        if event == DELETED:
            if worker is not None:
                worker.removed()
            else:
                self._spawn(self._remove_traces(uid))
        elif worker is not None:
            worker.update(pod)
        elif not status.is_terminal(pod) or pod["metadata"].get("deletionTimestamp"):
            self._begin(pod, self._contexts[pod["spec"]["nodeName"]])

    def _begin(self, pod: Object, context: NodeContext) -> None:
        worker = PodWorker(pod, context)
        self.workers[worker.uid] = worker
        self._spawn(self._look_after(worker))

    def _pod(self, uid: str) -> Object | None:
        worker = self.workers.get(uid)
        return worker.pod if worker is not None else None

    def _refused_port(self, uid: str, address: str, port: int) -> None:
        text = f"address {address} with port {port} is not this pod's: its process got an error when it bound it"
        self._report(uid, "BindRefused", f"{text}; a pod's own address is in $DANLU_POD_IP")

    def _report(self, uid: str, reason: str, message: str) -> None:
        worker = self.workers.get(uid)
        if worker is not None:
            worker.event("Warning", reason, message)

    async def _look_after(self, worker: PodWorker) -> None:
        try:
            if not await self._refuse(worker):
                await worker.run()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("pod %s/%s", worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"])
            await self.containers.forget(worker.uid)
            await asyncio.sleep(1.0)
            if self.workers.get(worker.uid) is worker and not worker.is_removed:
                self._begin(worker.pod, worker.context)  # the disk tells the new one what the old one did
                return
        self.workers.pop(worker.uid, None)
        if eviction.DISK_PRESSURE in self._pressures:
            self._look_now.set()  # what it had on the disk can be taken now
        if worker.is_removed:
            await self._remove_traces(worker.uid)

    async def _refuse(self, worker: PodWorker) -> bool:
        """Pods that came past the scheduler are checked as kubelet checks them. One that has begun is never refused."""
        pod, context = worker.pod, worker.context
        if (pod.get("status") or {}).get("startTime") or pod["metadata"].get("deletionTimestamp"):
            return False
        node = self._nodes[context.node_name]
        others = [
            other.requests
            for other in self.workers.values()
            # What has ended counts no more, also while it is cleared away: the scheduler has given its place to others.
            if other is not worker and other.context.node_name == context.node_name and not other.view.finished
        ]
        found = refusal(pod, node, others, set(self._pressures))
        if found is not None:
            # Before anything is refused: labels and resources that others gave the node may be newer than our copy.
            with contextlib.suppress(errors.ApiError):
                node = self._nodes[context.node_name] = await self.client.get(NODE, context.node_name)
            found = refusal(pod, node, others, set(self._pressures))
        if found is None:
            return False
        reason, message = found
        context.recorder.event(pod, "Warning", reason, message)
        meta = pod["metadata"]
        body = {"status": status.rejected(pod, reason, message, time.time())}
        with contextlib.suppress(errors.NotFound):
            await self.client.patch(POD, meta["name"], meta["namespace"], body, subresource="status")
        worker.finished.set()
        return True

    async def _remove_traces(self, uid: str) -> None:
        """The object is gone: so are its folders, logs and volumes of its own."""
        self.addresses.give_back(uid)
        await volumes.tear_down(uid, str(self.data_dir))
        await asyncio.to_thread(remove_tree, self.containers.pod_folder(uid))

    async def _clear_orphans(self) -> None:
        """Pods on disk that the API does not know: deleted while nobody looked."""
        informers = self._informers if self._pods is None else [self._pods]
        known = {pod["metadata"]["uid"] for informer in informers for pod in informer.list()}
        for uid in adoption.pods_on_disk(self.data_dir):
            if uid in known:
                continue
            for container in await adoption.adopt(self.containers, uid):
                if container.is_running:
                    await self.containers.signal(container.id, 9)
                    await container.ended.wait()
            await self.containers.forget(uid)
            await self._remove_traces(uid)

    # -- the machine

    def disk_alarm_changed(self, alarm: str) -> None:
        """The store ran out of room, or has some again ("")."""
        for offer in self.offers:
            recorder = self._contexts[offer.name].recorder
            if alarm:
                text = f"alarm NOSPACE: {alarm}; nothing is created until there is room: deletes work"
                recorder.event(self._nodes[offer.name], "Warning", "DatabaseSpaceExceeded", text)
            else:
                text = "there is room for the store again"
                recorder.event(self._nodes[offer.name], "Normal", "DatabaseSpaceRecovered", text)
        self._look_now.set()

    async def _look_after_machine(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.eviction_period_s):
                    await self._look_now.wait()
            self._look_now.clear()
            try:
                await self._check_machine()
            except Exception:
                log.exception("looking after memory and disk")

    async def _check_machine(self) -> None:
        running = [worker for worker in self.workers.values() if worker.running]
        for worker in [w for w in running if eviction.has_storage_limits(w.pod)]:
            problem = await asyncio.to_thread(eviction.outgrown, worker)
            if problem:
                self._evict(worker, problem)
        await self._bound_logs()
        found = self._shortages()
        await self._set_pressures(
            {shortage.pressure for shortage in found} | ({eviction.DISK_PRESSURE} if self._disk_alarm() else set())
        )
        if any(shortage.pressure == eviction.DISK_PRESSURE for shortage in found):
            await self._reclaim(found[-1].resource)
            found = self._shortages()
        if found:
            sizes = await asyncio.to_thread(self._sizes, running, found[0].pressure)
            victim = eviction.choose(running, sizes, found[0].resource)
            if victim is not None:
                self._evict(victim, eviction.message(found[0], victim, sizes[victim.uid]))

    def _shortages(self) -> list[eviction.Shortage]:
        return eviction.shortages(self.settings, machine.memory_available(), machine.disk(self.data_dir))

    def _ended(self) -> set[str]:
        """Pods that are over and still known: nobody runs in what they have on the disk."""
        informers = self._informers if self._pods is None else [self._pods]
        known = (pod for informer in informers for pod in informer.list() if status.is_terminal(pod))
        return {pod["metadata"]["uid"] for pod in known} - {w.uid for w in self.workers.values() if w.running}

    async def _reclaim(self, resource: str) -> None:
        """What nobody needs goes first, and only as much of it as is needed: see `reclaim`."""
        ended = self._ended()
        for step in reclaim.STEPS:
            before = machine.disk(self.data_dir).free
            await asyncio.to_thread(step.take, self.data_dir, ended)
            freed = machine.disk(self.data_dir).free - before
            if freed > 0:
                log.warning("the disk is short of %s: %d KiB of %s were removed", resource, freed // 1024, step.name)
            if not any(shortage.pressure == eviction.DISK_PRESSURE for shortage in self._shortages()):
                return

    async def _bound_logs(self) -> None:
        if time.monotonic() < self._next_look_at_logs:
            return
        self._next_look_at_logs = time.monotonic() + self.settings.status_s
        most = launch.logs_in_all(self.settings, machine.disk(self.data_dir))
        removed = await asyncio.to_thread(reclaim.bound_logs, self.data_dir, most, self._ended())
        if removed:
            log.warning("logs were more than %d MiB in all: the oldest %d KiB are gone", most >> 20, removed // 1024)

    def _sizes(self, workers: Iterable[PodWorker], pressure: str) -> dict[str, int]:
        if pressure == eviction.MEMORY_PRESSURE:
            return {worker.uid: eviction.memory_of(worker) for worker in workers}
        return {worker.uid: eviction.size_of(self.containers.pod_folder(worker.uid)) for worker in workers}

    def _evict(self, worker: PodWorker, message: str) -> None:
        worker.context.recorder.event(worker.pod, "Warning", eviction.REASON, message)
        worker.end(eviction.REASON, message)

    async def _set_pressures(self, seen: set[str]) -> None:
        now, before = time.monotonic(), set(self._pressures)
        for pressure in seen:
            self._pressures[pressure] = now
        for pressure, last in list(self._pressures.items()):
            if now - last > self.settings.pressure_hold_s:
                del self._pressures[pressure]
        if set(self._pressures) != before:
            for offer in self.offers:
                await self._write_node(offer)
