"""What the names of a cluster mean: the DNS specification of Kubernetes (services, pods), answered as CoreDNS does.

Pure: what is known of services and their backends is read from the `ServiceTable` at each question.
"""

from __future__ import annotations

import ipaddress
import random
import struct
from collections.abc import Iterable
from typing import NamedTuple

from danlu.embedded.node.network import dnsmessage
from danlu.embedded.node.network.dnsmessage import Code, DnsAnswer, DnsRecord, Question, RecordType
from danlu.embedded.node.network.servicetable import Key, ServiceBackend, ServiceTable
from danlu.meta.addresses import parse_address
from danlu.meta.kind import Object

TTL = 5  # seconds; CoreDNS' own for the names of a cluster
SPECIFICATION = "1.1.0"  # of Kubernetes' DNS, said at dns-version.cluster.local
REVERSE = ".in-addr.arpa"
PROTOCOLS = ("_tcp", "_udp", "_sctp")


class Alias(NamedTuple):
    """A name that stands for another, which may be anybody's (a service of type ExternalName)."""

    target: str


class ClusterRecords:
    """`address` is the DNS server's own; `networks` hold the addresses that have names here."""

    def __init__(self, table: ServiceTable, domain: str, networks: Iterable[str]) -> None:
        self._table = table
        self._domain = domain
        self._networks = [ipaddress.ip_network(network) for network in networks]
        self.address = ""

    def answer(self, question: Question) -> DnsAnswer | Alias | None:
        """None for names that are not the cluster's."""
        name = question.name
        if name.endswith(REVERSE):
            return self._reverse(question)
        if name != self._domain and not name.endswith(f".{self._domain}"):
            return None
        labels = name[: -len(self._domain) - 1].split(".") if name != self._domain else []
        records = self._records(question, labels)
        if records is None or isinstance(records, Alias):
            return self._missing(Code.NXDOMAIN) if records is None else records
        additional: list[DnsRecord] = []
        if question.type == RecordType.SRV and labels[-1:] == ["svc"]:
            records, additional = self._services(name, labels[:-1])
        kept = [record for record in records if question.type in (record.type, RecordType.ANY)]
        return DnsAnswer(records=kept, additional=additional) if kept else self._missing(Code.NOERROR)

    def _missing(self, code: Code) -> DnsAnswer:
        """No such name (NXDOMAIN), or none of this type: the SOA says for how long that may be remembered."""
        return DnsAnswer(code, authority=[self._start_of_authority()])

    def _start_of_authority(self) -> DnsRecord:
        names = dnsmessage.pack_name(f"ns.dns.{self._domain}") + dnsmessage.pack_name(f"hostmaster.{self._domain}")
        return DnsRecord(self._domain, RecordType.SOA, TTL, names + struct.pack("!5I", 1, 7200, 1800, 86400, TTL))

    # -- names

    def _records(self, question: Question, labels: list[str]) -> list[DnsRecord] | Alias | None:
        """All that stands at a name; None where there is no such name."""
        name = question.name
        match labels:
            case []:
                server = DnsRecord(name, RecordType.NS, TTL, dnsmessage.pack_name(f"ns.dns.{self._domain}"))
                return [self._start_of_authority(), server]
            case ["svc"] | ["pod"] | ["dns"]:
                return []
            case ["dns-version"]:
                return [dnsmessage.text(name, SPECIFICATION, TTL)]
            case ["ns", "dns"]:
                return [dnsmessage.address(name, self.address, TTL)] if self.address else []
            case [namespace, "svc" | "pod"]:
                return [] if self._table.has_namespace(namespace) else None
            case [dashed, namespace, "pod"]:
                ip = parse_address(dashed.replace("-", "."))
                known = ip is not None and self._table.has_namespace(namespace)
                return [dnsmessage.address(name, str(ip), TTL)] if known else None
            case [*within, service, namespace, "svc"] if len(within) <= 2:
                return self._of_service(name, within, (namespace, service))
        return None

    def _of_service(self, name: str, within: list[str], key: Key) -> list[DnsRecord] | Alias | None:
        service = self._table.service(key)
        if service is None:
            return None
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return Alias(str(spec.get("externalName") or "").rstrip(".").lower()) if not within else None
        match within:
            case []:
                found = self._addresses(key, spec)
            case [protocol] if protocol in PROTOCOLS:
                return []
            case [port, protocol] if port.startswith("_") and protocol in PROTOCOLS:
                found = self._addresses(key, spec) if [*self._ports(spec, within)] else []
            case [hostname]:
                found = [b.address for b in self._table.backends(key) if hostname in (b.hostname, _dashed(b.address))]
            case _:
                found = []
        known = [one for one in dict.fromkeys(found) if parse_address(one) is not None]  # a slice may hold names (FQDN)
        random.shuffle(known)  # clients take the first
        return [dnsmessage.address(name, one, TTL) for one in known] or None

    def _addresses(self, key: Key, spec: Object) -> list[str]:
        address = spec.get("clusterIP")
        return [b.address for b in self._table.backends(key)] if address == "None" else [address] if address else []

    # -- SRV

    def _services(self, name: str, labels: list[str]) -> tuple[list[DnsRecord], list[DnsRecord]]:
        """Where a service's ports are: (records, addresses of the targets). All its ports where none is named."""
        *within, service, namespace = labels
        key = (namespace, service)
        found = self._table.service(key)
        if found is None or (within and len(within) != 2):
            return [], []
        spec, base = found.get("spec") or {}, f"{service}.{namespace}.svc.{self._domain}"
        targets: dict[tuple[str, int], str] = {}
        for port in self._ports(spec, within):
            if spec.get("clusterIP") == "None":
                for backend in self._table.backends(key):
                    number = backend.port(port.get("name") or "")
                    if number is not None:
                        targets[(f"{_host(backend)}.{base}", number)] = backend.address
            elif spec.get("clusterIP"):
                targets[(base, int(port["port"]))] = spec["clusterIP"]
        weight = max(1, 100 // len(targets)) if targets else 0
        records = [dnsmessage.service(name, target, port, weight, TTL) for target, port in targets]
        addresses = {target: address for (target, _), address in targets.items()}
        return records, [dnsmessage.address(target, address, TTL) for target, address in addresses.items()]

    def _ports(self, spec: Object, within: list[str]) -> Iterable[Object]:
        for port in spec.get("ports") or []:
            named = [f"_{port.get('name') or ''}", f"_{(port.get('protocol') or 'TCP').lower()}"]
            if not within or within == named:
                yield port

    # -- PTR

    def _reverse(self, question: Question) -> DnsAnswer | None:
        parts = question.name.removesuffix(REVERSE).split(".")
        ip = parse_address(".".join(reversed(parts))) if len(parts) == 4 else None
        if ip is None or not any(ip in network for network in self._networks):
            return None
        names = [f"{service}.{namespace}.svc" for namespace, service in self._table.at_address(str(ip))]
        for (namespace, service), backend in self._table.behind(str(ip)):
            names.append(f"{_host(backend)}.{service}.{namespace}.svc")
        if not names:
            return self._missing(Code.NXDOMAIN)
        if question.type not in (RecordType.PTR, RecordType.ANY):
            return self._missing(Code.NOERROR)
        packed = [dnsmessage.pack_name(f"{name}.{self._domain}") for name in names]
        return DnsAnswer(records=[DnsRecord(question.name, RecordType.PTR, TTL, data) for data in packed])


def _host(backend: ServiceBackend) -> str:
    return backend.hostname or _dashed(backend.address)


def _dashed(address: str) -> str:
    return address.replace(".", "-").replace(":", "-")
