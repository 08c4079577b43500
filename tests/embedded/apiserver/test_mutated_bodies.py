"""Sound objects, damaged at random (with fixed seeds) and sent by every way of writing: never a 500."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from danlu.embedded.apiserver.request import Call, Query, User
from danlu.embedded.cluster import Cluster

POD_SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80}},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["a"],
            "x-kubernetes-validations": [{"rule": "self.n <= 10", "message": "at most ten"}],
            "properties": {
                "a": {"type": "string", "pattern": "^a+$"},
                "n": {"type": "integer", "minimum": 1, "default": 1},
                "l": {
                    "type": "array",
                    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": SCHEMA},
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
    "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [VERSION],
    },
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TARGETS: list[tuple[str, dict[str, Any]]] = [
    (DEFINITIONS, DEFINITION),
    (
        "/apis/example.com/v1/namespaces/default/things",
        {
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "t"},
            "spec": {"a": "aa", "l": [{"k": "x"}]},
        },
    ),
    (
        "/api/v1/namespaces/default/pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": POD_SPEC},
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC},
            },
        },
    ),
    (
        "/api/v1/namespaces/default/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s"},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "x"}]},
        },
    ),
]
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, 2**40, 2**63, "", "x", "1Gi", "*", "a" * 300, [], {}, [None], {"": None}, [[]], "\0", "..",
    {"a": {"b": [1]}}, ["a", "a"], {"$ref": "#"}, [{"rule": "1+"}], [{"type": "object"}], "object", "array", "(",
]  # fmt: skip
NAMES = ("properties", "items", "type", "spec", "metadata", "additionalProperties", "default", "anyOf", "not", "zz")
WAYS = (
    ("POST", "", "application/json", ""),
    ("POST", "", "application/json", "dryRun=All"),
    ("PUT", "/NAME", "application/json", ""),
    ("PATCH", "/NAME", "application/merge-patch+json", ""),
    ("PATCH", "/NAME", "application/strategic-merge-patch+json", ""),
    ("PATCH", "/NAME", "application/apply-patch+yaml", "fieldManager=x&force=true"),
    ("PATCH", "/NAME/status", "application/merge-patch+json", ""),
    ("PATCH", "/NAME/scale", "application/merge-patch+json", ""),
)
ACCEPTS = ("application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield from places(child, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def damaged(chance: random.Random, obj: dict[str, Any]) -> dict[str, Any]:
    obj = copy.deepcopy(obj)
    known = list(places(obj))
    *way, last = chance.choice(known[1:])
    inside = at(obj, tuple(way))
    what = chance.random()
    if what < 0.6:
        inside[last] = copy.deepcopy(chance.choice(JUNK))
    elif what < 0.75:
        del inside[last]
    elif isinstance(inside, dict):
        inside[chance.choice(NAMES)] = copy.deepcopy(at(obj, chance.choice(known)))
    return obj


@pytest.mark.parametrize("seed", range(4))
async def test_damaged_objects_never_break_the_server(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    user = User("fuzz", "", ("system:masters",))

    async def status(method: str, path: str, body: Any, content_type: str = "application/json", query: str = "") -> int:
        headers = {"content-type": content_type, "accept": chance.choice(ACCEPTS)}
        call = Call(cluster.server, method, path, Query(query), headers, orjson.dumps(body), user)
        return (await cluster.server.handle(call)).status

    for path, sound in TARGETS:
        assert await status("POST", path, sound) == 201, path
    for number in range(400):
        path, sound = chance.choice(TARGETS)
        method, below, content_type, query = chance.choice(WAYS)
        body = damaged(chance, sound)
        if method == "POST" and isinstance(body.get("metadata"), dict) and path != DEFINITIONS:
            body["metadata"]["name"] = f"n{number}"
        answer = await status(
            method, path + below.replace("NAME", sound["metadata"]["name"]), body, content_type, query
        )
        assert answer < 500, (method, path, content_type, body)
        assert await status("GET", path, None) == 200, path
