"""Where an app runs, asked of the API with the rights of who wants to open it: whoever may not see it gets no answer.

A kind says where its apps answer and which Secret opens them (`PlatformKind.app`): whoever may not read that does not
get in. A kind that names none is open to whoever may read the object, a service to whoever may use it through the API
server's own proxy.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from danlu.console.appnames import APPS, AppName
from danlu.console.kubeapi import KubeApi, ask
from danlu.console.sessions import Identity
from danlu.errors import ApiError, Forbidden, NotFound, ServiceUnavailable, Unauthorized
from danlu.kinds.webapp import CREATING
from danlu.meta import conditions
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import SECRET, SELF_SUBJECT_ACCESS_REVIEW, SERVICE

KEPT_S = 15.0  # a right that is taken away is gone after this time
MOST_KEPT = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """A Service and one of its ports. `token` is the app's own, as Jupyter has it."""

    service: str
    port: int
    token: str = ""
    page: str = ""  # after the base path: where a person begins


class AppNotReady(Exception):
    """It exists and cannot be opened now. The reason and the message are those of its kind's condition."""

    def __init__(self, reason: str, message: str, page: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.page = page


class AppFinder:
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
        found = APPS.get(app.kind)
        if found is None or found.app is None:
            return await self._service(identity, app)
        obj = await self._get(identity, found.kind, app.namespace, app.name)
        place = found.app.locate(obj)
        ready = conditions.get((obj.get("status") or {}).get("conditions"), found.app.ready) or {}
        not_ready = AppNotReady(ready.get("reason", CREATING), ready.get("message", ""), place.page)
        try:
            token = await self._token(identity, app, place.token_secret) if place.token_secret else ""
        except NotFound:
            # Its name is known before it is made. Who may not read it is told so, whether it is there or not.
            raise not_ready from None
        if ready.get("status") != "True":
            raise not_ready
        await self._get(identity, SERVICE, app.namespace, place.service)  # who may not see it is not led there
        return Place(place.service, place.port, token, place.page)

    async def _token(self, identity: Identity, app: AppName, name: str) -> str:
        try:
            secret = await self._get(identity, SECRET, app.namespace, name)
        except Forbidden as error:
            raise Forbidden(
                f"you may see this {app.kind}, not enter it: that needs the right to read its Secret {name} ({error})"
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
