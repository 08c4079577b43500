"""Admission webhooks: programs that are asked over HTTPS about writes, and may change or refuse them.

They are the one part of a write that waits for others. `writehandler` and `deletehandler` therefore look, after the
wait, whether the object is still the one they began with.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from danlu.client.tlstrust import trusting
from danlu.embedded.apiserver.admission import Attributes
from danlu.embedded.apiserver.admission.policies import (
    AdmissionPolicyError,
    Program,
    compile_expression,
    evaluate,
    request_of,
)
from danlu.embedded.apiserver.admission.policymatcher import matches
from danlu.embedded.apiserver.mirror import Mirror
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.request import MAX_BODY_BYTES
from danlu.embedded.storage.store import Store
from danlu.errors import ApiError, BadRequest, InternalError, Invalid, from_status
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.nesting import parse_json
from danlu.meta.patch import json_patch
from danlu.meta.wellknown import MUTATING_WEBHOOKS, NAMESPACE, SERVICE, VALIDATING_WEBHOOKS

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger("danlu.apiserver.webhooks")
OWN_KINDS = frozenset({MUTATING_WEBHOOKS.resource, VALIDATING_WEBHOOKS.resource})
DEFAULT_TIMEOUT_S = 10


@dataclass(slots=True)
class Hook:
    name: str
    spec: Mapping[str, Any]
    conditions: list[tuple[str, Program]]

    @property
    def fails_closed(self) -> bool:
        return bool(self.spec.get("failurePolicy") != "Ignore")


def hooks_of(configuration: Object) -> list[Hook]:
    return [
        Hook(
            hook["name"],
            hook,
            [(one["expression"], compile_expression(one["expression"])) for one in hook.get("matchConditions") or ()],
        )
        for hook in configuration.get("webhooks") or ()
    ]


class CallFailed(Exception):
    """A webhook gave no answer that could be used."""


class Webhooks:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._mutating = Mirror(store, MUTATING_WEBHOOKS.resource, hooks_of)
        self._validating = Mirror(store, VALIDATING_WEBHOOKS.resource, hooks_of)

    def concerns(self, a: Attributes) -> bool:
        """Whether anybody will be asked: if not, nothing is awaited."""
        if a.served.key in OWN_KINDS or not (self._mutating.namespaces or self._validating.namespaces):
            return False
        if a.user.starting:
            return False
        return any(True for mirror in (self._mutating, self._validating) for _ in self._hooks(a, mirror))

    async def mutate(self, a: Attributes) -> None:
        """One after the other, each sees what the one before has made."""
        for hook in self._hooks(a, self._mutating):
            answer = await self._ask(a, hook)
            if answer.get("patch") and a.obj is not None:
                _apply(a, hook, answer)

    async def validate(self, a: Attributes) -> None:
        """All at the same time; the first refusal counts, in the order of their names."""
        asked = [self._ask(a, hook) for hook in self._hooks(a, self._validating)]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _hooks(self, a: Attributes, mirror: Mirror[list[Hook]]) -> Iterator[Hook]:
        if a.served.key in OWN_KINDS or not mirror.namespaces:
            return
        namespace = None
        if a.namespace and a.served.key != NAMESPACE.resource:
            stored = self._store.latest(NAMESPACE.resource, "", a.namespace)
            namespace = stored.obj if stored is not None else None
        for _, hooks in mirror.items():
            for hook in hooks:
                constraints = {**hook.spec, "resourceRules": hook.spec.get("rules")}
                concerned = bool(hook.spec.get("rules")) and matches(constraints, a, namespace, self._registry)
                if concerned and self._conditions_hold(a, hook):
                    yield hook

    def _conditions_hold(self, a: Attributes, hook: Hook) -> bool:
        if not hook.conditions:
            return True
        environment = {"object": a.obj, "oldObject": a.old, "request": request_of(a)}
        try:
            return all(evaluate(program, text, environment) is True for text, program in hook.conditions)
        except AdmissionPolicyError as error:
            if hook.fails_closed:
                raise a.forbidden(f"{error}") from None
            return False

    async def _ask(self, a: Attributes, hook: Hook) -> Object:
        """Its answer, {} where that is of no consequence. Raises what the client is to be told."""
        if a.dry_run and hook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(a, hook)
        except CallFailed as error:
            if hook.fails_closed:
                text = f'failed calling webhook "{hook.name}": failed to call webhook: {error}'
                raise InternalError(f"Internal error occurred: {text}") from None
            log.warning('webhook "%s" gave no answer and is passed over (failurePolicy: Ignore): %s', hook.name, error)
            return {}
        a.warnings.extend(str(text) for text in answer.get("warnings") or ())
        if not answer.get("allowed"):
            raise _denied(hook.name, answer.get("status") or {})
        return answer

    async def _call(self, a: Attributes, hook: Hook) -> Object:
        import aiohttp

        identity = str(uuid.uuid4())
        asked = {**request_of(a), "uid": identity, "object": a.obj, "oldObject": a.old}
        versions = [one for one in hook.spec.get("admissionReviewVersions") or () if one in ("v1", "v1beta1")]
        review = {"apiVersion": f"admission.k8s.io/{versions[0]}", "kind": "AdmissionReview", "request": asked}
        seconds = int(hook.spec.get("timeoutSeconds") or DEFAULT_TIMEOUT_S)
        address, shown, host, context = self._target(hook.spec.get("clientConfig") or {})
        where = f'Post "{shown}?timeout={seconds}s": '
        try:
            async with _session(seconds) as session, session.post(
                f"{address}?timeout={seconds}s", data=orjson.dumps(review), ssl=context, server_hostname=host,
                headers={"content-type": "application/json"},
            ) as response:  # fmt: skip
                body = await response.content.read(MAX_BODY_BYTES + 1)
                while len(body) <= MAX_BODY_BYTES and (more := await response.content.read(MAX_BODY_BYTES)):
                    body += more
                if len(body) > MAX_BODY_BYTES:
                    raise CallFailed(f"{where}its answer is longer than {MAX_BODY_BYTES} bytes")
                if response.status != 200:
                    raise CallFailed(f"{where}the server answered {response.status}")
        except TimeoutError:
            raise CallFailed(f"{where}context deadline exceeded") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(f"{where}{error}") from None
        return _answer(body, identity)

    def _target(self, config: Mapping[str, Any]) -> tuple[str, str, str | None, ssl.SSLContext]:
        """(the address to call, as it is shown, the name that its certificate must have, whom to trust)."""
        try:
            context = trusting(base64.b64decode(config.get("caBundle") or ""))
        except (ssl.SSLError, ValueError) as error:
            raise CallFailed(f"its caBundle cannot be read: {error}") from None
        if config.get("url"):
            return config["url"], config["url"], None, context
        wanted = config.get("service") or {}
        namespace, name, port = wanted.get("namespace", ""), wanted.get("name", ""), wanted.get("port") or 443
        host = f"{name}.{namespace}.svc"
        path = "/" + str(wanted.get("path") or "").lstrip("/")
        stored = self._store.get(SERVICE.resource, namespace, name)
        if stored is None:
            raise CallFailed(f'service "{name}" not found')
        address = (stored.obj.get("spec") or {}).get("clusterIP") or ""
        if address in ("", "None"):
            raise CallFailed(f'service "{name}" has no cluster IP')
        return f"https://{address}:{port}{path}", f"https://{host}:{port}{path}", host, context


def _session(seconds: int) -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=seconds), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    )


def _answer(body: bytes, identity: str) -> Object:
    try:
        answer = parse_json(body).get("response")
    except (ValueError, AttributeError) as error:
        raise CallFailed(f"its answer cannot be read: {error}") from None
    if not isinstance(answer, dict):
        raise CallFailed("its answer has no response")
    if answer.get("uid") != identity:
        raise CallFailed(f'expected response.uid="{identity}", got "{answer.get("uid", "")}"')
    return answer


def _denied(name: str, status: Mapping[str, Any]) -> ApiError:
    text = f'admission webhook "{name}" denied the request'
    said = status.get("message") or status.get("reason")
    code = max(int(status.get("code") or 0), 400)
    told = {**status, "message": f"{text}: {said}" if said else f"{text} without explanation", "code": code}
    return from_status(code, told)


def _apply(a: Attributes, hook: Hook, answer: Object) -> None:
    assert a.obj is not None
    try:
        patch = parse_json(base64.b64decode(answer["patch"], validate=True))
        new = json_patch(objects.copy(a.obj), patch)
    except (ValueError, BadRequest, Invalid) as error:
        text = f'webhook "{hook.name}" gave a patch that cannot be applied: {error}'
        raise InternalError(f"Internal error occurred: {text}") from None
    problem = a.served.schema().decode(new).problem
    if problem is not None:
        raise InternalError(f'Internal error occurred: webhook "{hook.name}": {problem.message}')
    a.obj.clear()
    a.obj.update(new)
    a.served.default(a.obj)
