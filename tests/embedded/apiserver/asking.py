"""Requests as a client would send them, through the whole server but without a socket; and answers to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from danlu.embedded.apiserver.request import Call, Query, StreamResponse, User
from danlu.embedded.cluster import Cluster

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
ADMIN = User("admin", "", ("system:masters", "system:authenticated"))
NAMESPACE = "/api/v1/namespaces/default"


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class Ask:
    def __init__(self, cluster: Cluster) -> None:
        self.server = cluster.server

    async def __call__(
        self, method: str, target: str, body: Any = None, content_type: str = JSON, user: User = ADMIN, **headers: str
    ) -> Answer:
        path, _, query = target.partition("?")
        data = b"" if body is None else body.encode() if isinstance(body, str) else orjson.dumps(body)
        given = {"content-type": content_type, "user-agent": "tester/1.0", **headers}
        answer = await self.server.handle(Call(self.server, method, path, Query(query), given, data, user))
        if isinstance(answer, StreamResponse):
            text = b"".join([chunk async for chunk in answer.chunks])
        else:
            text = answer.body
        try:
            return Answer(answer.status, orjson.loads(text), answer.headers)
        except orjson.JSONDecodeError:
            return Answer(answer.status, text.decode(), answer.headers)

    async def made(self, target: str, body: Any, **more: Any) -> Any:
        answer = await self("POST", target, body, **more)
        assert answer.status == 201, answer
        return answer.body


def config_map(name: str, metadata: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **(metadata or {})}, "data": data}


def definition(group: str = "example.com") -> dict[str, Any]:
    """A custom kind `Thing` with a status, a scale, a default, and a list with keys."""
    text, number = {"type": "string"}, {"type": "integer"}
    item = {"type": "object", "properties": {"name": text, "v": number}, "required": ["name"]}
    items = {
        "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    }  # fmt: skip
    spec = {"color": {**text, "default": "red"}, "replicas": number, "items": items}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}, "replicas": number}},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


def thing(name: str, metadata: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name, **(metadata or {})}, **rest}


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
