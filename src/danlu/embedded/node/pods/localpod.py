"""`LocalPod`: one pod on this node as its worker and the worker's parts share it."""

from __future__ import annotations

import asyncio
import socket
import time

from danlu.diagnose import causes_in
from danlu.embedded.node.context import NodeContext
from danlu.embedded.node.pods import podstatus
from danlu.embedded.node.pods.members import Member
from danlu.embedded.node.pods.podstatus import PodView, View
from danlu.embedded.node.pods.publisher import Publisher
from danlu.embedded.node.volumes.folders import PreparedVolumes
from danlu.meta.kind import Object
from danlu.meta.said import Said, carried, written


class LocalPod:
    def __init__(self, pod: Object, context: NodeContext) -> None:
        self.pod = pod
        self.context = context
        self.uid: str = pod["metadata"]["uid"]
        spec = pod["spec"]
        self.members = [
            Member(View(c["name"], spec=c), is_init, context.containers, self.connect)
            for is_init, key in ((True, "initContainers"), (False, "containers"))
            for c in spec.get(key) or ()
        ]
        self.view = PodView(
            [m.view for m in self.members if m.is_init], [m.view for m in self.members if not m.is_init]
        )
        for member in self.members:
            member.image_note = _noted(pod, member.spec.get("image") or "")
        self.publisher = Publisher(context.client, lambda: self.pod, self._status, self._causes)
        self.volumes: PreparedVolumes | None = None
        self.wake = asyncio.Event()  # something has changed: the worker looks again
        self.is_removed = False  # the object is gone
        self.most_grace_s: float | None = None  # what an eviction leaves it
        self.is_paused = False  # `danlu down`: it is made again by the next start

    def grace(self) -> float:
        """Seconds from the order to end to SIGKILL."""
        meta, spec = self.pod["metadata"], self.pod["spec"]
        if self.is_removed:
            return 0.0
        asked = meta.get("deletionGracePeriodSeconds")
        grace = float(asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30))
        return grace if self.most_grace_s is None else min(grace, self.most_grace_s)

    async def connect(self, host: str, port: int) -> socket.socket:
        """For probes: to this pod, unless they name another host."""
        uid = self.uid if host == self.view.pod_ip else ""
        return await self.context.sockets.connect((host,), port, uid)

    def known(self) -> Object:
        """The pod, with the address that the API may not know yet."""
        old = self.pod.get("status") or {}
        ip, host = self.view.pod_ip, self.view.host_ip
        known = {**old, "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": host, "hostIPs": [{"ip": host}]}
        return {**self.pod, "status": known}

    def _status(self) -> Object:
        return podstatus.compute(self.pod, self.view, time.time())

    def _causes(self) -> str | None:
        """What containers are told that their status has no field for: another image, and why they cannot be made."""
        told = [cause for member in self.members for cause in carried(member.image_note)]
        told += [cause for member in self.members if member.view.waiting for cause in carried(member.view.waiting[1])]
        return written(Said("", [cause for number, cause in enumerate(told) if cause not in told[:number]]))

    def event(self, kind: str, reason: str, message: str, member: Member | None = None) -> None:
        path = ""
        if member is not None:
            listed = (
                "ephemeralContainers" if member.is_debugging else "initContainers" if member.is_init else "containers"
            )
            path = f"spec.{listed}{{{member.view.name}}}"
        about = self.pod if "kind" in self.pod else {"apiVersion": "v1", "kind": "Pod", **self.pod}
        self.context.recorder.event(about, kind, reason, message, field_path=path)


def _noted(pod: Object, image: str) -> Said:
    """What an earlier `danlu up` said of this image: the containers that it left running are not started again."""
    return Said("", [cause.carried() for cause in causes_in(pod) if image and cause.params.get("image") == image])
