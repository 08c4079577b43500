"""A pod's /etc/resolv.conf, as kubelet makes it of `dnsPolicy`, `dnsConfig` and what the machine has."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from danlu.embedded.node.settings import CLUSTER_DOMAIN
from danlu.meta.kind import Object

MOST_SERVERS, MOST_SEARCHES, MOST_SEARCH_LETTERS = 3, 32, 2048  # kubelet's own; what is beyond is left out
CLUSTER_OPTIONS = ("ndots:5",)


@dataclass(slots=True)
class _Resolution:
    servers: list[str] = field(default_factory=list)
    searches: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)


def resolver_file(pod: Object, cluster_dns: str, machine: Path = Path("/etc/resolv.conf")) -> str:
    """`cluster_dns` is the address of the cluster's server; "" where there is none, and the machine's do instead."""
    spec = pod["spec"]
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    found = _Resolution() if policy == "None" else _of_machine(machine)
    if cluster_dns and _uses_cluster(policy, bool(spec.get("hostNetwork"))):
        service_domain = f"svc.{CLUSTER_DOMAIN}"
        cluster = [f"{pod['metadata']['namespace']}.{service_domain}", service_domain, CLUSTER_DOMAIN]
        found = _Resolution([cluster_dns], [*cluster, *found.searches], [*CLUSTER_OPTIONS])
    own = spec.get("dnsConfig") or {}
    servers = [*dict.fromkeys([*found.servers, *(own.get("nameservers") or ())])][:MOST_SERVERS]
    searches = _fitting([*dict.fromkeys([*found.searches, *(own.get("searches") or ())])])
    options = {option.partition(":")[0]: option for option in found.options}
    for option in own.get("options") or ():
        value = option.get("value")
        options[option["name"]] = option["name"] if value is None else f"{option['name']}:{value}"
    lines = [f"search {' '.join(searches)}"] if searches else []
    lines += [f"nameserver {server}" for server in servers]
    lines += [f"options {' '.join(options.values())}"] if options else []
    return "\n".join(lines) + "\n"


def _uses_cluster(policy: str, host_network: bool) -> bool:
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not host_network)


def _of_machine(path: Path) -> _Resolution:
    found = _Resolution()
    with suppress(OSError, UnicodeDecodeError):
        for line in path.read_text().splitlines():
            word, *rest = line.split() or [""]
            if word == "nameserver":
                found.servers += rest[:1]
            elif word == "search":
                found.searches = rest  # the last line counts
            elif word == "options":
                found.options += rest
    return found


def _fitting(searches: list[str]) -> list[str]:
    kept = searches[:MOST_SEARCHES]
    while kept and len(" ".join(kept)) > MOST_SEARCH_LETTERS:
        kept.pop()
    return kept
