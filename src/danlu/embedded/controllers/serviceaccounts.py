"""What every namespace starts with, and tokens for the old kind of service account secret.

- ServiceAccount `default`, without which no pod can be made there.
- ConfigMap `kube-root-ca.crt`, which every pod mounts to trust the API server.
- A Secret of type `kubernetes.io/service-account-token` gets its token, and goes when its account goes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable

from danlu import errors
from danlu.client.informer import Informer
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Factory, Manager
from danlu.runtime.reconcile import Outcome, Request

DEFAULT = "default"
ROOT_CA = "kube-root-ca.crt"
ROOT_CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)
TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
CLOCKS_DIFFER_S = 60.0  # as the API server allows
LONGEST_S = 1 << 32  # such a token ends with its secret, not with time


class Authority:
    """The certificate that pods trust, and who publishes it: they are told when it is replaced."""

    def __init__(self, pem: str) -> None:
        self.pem = pem
        self._publishers: list[Callable[[], None]] = []

    def publish(self, publisher: Callable[[], None]) -> None:
        self._publishers.append(publisher)

    def replace(self, pem: str) -> None:
        if pem != self.pem:
            self.pem = pem
            for publisher in self._publishers:
                publisher()


def factories(authority: Authority) -> tuple[Factory, ...]:
    return (
        make_accounts,
        lambda manager: make_root_ca(manager, authority),
        lambda manager: make_tokens(manager, authority),
    )


def make_accounts(manager: Manager) -> Controller:
    namespaces, client = manager.informer(NAMESPACE), manager.client
    accounts = manager.informer(SERVICE_ACCOUNT)

    async def reconcile(request: Request) -> Outcome | None:
        if _is_active(namespaces.get(None, request.name)) and accounts.get(request.name, DEFAULT) is None:
            body = {"metadata": {"name": DEFAULT, "namespace": request.name}}
            await _create(client.create(SERVICE_ACCOUNT, body))
        return None

    controller = Controller("service accounts", reconcile)
    controller.watches(namespaces)
    controller.watches(accounts, _namespace_of(DEFAULT))
    return controller


def make_root_ca(manager: Manager, authority: Authority) -> Controller:
    namespaces, client = manager.informer(NAMESPACE), manager.client
    published = manager.informer(CONFIG_MAP, fields=f"metadata.name={ROOT_CA}")

    async def reconcile(request: Request) -> Outcome | None:
        data = {"ca.crt": authority.pem}
        if not _is_active(namespaces.get(None, request.name)):
            return None
        found = published.get(request.name, ROOT_CA)
        if found is None:
            meta = {
                "name": ROOT_CA,
                "namespace": request.name,
                "annotations": {"kubernetes.io/description": ROOT_CA_DESCRIPTION},
            }
            await _create(client.create(CONFIG_MAP, {"metadata": meta, "data": data}))
        elif found.get("data") != data:
            await client.update(CONFIG_MAP, {**found, "data": data})
        return None

    controller = Controller("root ca", reconcile)
    authority.publish(lambda: _again(controller, namespaces))
    controller.watches(namespaces)
    controller.watches(published, _namespace_of(ROOT_CA))
    return controller


def make_tokens(manager: Manager, authority: Authority) -> Controller:
    tokens = TokenController(manager, authority)
    controller = Controller("service account tokens", tokens.reconcile)
    authority.publish(lambda: _again(controller, tokens.secrets))
    controller.watches(tokens.secrets)
    controller.watches(
        tokens.accounts,
        lambda account: [
            Request(objects.namespace(secret), objects.name(secret))
            for secret in tokens.secrets.list(objects.namespace(account))
            if objects.annotations_of(secret).get(ACCOUNT_NAME) == objects.name(account)
        ],
    )
    return controller


class TokenController:
    def __init__(self, manager: Manager, authority: Authority) -> None:
        self.client = manager.client
        self.clock = manager.clock
        self.authority = authority
        self.accounts = manager.informer(SERVICE_ACCOUNT)
        self.secrets = manager.informer(SECRET, fields=f"type={TOKEN_TYPE}")

    async def reconcile(self, request: Request) -> Outcome | None:
        secret = self.secrets.get(request.namespace, request.name)
        if secret is None or objects.is_deleting(secret):
            return None
        notes = objects.annotations_of(secret)
        account = await self._account(request.namespace, notes.get(ACCOUNT_NAME, ""))
        if account is None or notes.get(ACCOUNT_UID) not in (None, "", objects.uid(account)):
            await self._delete(secret)
            return None
        data = dict(secret.get("data") or {})
        wanted = {"ca.crt": _encoded(self.authority.pem), "namespace": _encoded(request.namespace)}
        has_token = _holds(data.get("token"), self.clock().timestamp())
        if has_token and all(data.get(name) == value for name, value in wanted.items()) and notes.get(ACCOUNT_UID):
            return None
        if not has_token:
            wanted["token"] = _encoded(await self._token(account, secret))
        body = {
            "metadata": {
                "resourceVersion": secret["metadata"]["resourceVersion"],
                "annotations": {ACCOUNT_UID: objects.uid(account)},
            },
            "data": wanted,
        }
        try:
            await self.client.patch(SECRET, request.name, request.namespace, body)
        except errors.NotFound:
            return None
        return None

    async def _account(self, namespace: str, name: str) -> Object | None:
        found = self.accounts.get(namespace, name)
        if found is None and name:
            try:
                found = await self.client.get(SERVICE_ACCOUNT, name, namespace)
            except errors.NotFound:
                return None
        return found

    async def _token(self, account: Object, secret: Object) -> str:
        bound = {"apiVersion": "v1", "kind": "Secret", "name": objects.name(secret), "uid": objects.uid(secret)}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LONGEST_S, "boundObjectRef": bound},
        }
        answer = await self.client.create_subresource(
            SERVICE_ACCOUNT, objects.name(account), objects.namespace(account), "token", body
        )
        return str(answer["status"]["token"])

    async def _delete(self, secret: Object) -> None:
        try:
            await self.client.delete(SECRET, objects.name(secret), objects.namespace(secret), uid=objects.uid(secret))
        except errors.NotFound:
            return


def _holds(encoded: str | None, now: float) -> bool:
    """There is a token, and it does not begin in a future that a wrong clock took for now. They hardly ever end."""
    if not encoded:
        return False
    try:
        body = base64.b64decode(encoded).split(b".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
        return float(claims.get("nbf", 0)) <= now + CLOCKS_DIFFER_S
    except (ValueError, IndexError, TypeError, AttributeError):
        return True  # not one of ours: somebody's own business


def _again(controller: Controller, informer: Informer) -> None:
    for obj in informer.list():
        controller.queue.add(Request(objects.namespace(obj), objects.name(obj)))


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _is_active(namespace: Object | None) -> bool:
    return namespace is not None and not objects.is_deleting(namespace)


def _namespace_of(name: str) -> Callable[[Object], list[Request]]:
    return lambda obj: [Request("", objects.namespace(obj))] if objects.name(obj) == name else []


async def _create(made: Awaitable[Object]) -> None:
    try:
        await made
    except (errors.AlreadyExists, errors.Forbidden, errors.NotFound):
        return  # there already, or its namespace is leaving
