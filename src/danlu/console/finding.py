"""Where an app runs, asked of the API with the rights of who wants to open it: whoever may not see it gets no answer.

To enter a notebook is to run programs in its pod, so reading the Notebook is not enough: its token lies in a Secret,
and whoever may not read that does not get in. A TensorBoard is open to whoever may read it, a service to whoever may
use it through the API server's own proxy.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from danlu.console.appnames import AppName
from danlu.console.kubeapi import KubeApi, ask
from danlu.console.sessions import Identity
from danlu.errors import ApiError, Forbidden, NotFound, ServiceUnavailable, Unauthorized
from danlu.kinds._served import shape
from danlu.kinds.notebook import programs
from danlu.kinds.notebook.schema import NOTEBOOK
from danlu.kinds.tensorboard import reconcile as tensorboard
from danlu.kinds.tensorboard.schema import TENSORBOARD
from danlu.meta import conditions
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import SECRET, SELF_SUBJECT_ACCESS_REVIEW, SERVICE

KEPT_S = 15.0  # a right that is taken away is gone after this time
MOST_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """A Service and one of its ports. `token` is Jupyter's own."""

    service: str
    port: int
    token: str = ""
    page: str = ""  # after the base path: where a person begins


class NotReady(Exception):
    """It exists and cannot be opened now. The reason and the message are those of its condition Ready."""

    def __init__(self, reason: str, message: str, page: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.page = page


class Finder:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._kept: dict[tuple[Identity, AppName], tuple[float, Place]] = {}

    async def find(self, identity: Identity, app: AppName) -> Place:
        """Raises ApiError when the person may not, NotReady when nobody can."""
        kept = self._kept.get((identity, app))
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        place = await self._look(identity, app)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[identity, app] = (time.monotonic() + KEPT_S, place)
        return place

    def forget(self, identity: Identity, app: AppName) -> None:
        self._kept.pop((identity, app), None)

    async def _look(self, identity: Identity, app: AppName) -> Place:
        if app.kind == "service":
            return await self._service(identity, app)
        is_notebook = app.kind == "notebook"
        obj = await self._get(identity, NOTEBOOK if is_notebook else TENSORBOARD, app.namespace, app.name)
        kind = str((obj["spec"].get("type") or "jupyter") if is_notebook else "")
        page = "lab" if kind == "jupyter" else ""
        token = await self._token(identity, obj) if kind == "jupyter" else ""
        ready = conditions.get((obj.get("status") or {}).get("conditions"), "Ready") or {}
        if ready.get("status") != "True":
            raise NotReady(ready.get("reason", "Creating"), ready.get("message", ""), page)
        name = f"managed-{app.kind}-http-{shape.digits(obj)}"
        port = programs.PORTS[kind] if is_notebook else tensorboard.PORT
        await self._get(identity, SERVICE, app.namespace, name)  # who may not see it is not led there
        return Place(name, port, token, page)

    async def _token(self, identity: Identity, notebook: Object) -> str:
        name = (notebook.get("status") or {}).get("tokenSecret")
        if not name:
            return ""
        try:
            secret = await self._get(identity, SECRET, notebook["metadata"]["namespace"], name)
        except Forbidden as error:
            raise Forbidden(
                f"you may see this notebook, not enter it: that needs the right to read its Secret {name} ({error})"
            ) from None
        return base64.b64decode(secret["data"]["token"]).decode()

    async def _service(self, identity: Identity, app: AppName) -> Place:
        name, _, wanted = app.name.partition(":")
        wish = {"verb": "get", "resource": "services", "subresource": "proxy", "namespace": app.namespace, "name": name}
        review = {
            "apiVersion": SELF_SUBJECT_ACCESS_REVIEW.api_version,
            "kind": SELF_SUBJECT_ACCESS_REVIEW.kind,
            "spec": {"resourceAttributes": wish},
        }
        answer = await self._ask(identity, "POST", SELF_SUBJECT_ACCESS_REVIEW.path(), review)
        if not answer["status"].get("allowed"):
            raise Forbidden(f"opening service {name} needs the right to get services/proxy in {app.namespace}")
        service = await self._get(identity, SERVICE, app.namespace, name)
        for port in service["spec"].get("ports") or ():
            if wanted in (str(port["port"]), port.get("name")):
                return Place(name, int(port["port"]))
        raise NotFound(f"service {name} has no port {wanted}")

    async def _get(self, identity: Identity, kind: Kind, namespace: str, name: str) -> Object:
        return await self._ask(identity, "GET", kind.path(namespace, quote(name)))

    async def _ask(self, identity: Identity, method: str, path: str, body: Any = None) -> Object:
        answer = await ask(self._api, identity, method, path, body)
        content: Object = answer.json()
        if answer.status < 400:
            return content
        message = content.get("message") or f"the cluster answered {answer.status}"
        known: dict[int, type[ApiError]] = {401: Unauthorized, 403: Forbidden, 404: NotFound}
        raise known.get(answer.status, ServiceUnavailable)(message)
