"""The queue that is there from the start, so that a job which names `default` runs: no quota, open to all."""

from __future__ import annotations

import contextlib

from danlu.client.client import Client
from danlu.errors import AlreadyExists
from danlu.kinds._gang.markers import DEFAULT_QUEUE, QUEUE, SYSTEM_NAMESPACE
from danlu.meta.kind import Object
from danlu.meta.wellknown import NAMESPACE


def wanted() -> Object:
    return {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": DEFAULT_QUEUE, "namespace": SYSTEM_NAMESPACE},
        "spec": {"namespaceSelector": {}},
    }


async def ensure(client: Client) -> None:
    """Made once; what an administrator changes in it later stays."""
    namespace = {"metadata": {"name": SYSTEM_NAMESPACE}}
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACE, namespace)
    with contextlib.suppress(AlreadyExists):
        await client.create(QUEUE, wanted(), SYSTEM_NAMESPACE)
