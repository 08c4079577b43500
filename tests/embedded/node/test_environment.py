from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.node.pods import environment
from danlu.embedded.node.pods.environment import ConfigError, expand_text
from danlu.errors import NotFound
from danlu.meta.kind import Kind, Object


class Objects:
    """Stands in for the client: objects by plural, namespace and name."""

    def __init__(self, **objects: list[Object]) -> None:
        self.objects = objects

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        for found in self.objects.get(kind.plural, []):
            meta = found["metadata"]
            if meta["name"] == name and meta.get("namespace") == namespace:
                return found
        raise NotFound.of(kind.plural, name)

    async def list(self, kind: Kind, namespace: str | None = None) -> Any:
        items = [o for o in self.objects.get(kind.plural, []) if o["metadata"].get("namespace") == namespace]
        return SimpleNamespace(items=items)


def pod(**container: Any) -> tuple[Object, Object]:
    made = {"name": "main", **container}
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u1", "labels": {"b": 'x"y', "a": "1"}},
        "spec": {"containers": [made], "nodeName": "node-1", "serviceAccountName": "default"},
        "status": {"podIP": "127.0.0.1", "hostIP": "127.0.0.1"},
    }, made


async def build(objects: Objects, **container: Any) -> dict[str, str]:
    made, first = pod(**container)
    context: Any = SimpleNamespace(
        client=objects, node_name="node-1", api_address=lambda: None, addressed_services=None
    )
    return await environment.build(made, first, context)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NONE)", "$(NONE)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$()", "$()"),
        ("$(A)$", "1$"),
        ("$x$(A)", "$x1"),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expand_text(text, {"A": "1", "B": "2"}) == expected


async def test_env_overrides_env_from_and_refers_to_earlier() -> None:
    objects = Objects(
        configmaps=[{"metadata": {"name": "c", "namespace": "ns"}, "data": {"A": "from-map", "K": "v"}}],
        secrets=[{"metadata": {"name": "s", "namespace": "ns"}, "data": {"k": base64.b64encode(b"hush").decode()}}],
    )
    env = await build(
        objects,
        envFrom=[{"configMapRef": {"name": "c"}}, {"prefix": "S_", "secretRef": {"name": "s"}}],
        env=[
            {"name": "A", "value": "own"},
            {"name": "B", "value": "$(A)-$(S_k)-$(LATER)"},
            {"name": "LATER", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "K"}}},
            {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "K", "optional": True}}},
            {"name": "EMPTY"},
        ],
    )
    assert env == {"A": "own", "K": "v", "S_k": "hush", "B": "own-hush-$(LATER)", "LATER": "v", "EMPTY": ""}


async def test_missing_sources_read_as_kubelet_says_it() -> None:
    objects = Objects(secrets=[{"metadata": {"name": "wandb-secret", "namespace": "ns"}}])
    with pytest.raises(ConfigError, match=r'^configmap "x" not found$'):
        await build(objects, envFrom=[{"configMapRef": {"name": "x"}}])
    ref = {"secretKeyRef": {"name": "wandb-secret", "key": "api-key"}}
    with pytest.raises(ConfigError, match=r"^couldn't find key api-key in Secret ns/wandb-secret$"):
        await build(objects, env=[{"name": "K", "valueFrom": ref}])


async def test_fields_and_resources() -> None:
    node = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "8", "memory": "1Gi"}}}

    def field(path: str) -> Object:
        return {"fieldRef": {"fieldPath": path}}

    env = await build(
        Objects(nodes=[node]),
        resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "100Mi"}},
        env=[
            {"name": "NAME", "valueFrom": field("metadata.name")},
            {"name": "LABEL", "valueFrom": field("metadata.labels['a']")},
            {"name": "LABELS", "valueFrom": field("metadata.labels")},
            {"name": "IPS", "valueFrom": field("status.podIPs")},
            {"name": "NODE", "valueFrom": field("spec.nodeName")},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MILLI", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "ASKED", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
        ],
    )
    assert env == {
        "NAME": "p",
        "LABEL": "1",
        "LABELS": 'a="1"\nb="x\\"y"',
        "IPS": "127.0.0.1",
        "NODE": "node-1",
        "CPU": "2",
        "MILLI": "1500",
        "MEMORY": "1024",
        "ASKED": "100",
    }


async def test_service_links() -> None:
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    objects = Objects(
        services=[
            {"metadata": {"name": "my-web", "namespace": "ns"}, "spec": {"clusterIP": "127.96.0.9", "ports": ports}},
            {"metadata": {"name": "headless", "namespace": "ns"}, "spec": {"clusterIP": "None", "ports": ports}},
            {
                "metadata": {"name": "kubernetes", "namespace": "default"},
                "spec": {"clusterIP": "127.96.0.1", "ports": [{"name": "https", "port": 443}]},
            },
        ]
    )
    env = await build(objects)
    assert env["KUBERNETES_SERVICE_HOST"] == "127.96.0.1"
    assert env["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"
    assert env["MY_WEB_SERVICE_PORT_HTTP"] == "80"
    assert env["MY_WEB_PORT_80_TCP"] == "tcp://127.96.0.9:80"
    assert not any(name.startswith("HEADLESS") for name in env)


def test_a_reference_that_is_never_closed_costs_one_look() -> None:
    """Each `$(` used to be followed to the end of the text: half a million of them took hours."""
    text = "$(" * 60_000
    assert expand_text(text, {}) == text


def test_what_would_be_too_long_is_not_built() -> None:
    with pytest.raises(ConfigError, match="word 7 is longer than 128 KiB"):
        expand_text("$(A)" * 1_000_000, {"A": "x" * 100_000}, what="word 7")
