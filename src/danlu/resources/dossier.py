"""One object with all that belongs to it, for whoever wants to read about it; and the pods of an object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from danlu import errors
from danlu.client.client import Client
from danlu.client.evidencereader import gather
from danlu.diagnose import Cause, explain
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import EVENT, POD
from danlu.resources import printedtable
from danlu.resources.printedtable import PrintedTable, Selection

INDEXES = ("training.kubeflow.org/replica-index", "replica-index")
ROLES = ("training.kubeflow.org/replica-type", "replica-type")


@dataclass(frozen=True, slots=True)
class Dossier:
    object: Object
    table: PrintedTable  # the server's columns of it, wide ones included
    pods: Sequence[Object]
    events: Sequence[Object]  # the newest first
    causes: Sequence[Cause]


async def compile_dossier(client: Client, kind: Kind, name: str, namespace: str | None) -> Dossier:
    found, table = await asyncio.gather(
        client.get(kind, name, namespace), printedtable.read(client, Selection(kind, namespace, (name,)))
    )
    found = {"apiVersion": kind.api_version, "kind": kind.kind, **found}
    evidence, events = await asyncio.gather(gather(client, found), _events(client, found))
    return Dossier(found, table, evidence.pods, events, explain(found, evidence))


async def _events(client: Client, obj: Object) -> list[Object]:
    """None where whoever asks may not read them."""
    fields = f"involvedObject.uid={obj['metadata']['uid']}"
    try:
        found = await client.list(EVENT, obj["metadata"].get("namespace"), fields=fields)
    except (errors.Forbidden, errors.NotFound):
        return []
    return sorted(found.items, key=last_seen, reverse=True)


def last_seen(event: Object) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), event["metadata"].get("creationTimestamp") or ""))


async def pods_of(client: Client, kind: Kind, name: str, namespace: str | None) -> list[Object]:
    """The pod itself, or those that the object made or selects, by rank."""
    found = await client.get(kind, name, namespace)
    if kind == POD:
        return [found]
    if selector := _selector(kind, found):
        return sorted((await client.list(POD, namespace, labels=selector)).items, key=by_rank)
    return sorted((await gather(client, {"kind": kind.kind, **found})).pods, key=by_rank)


def _selector(kind: Kind, obj: Object) -> str:
    chosen: Any = (obj.get("spec") or {}).get("selector") or {}
    labels = chosen if kind.kind == "Service" else chosen.get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in labels.items() if isinstance(value, str))


def rank(pod: Object) -> int | None:
    """Of a job's replica among all: what its program reads in $RANK, or its index where there is none."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    told = [one.get("value") for container in containers for one in container.get("env") or () if one["name"] == "RANK"]
    labels = pod["metadata"].get("labels") or {}
    text = next((value for value in (*told, *map(labels.get, INDEXES)) if value and value.isdigit()), None)
    return int(text) if text else None


def by_rank(pod: Object) -> tuple[str, int, str]:
    labels = pod["metadata"].get("labels") or {}
    role = next(filter(None, map(labels.get, ROLES)), "")
    found = rank(pod)
    return ("" if role in ("master", "chief") else role, -1 if found is None else found, pod["metadata"]["name"])
