"""The API server without its sockets: who may ask, which handler answers, and one shape for every error."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.embedded.apiserver import (
    deletehandler,
    discovery,
    pagination,
    patchhandler,
    readhandler,
    warnings,
    watchhandler,
    writehandler,
)
from danlu.embedded.apiserver.auth.forbidden import AccessAttributes, access_forbidden
from danlu.embedded.apiserver.fairness import Fairness
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.request import Call, Response, StreamResponse
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.apiserver.subresources import scale
from danlu.embedded.apiserver.subresources.nodestreams import Connect, plain_connection
from danlu.embedded.apiserver.target import PAGE, PROXY
from danlu.embedded.settings import RequestLimits
from danlu.embedded.storage import Store
from danlu.errors import ApiError, BadRequest, InternalError, MethodNotAllowed, NotFound
from danlu.meta.fields import quoted
from danlu.meta.names import is_valid_path_segment

if TYPE_CHECKING:
    from danlu.embedded.apiserver.admission import Chain
    from danlu.embedded.apiserver.admission.webhooks import Webhooks
    from danlu.embedded.apiserver.audit.auditor import Auditor
    from danlu.embedded.apiserver.auth.authenticate import Authenticator
    from danlu.embedded.apiserver.auth.rbac import Authorizer
    from danlu.embedded.apiserver.metrics import Metrics
    from danlu.embedded.apiserver.nodeusage import NodeUsage
    from danlu.embedded.apiserver.subresources.nodestreams import NodeStreams

log = logging.getLogger("danlu.apiserver")

Answer = Response | StreamResponse
Handler = Callable[[Call], Awaitable[Answer]]


METHODS: dict[str, Handler] = {
    "get": readhandler.get,
    "list": readhandler.list_,
    "watch": watchhandler.watch,
    "create": writehandler.create,
    "update": writehandler.update,
    "patch": patchhandler.patch,
    "delete": deletehandler.delete,
    "deletecollection": deletehandler.delete_collection,
}
BY_NAME, BY_COLLECTION = ("update", "patch"), ("create", "deletecollection")
STATUS_VERBS = ("get", "update", "patch")


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Who asks, who may, what is admitted, and how much at once."""

    authenticator: Authenticator
    authorizer: Authorizer
    admission: Chain
    webhooks: Webhooks
    limits: RequestLimits


class Server:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        policy: RequestPolicy,
        pages: dict[str, Handler],
        metrics: Metrics,
        page_key: bytes,
    ) -> None:
        self.store = store
        self.registry = registry
        self.authorizer = policy.authorizer
        self.authenticator = policy.authenticator
        self.admission = policy.admission
        self.pages = pages  # everything that is not a resource: /version, /healthz, /openapi/v3 …
        self.metrics = metrics
        self.webhooks = policy.webhooks
        self.page_tokens = pagination.ContinueTokens(page_key)
        self.snapshots = pagination.Snapshots()
        self.last_lines = watchhandler.LastLines()
        self.fairness = Fairness(policy.limits)
        self.audit: Auditor | None = None  # nothing is recorded
        self.node_streams: dict[str, NodeStreams] = {}  # by node: logs, exec, attach, connections to pods
        self.node_usage: NodeUsage | None = None  # of all nodes that run pods
        self.connect: Connect = plain_connection  # to pods; that of a node verifies who answers
        self.started = time.time()

    async def handle(self, call: Call) -> Answer:
        """Answers one request. Never raises, except to be cancelled."""
        begun = time.perf_counter()
        record = await self.audit.begin(call) if self.audit is not None else None
        try:
            answer = await self._dispatch(call)
        except ApiError as error:
            answer = error_response(error)
        except Exception:
            log.exception("a request failed: %s %s", call.method, call.target.path)
            text = f"Internal error occurred: {call.method} {call.target.path} failed; see the log"
            answer = error_response(InternalError(text))
        if call.warnings:
            answer.headers["warning"] = warnings.header(call.warnings)
        self.metrics.request(call, answer.status, time.perf_counter() - begun)
        if record is not None and self.audit is not None:
            self.audit.end(record, call, answer)
        return answer

    async def _dispatch(self, call: Call) -> Answer:
        self.admit(call)
        if call.target.scope == PAGE:
            return await self._page(call)
        handler = self.handler(call)
        if handler is None:
            return self._nothing_there(call)
        if self.store.held:
            self._refuse_held(call)
        return await handler(call)

    def _refuse_held(self, call: Call) -> None:
        """An object in quarantine is not gone: who is told so would delete what belongs to it. It may be made anew."""
        served = call.served
        if served is None or not call.name or _may_create(call):
            return
        why = self.store.why_held(served.key, call.namespace, call.name)
        if why:
            what = f'{served.kind.plural} "{call.name}"'
            raise InternalError(f"Internal error occurred: {what} is damaged in the store ({why}): see `danlu repair`")

    def admit(self, call: Call) -> None:
        """Finds the kind that the request is about, and raises Forbidden, in Kubernetes' words, unless the user may.

        A kind that is not found at such a path is not served there: rights in a namespace end in it.
        """
        target = call.target
        served = self.registry.by_path(target.group, target.version, target.resource)
        call.served = served if served is not None and target.fits(served.kind.namespaced) else None
        self.require(call, target.verb, target.namespace)
        if call.served is not None:
            _check_segment(target.namespace, "Namespace")
            _check_segment(target.name, "Name")

    def require(self, call: Call, verb: str, namespace: str) -> None:
        """Raises Forbidden unless the user may do this to what the request is about."""
        target = call.target
        path = target.path if target.scope == PAGE else None
        asked = (verb, target.group, target.resource, target.subresource, namespace, target.name, path)
        decision = call.decision = self.authorizer.authorize(call.user, *asked)
        if not decision.allowed:
            raise access_forbidden(call.user.name, AccessAttributes(*asked), decision.reason)

    def handler(self, call: Call) -> Handler | None:
        served, target = call.served, call.target
        if served is None:
            return None
        if target.subresource:
            return self._subresource_handler(call, served)
        if call.method == "HEAD" or call.verb in (BY_COLLECTION if target.by_name else BY_NAME):
            raise MethodNotAllowed()
        if served.kind.namespaced and not target.namespace and call.verb in BY_COLLECTION:
            raise MethodNotAllowed()  # across all namespaces one can only list and watch
        if call.verb not in served.verbs or call.verb not in METHODS or (call.verb == "watch" and call.method != "GET"):
            raise MethodNotAllowed()
        return METHODS[call.verb]

    def _subresource_handler(self, call: Call, served: ServedKind) -> Handler | None:
        name = call.subresource
        if (name == "status" and served.has_status) or name in served.parts:
            if call.verb not in STATUS_VERBS:
                raise _unsupported(served, call.verb) if served.custom else MethodNotAllowed()
            return METHODS[call.verb]
        if name == "scale" and served.scale is not None:
            return scale.handle
        if served.custom:
            raise NotFound.of(served.kind.plural, call.name, served.kind.group)
        sub = served.subresources.get(name)
        if sub is not None and call.verb not in sub.verbs and name != PROXY:  # a proxy passes on any method
            raise MethodNotAllowed()
        return sub.handle if sub is not None else None

    def _nothing_there(self, call: Call) -> Response:
        group = call.target.group
        known = call.target.path.startswith(f"/apis/{group}/" if group else "/api/")
        if known and any(served.kind.group == group and not served.custom for served in self.registry.all()):
            raise NotFound.of_path()
        return page_not_found()

    async def _page(self, call: Call) -> Answer:
        path = call.target.path
        handler = self.pages.get(path)
        if handler is not None:
            return await handler(call)
        for prefix, page in self.pages.items():
            if prefix.endswith("/*") and path.startswith(prefix[:-1]):
                return await page(call)
        if path in ("/api", "/apis") or path.startswith(("/api/", "/apis/")):
            return discovery.answer(call)
        return page_not_found()


def _unsupported(served: ServedKind, verb: str) -> MethodNotAllowed:
    kind = served.kind
    text = f"{verb} is not supported on resources of kind {quoted(kind.resource)}"
    return MethodNotAllowed(text, {"group": kind.group, "kind": kind.plural})


def _check_segment(segment: str, what: str) -> None:
    if segment and not is_valid_path_segment(segment):
        raise BadRequest(f"{what} parameter invalid: {quoted(segment)}: {_bad_segment(segment)}")


def _bad_segment(name: str) -> str:
    if name in (".", ".."):
        return f"may not be '{name}'"
    return " ".join(f"may not contain '{letter}'" for letter in "/%" if letter in name)


def _may_create(call: Call) -> bool:
    """Server-side apply and, for some kinds, PUT make what is not there."""
    if call.subresource:
        return False
    return call.verb == "update" or (call.verb == "patch" and "apply-patch" in call.headers.get("content-type", ""))


def page_not_found() -> Response:
    return Response.text("404 page not found\n", 404)


def error_response(error: ApiError) -> Response:
    answer = Response.json(error.status(), error.code)
    retry = error.details.get("retryAfterSeconds")
    if retry:
        answer.headers["retry-after"] = str(retry)
    return answer
