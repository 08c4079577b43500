"""`PodManager`: keeps a worker for each pod that is bound to a node of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from danlu import errors
from danlu.client.client import Client
from danlu.client.informer import DELETED, Informer
from danlu.diagnose import say
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.network.podsockets import PodSockets
from danlu.embedded.node.pods import adoption, podstatus
from danlu.embedded.node.pods.podadmission import refusal
from danlu.embedded.node.pods.podworker import PodWorker
from danlu.embedded.node.pressure.cleanup import remove_tree
from danlu.embedded.node.registration import NodeRegistration
from danlu.embedded.node.volumes import folders
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

log = logging.getLogger(__name__)


class PodManager:
    def __init__(
        self,
        client: Client,
        data_dir: Path,
        sockets: PodSockets,
        contexts: Mapping[str, NodeContext],
        registration: NodeRegistration,
        pods: Informer | None,
    ) -> None:
        """`contexts` by the node's name; `pods`: of all pods, which others keep; None: each node has its own."""
        self.workers: dict[str, PodWorker] = {}
        self.on_end: Callable[[], None] = lambda: None  # called when a worker is done
        self._client = client
        self._data_dir = data_dir
        self._addresses, self._containers = sockets.addresses, sockets.containers
        self._contexts = contexts
        self._registration = registration
        self._shared = pods
        self._own: list[Informer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False
        sockets.pod_of, sockets.report = self._pod, self._report
        self._containers.refused = self._refused_port

    # -- life

    def reserve_addresses(self) -> None:
        """Those that pods of an earlier start have."""
        for uid in adoption.pods_on_disk(self._data_dir):
            self._addresses.reserve(uid)

    async def start(self) -> None:
        """Returns when all pods that are bound here are being looked after."""
        if self._shared is not None:
            await self._shared.synced()
            self._shared.add_handler(self._heard)
        else:
            self._own = [Informer(self._client, POD, fields=f"spec.nodeName={name}") for name in self._contexts]
            for informer in self._own:
                informer.add_handler(self._heard)
                informer.start()
            await asyncio.gather(*(informer.synced() for informer in self._own))
        self._spawn(self._clear_orphans())

    async def stop(self, *, kill_pods: bool) -> None:
        self._stopped = True
        await asyncio.gather(*(informer.stop() for informer in self._own))
        if kill_pods:
            await self._kill_all()

    async def let_go(self) -> None:
        """What still runs does so without us."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self.workers.values():
            await worker.let_go()

    async def _kill_all(self) -> None:
        """Every pod's containers end with their grace. Pods that would be restarted are, at the next start."""
        workers = [worker for worker in self.workers.values() if not worker.finished.is_set()]
        await asyncio.gather(*(worker.pause() for worker in workers), return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- what is known

    def longest_grace_s(self) -> float:
        return max((worker.grace() for worker in self.workers.values()), default=0.0)

    def ended(self) -> set[str]:
        """Pods that are over and still known: nobody runs in what they have on the disk."""
        over = {pod["metadata"]["uid"] for pod in self._known() if podstatus.is_terminal(pod)}
        return over - {worker.uid for worker in self.workers.values() if worker.running}

    def _known(self) -> list[Object]:
        informers = self._own if self._shared is None else [self._shared]
        return [pod for informer in informers for pod in informer.list()]

    def _pod(self, uid: str) -> Object | None:
        worker = self.workers.get(uid)
        return worker.pod if worker is not None else None

    def _refused_port(self, uid: str, address: str, port: int) -> None:
        self._report(uid, "BindRefused", say("DL-BIND-REFUSED", address=address, port=port))

    def _report(self, uid: str, reason: str, message: str) -> None:
        worker = self.workers.get(uid)
        if worker is not None:
            worker.event("Warning", reason, message)

    # -- workers

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
        elif not podstatus.is_terminal(pod) or pod["metadata"].get("deletionTimestamp"):
            self._begin(pod, self._contexts[pod["spec"]["nodeName"]])

    def _begin(self, pod: Object, context: NodeContext) -> None:
        worker = PodWorker(pod, context)
        self.workers[worker.uid] = worker
        self._spawn(self._look_after(worker))

    async def _look_after(self, worker: PodWorker) -> None:
        try:
            if not await self._refuse(worker):
                await worker.run()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("pod %s/%s", worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"])
            await self._containers.forget(worker.uid)
            await asyncio.sleep(1.0)
            if self.workers.get(worker.uid) is worker and not worker.is_removed:
                self._begin(worker.pod, worker.context)  # the disk tells the new one what the old one did
                return
        self.workers.pop(worker.uid, None)
        self.on_end()
        if worker.is_removed:
            await self._remove_traces(worker.uid)

    async def _refuse(self, worker: PodWorker) -> bool:
        """Pods that came past the scheduler are checked as kubelet checks them. One that has begun is never refused."""
        pod, context = worker.pod, worker.context
        if (pod.get("status") or {}).get("startTime") or pod["metadata"].get("deletionTimestamp"):
            return False
        node, pressures = self._registration.node(context.node_name), self._registration.pressures
        others = [
            other.requests
            for other in self.workers.values()
            # What has ended counts no more, also while it is cleared away: the scheduler has given its place to others.
            if other is not worker and other.context.node_name == context.node_name and not other.view.finished
        ]
        found = refusal(pod, node, others, pressures)
        if found is not None:
            node = await self._registration.read_again(context.node_name)
            found = refusal(pod, node, others, self._registration.pressures)
        if found is None:
            return False
        reason, message = found
        context.recorder.event(pod, "Warning", reason, message)
        meta = pod["metadata"]
        body = {"status": podstatus.rejected(pod, reason, message, time.time())}
        with contextlib.suppress(errors.NotFound):
            await self._client.patch(POD, meta["name"], meta["namespace"], body, subresource="status")
        worker.finished.set()
        return True

    async def _remove_traces(self, uid: str) -> None:
        """The object is gone: so are its folders, logs and volumes of its own."""
        self._addresses.give_back(uid)
        await folders.tear_down(uid, str(self._data_dir))
        await asyncio.to_thread(remove_tree, self._containers.pod_folder(uid))

    async def _clear_orphans(self) -> None:
        """Pods on disk that the API does not know: deleted while nobody looked."""
        known = {pod["metadata"]["uid"] for pod in self._known()}
        for uid in adoption.pods_on_disk(self._data_dir):
            if uid in known:
                continue
            for container in await adoption.adopt(self._containers, uid):
                if container.is_running:
                    await self._containers.signal(container.id, 9)
                    await container.ended.wait()
            await self._containers.forget(uid)
            await self._remove_traces(uid)
