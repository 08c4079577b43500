"""Who attacks: an ordinary person of one project, with a token of their own, over the real socket."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from tests.embedded.conftest import client, cluster, kubectl, settings

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.meta.wellknown import NAMESPACE, ROLE, ROLE_BINDING, SERVICE_ACCOUNT

__all__ = ["client", "cluster", "kubectl", "settings"]

EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
RBAC = "rbac.authorization.k8s.io"


@dataclass(slots=True)
class Person:
    """Somebody with a bearer token; `request` is what curl would do."""

    name: str
    token: str
    session: aiohttp.ClientSession
    url: str

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        """(status, decoded body or text). A body of bytes or text is sent as it is."""
        data = body if body is None or isinstance(body, str | bytes) else orjson.dumps(body)
        sent = {"authorization": f"Bearer {self.token}", "content-type": content_type, **headers}
        async with self.session.request(method, self.url + path, data=data, headers=sent) as answer:
            text = await answer.read()
        try:
            return answer.status, orjson.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")


NewPerson = Callable[..., Awaitable[Person]]


@pytest.fixture
async def new_person(cluster: Cluster) -> AsyncIterator[NewPerson]:
    """`await new_person("mallory", namespace="a", rules=[…])`: by default all rights in there, none outside."""
    admin = cluster.client
    context = ssl.create_default_context(cafile=str(cluster.directory.certificates / "ca.crt"))
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context), timeout=aiohttp.ClientTimeout(total=60)
    )

    async def make(name: str = "mallory", namespace: str = "a", rules: list[dict[str, Any]] | None = None) -> Person:
        if await _missing(admin, namespace):
            await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
        await admin.create(SERVICE_ACCOUNT, account)
        await _bind(admin, name, namespace, EVERYTHING if rules is None else rules)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = await admin.transport.request(
            "POST", path, [], {"content-type": "application/json"}, orjson.dumps(asked)
        )
        assert isinstance(answer.body, bytes)
        token = orjson.loads(answer.body)["status"]["token"]
        return Person(f"system:serviceaccount:{namespace}:{name}", token, session, cluster.url)

    yield make
    await session.close()


async def _missing(admin: Client, namespace: str) -> bool:
    return all(found["metadata"]["name"] != namespace for found in (await admin.list(NAMESPACE)).items)


async def _bind(admin: Client, name: str, namespace: str, rules: list[dict[str, Any]]) -> None:
    meta = {"name": name, "namespace": namespace}
    await admin.create(ROLE, {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": rules})
    await admin.create(
        ROLE_BINDING,
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    )
