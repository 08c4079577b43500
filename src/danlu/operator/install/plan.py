"""What an installation would change, told by the server itself: each object is applied as a dry run and compared."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
import yaml

from danlu import errors
from danlu.client.client import Client
from danlu.kinds.project.reconcile import NETWORK_POLICY
from danlu.kinds.registry import MANAGER
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
from danlu.operator.install.manifests import InstallPart

MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = "danlu-install"
KINDS = (
    NAMESPACE, CUSTOM_RESOURCE_DEFINITION, CLUSTER_ROLE, SERVICE_ACCOUNT, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING,
    CONFIG_MAP, SECRET, SERVICE, NETWORK_POLICY, DEPLOYMENT, DAEMON_SET,
)  # fmt: skip
BY_NAME = {(kind.api_version, kind.kind): kind for kind in KINDS}
# They outlive an installation: without them nobody could see the jobs that are kept.
KEPT_KINDS = (CUSTOM_RESOURCE_DEFINITION, NAMESPACE)
KEPT_ROLES = ("danlu-view", "danlu-edit")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WIDTH = 160
LONGEST_WORD = 40
SERVERS_OWN = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


class Refused(Exception):
    """The server would not take an object; the message says which and why."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    action: str  # "create", "change", "delete", "same"
    kind: Kind
    object: Object  # as wanted; as it is, for "delete"
    diff: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        namespace: str | None = self.object["metadata"].get("namespace")
        return namespace

    @property
    def title(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.kind} {place}{self.name}"


@dataclass(frozen=True, slots=True)
class InstallPlan:
    changes: list[PlannedChange]
    left_out: list[str] = field(default_factory=list)  # what this server does not serve, in words

    @property
    def wanted(self) -> list[PlannedChange]:
        return [change for change in self.changes if change.action != "same"]


def kind_of(obj: Object) -> Kind:
    return BY_NAME[obj["apiVersion"], obj["kind"]]


def is_kept(obj: Object) -> bool:
    return kind_of(obj) in KEPT_KINDS or obj["metadata"]["name"] in KEPT_ROLES


def marked(obj: Object) -> Object:
    """What may be taken away again says so."""
    if is_kept(obj):
        return obj
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), MANAGED_BY: OURS}}}


async def make(client: Client, parts: Sequence[InstallPart], *, prune: bool = True) -> InstallPlan:
    objects = [marked(part.object) for part in parts]
    unserved = {kind for kind in {kind_of(one) for one in objects} if not await is_served(client, kind)}
    absent = {
        one["metadata"]["name"]
        for one in objects
        if kind_of(one) == NAMESPACE and await read(client, NAMESPACE, one["metadata"]["name"]) is None
    }
    applied = [one for one in objects if kind_of(one) not in unserved]
    changes = list(await asyncio.gather(*(_change(client, one, absent) for one in applied)))
    if prune:
        changes += await _no_longer_wanted(client, applied)
    left_out = [f"{kind.kind} objects are left out: this server has no {kind.resource}" for kind in unserved]
    return InstallPlan(changes, left_out)


async def is_served(client: Client, kind: Kind) -> bool:
    try:
        answer = await client.request("GET", kind.path().rpartition("/")[0])
    except errors.NotFound:
        return False
    listed = orjson.loads(answer.body) if isinstance(answer.body, bytes) else {}
    return any(one["name"] == kind.plural for one in listed.get("resources") or ())


async def read(client: Client, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
    try:
        return await client.get(kind, name, namespace)
    except errors.NotFound:
        return None


async def apply(client: Client, change: PlannedChange, *, dry_run: bool = False) -> Object:
    return await client.patch(
        change.kind, change.name, change.namespace, change.object,
        type="apply", manager=MANAGER, force=True, dry_run=dry_run,
    )  # fmt: skip


async def _change(client: Client, wanted: Object, absent: set[str]) -> PlannedChange:
    kind, namespace = kind_of(wanted), wanted["metadata"].get("namespace")
    new = PlannedChange("create", kind, wanted)
    live = await read(client, kind, new.name, namespace)
    if live is None and namespace in absent:
        return new  # the server would refuse even to try
    try:
        result = await apply(client, new, dry_run=True)
    except errors.NotFound:  # a binding whose role is not there yet
        return new
    except (errors.Invalid, errors.Forbidden, errors.BadRequest) as error:
        why = error.message.partition("\n")[0].rstrip(":")  # after it comes a list of all rights that are lacking
        raise Refused(f"{new.title} would be refused: {why}") from error
    if live is None:
        return new
    before, after = _shown(live), _shown(result)
    if before == after:
        return PlannedChange("same", kind, wanted)
    return PlannedChange(
        "change", kind, wanted, tuple(difflib.unified_diff(before, after, "now", "then", n=2, lineterm=""))
    )


async def _no_longer_wanted(client: Client, wanted: Sequence[Object]) -> list[PlannedChange]:
    names = {_identity(one) for one in wanted}
    return [
        PlannedChange("delete", kind_of(one), one)
        for one in await installed(client)
        if _identity(one) not in names and not one["metadata"].get("deletionTimestamp")
    ]


async def installed(client: Client) -> list[Object]:
    """All that an earlier installation made and that may be taken away."""
    found = await asyncio.gather(*(_labelled(client, kind) for kind in KINDS if kind not in KEPT_KINDS))
    return [one for part in found for one in part]


async def _labelled(client: Client, kind: Kind) -> list[Object]:
    try:
        return (await client.list(kind, labels=f"{MANAGED_BY}={OURS}")).items
    except errors.NotFound:  # not served
        return []


def _identity(obj: Object) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _shown(obj: Object) -> list[str]:
    """What people have written, without what the server adds to every object."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in SERVERS_OWN}
    if LAST_APPLIED in (meta.get("annotations") or {}):
        meta["annotations"] = {key: value for key, value in meta["annotations"].items() if key != LAST_APPLIED}
    kept = {key: value for key, value in obj.items() if key != "status"}
    if obj["kind"] == SECRET.kind:  # that it changes is to be seen, what it says is not
        kept["data"] = {key: _fingerprint(value) for key, value in (obj.get("data") or {}).items()}
    return yaml.dump({**kept, "metadata": meta}, Dumper=_Short, width=WIDTH).splitlines()


def _fingerprint(text: str) -> str:
    return f"(hidden, {hashlib.sha256(text.encode()).hexdigest()[:8]})"


class _Short(yaml.CSafeDumper):
    """Lists of words on one line: a role's rules are short then, and a difference is readable."""


def _list(dumper: yaml.CSafeDumper, value: list[object]) -> yaml.Node:
    words = all(isinstance(one, str) and len(one) < LONGEST_WORD for one in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=words)


_Short.add_representer(list, _list)
