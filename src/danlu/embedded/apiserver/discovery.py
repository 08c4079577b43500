"""Which kinds there are, as clients ask for it: /api, /apis, one document for each group version, and all in one.

Every document is made from the registry and kept until the registry changes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Any

import orjson

from danlu.embedded.apiserver.negotiation import MEDIA_TYPES, Wanted, encode, parse_accept
from danlu.embedded.apiserver.registry import MadeOfKinds, Registry
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.errors import MethodNotAllowed, NotAcceptable
from danlu.meta.kind import Kind, Object

# The order of the built-in groups, as Kubernetes ranks them; custom ones come after, by name.
GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)
_SCALE = Kind("autoscaling", "v1", "Scale", "scales")
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", re.ASCII)
_STAGES = {None: 2, "beta": 1, "alpha": 0}


def version_rank(version: str) -> tuple[Any, ...]:
    """Sorts v10, v2, v1, v1beta2, v1alpha1, then all other names by the alphabet."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    return (0, -_STAGES[found[2]], -int(found[1]), -int(found[3] or 0), version)


def group_rank(group: str) -> tuple[int, str]:
    return (GROUP_ORDER.index(group), "") if group in GROUP_ORDER else (len(GROUP_ORDER), group)


def subresources_of(served: ServedKind) -> list[tuple[str, Kind, tuple[str, ...]]]:
    """(name, the kind exchanged there, verbs), by name."""
    found: list[tuple[str, Kind, tuple[str, ...]]] = []
    if served.has_status:
        found.append(("status", served.kind, ("get", "patch", "update")))
    found += [(name, served.kind, ("get", "patch", "update")) for name in served.parts]
    if served.scale is not None:
        found.append(("scale", _SCALE, ("get", "patch", "update")))
    found += [(name, sub.kind, tuple(sorted(sub.verbs))) for name, sub in served.subresources.items()]
    return sorted(found, key=lambda one: one[0])


class DiscoveryDocuments:
    """All discovery documents of one state of the registry."""

    def __init__(self, registry: Registry) -> None:
        self.groups: dict[str, dict[str, list[ServedKind]]] = {}
        for served in sorted(registry.all(), key=lambda one: one.kind.plural):
            versions = self.groups.setdefault(served.kind.group, {})
            versions.setdefault(served.kind.version, []).append(served)
        self.groups = {
            group: {version: versions[version] for version in sorted(versions, key=version_rank)}
            for group, versions in sorted(self.groups.items(), key=lambda item: group_rank(item[0]))
        }
        self._aggregated: dict[tuple[bool, str], tuple[bytes, str]] = {}

    def document(self, path: str, host: str) -> Object | None:
        parts = path.strip("/").split("/")
        if parts == ["api"]:
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
        if parts == ["apis"]:
            groups = [self._group(group) for group in self.groups if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in self.groups and parts[1]:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        group, version = ("", parts[-1]) if parts[0] == "api" else (parts[1], parts[-1])
        if len(parts) == (2 if parts[0] == "api" else 3) and version in self.groups.get(group, {}):
            return self._resources(group, version)
        return None

    def _group(self, group: str) -> Object:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.groups[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Object:
        listed: list[Object] = []
        for served in self.groups[group][version]:
            kind = served.kind
            entry = _named(kind.plural, kind.singular_name, kind, kind, served.verbs)
            if kind.short_names:
                entry["shortNames"] = list(kind.short_names)
            if kind.categories:
                entry["categories"] = list(kind.categories)
            if served.answer is None and served.computed is None:
                entry["storageVersionHash"] = storage_version_hash(kind)
            listed.append(entry)
            for name, exchanged, verbs in subresources_of(served):
                listed.append(_named(f"{kind.plural}/{name}", "", kind, exchanged, verbs))
        document: Object = {"kind": "APIResourceList"}
        if group:
            document["apiVersion"] = "v1"
        return {
            **document,
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": sorted(listed, key=lambda entry: str(entry["name"])),
        }

    def aggregated(self, *, core: bool, version: str) -> tuple[bytes, str]:
        """The document and its ETag."""
        ready = self._aggregated.get((core, version))
        if ready is None:
            items = [self._aggregated_group(group) for group in self.groups if (group == "") is core]
            body = orjson.dumps(
                {
                    "kind": "APIGroupDiscoveryList",
                    "apiVersion": f"apidiscovery.k8s.io/{version}",
                    "metadata": {},
                    "items": items,
                }
            )
            ready = self._aggregated[core, version] = (body, f'"{hashlib.sha512(body).hexdigest().upper()}"')
        return ready

    def _aggregated_group(self, group: str) -> Object:
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(served) for served in kinds],
                "freshness": "Current",
            }
            for version, kinds in self.groups[group].items()
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}


def _named(name: str, singular: str, owner: Kind, exchanged: Kind, verbs: Iterable[str]) -> Object:
    entry: Object = {"name": name, "singularName": singular, "namespaced": owner.namespaced}
    if (exchanged.group, exchanged.version) != (owner.group, owner.version):
        entry["group"], entry["version"] = exchanged.group, exchanged.version
    return {**entry, "kind": exchanged.kind, "verbs": sorted(verbs)}


def _aggregated_resource(served: ServedKind) -> Object:
    kind = served.kind
    entry: Object = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular_name,
        "verbs": sorted(served.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    below = [
        {
            "subresource": name,
            "responseKind": {"group": exchanged.group, "version": exchanged.version, "kind": exchanged.kind},
            "verbs": list(verbs),
        }
        for name, exchanged, verbs in subresources_of(served)
    ]
    if below:
        entry["subresources"] = below
    return entry


def storage_version_hash(kind: Kind) -> str:
    text = f"{kind.group}/{kind.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


documents = MadeOfKinds(DiscoveryDocuments)


def paths(registry: Registry) -> list[str]:
    """Every discovery document's path, for the list at `/`."""
    found = ["/api", "/apis"]
    for group, versions in documents(registry).groups.items():
        found += [f"/apis/{group}"] if group else []
        found += [f"/apis/{group}/{version}" if group else f"/api/{version}" for version in versions]
    return found


def answer(call: Call) -> Response:
    """GET on /api, /apis and below, as far as group versions."""
    current = documents(call.server.registry)
    path = call.target.path.rstrip("/")
    document = current.document(path, call.headers.get("host", "127.0.0.1"))
    if document is None:
        return Response.text("404 page not found\n", 404)
    if call.method not in ("GET", "HEAD"):
        raise MethodNotAllowed()
    want = parse_accept(call.headers.get("accept", ""))
    if want.kind == "discovery" and path in ("/api", "/apis"):
        return _aggregated_answer(call, current, want, core=path == "/api")
    if want.kind != "json":
        want = _without_conversion(call.headers.get("accept", ""))
    return Response(200, encode(document, want), want.content_type)


def _without_conversion(accept: str) -> Wanted:
    """These documents have one form; a client that names another first is answered with its next choice."""
    rest = ",".join(clause for clause in accept.split(",") if "as=" not in clause)
    if not rest:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(MEDIA_TYPES)}")
    return parse_accept(rest)


def _aggregated_answer(call: Call, current: DiscoveryDocuments, want: Wanted, *, core: bool) -> Response:
    body, tag = current.aggregated(core=core, version=want.version)
    headers = {"etag": tag, "vary": "Accept", "cache-control": "public"}
    if call.headers.get("if-none-match") == tag:
        return Response(304, b"", headers=headers)
    form = f"{want.content_type};g=apidiscovery.k8s.io;v={want.version};as=APIGroupDiscoveryList"
    if want.encoding != "json":
        body = encode(orjson.loads(body), want)
    return Response(200, body, form, headers)
