"""Cluster IPs and node ports: who has which, and which one is next.

What is in use is read from the stored Services once and then followed with every write that is submitted, so it can
never disagree with the store. Admission runs without awaiting between the choice made here and the submit that records
it; so a choice needs no reservation, and a write that is refused later leaves nothing to undo.

The range lies in 127.0.0.0/8 because pods share the host's network: every address there answers on this machine and
on no other.
"""

from __future__ import annotations

import ipaddress
import logging
import zlib
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.embedded.clusteraddresses import CLUSTER_RANGE, is_own
from danlu.errors import InternalError
from danlu.meta.addresses import address_errors, family_of, parse_address
from danlu.meta.fields import FieldError, duplicate, invalid, invalid_error, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import IP_ADDRESS, SERVICE

if TYPE_CHECKING:
    from danlu.embedded.storage import Store, Stored
    from danlu.embedded.storage.watchcache import Change

log = logging.getLogger(__name__)

NODE_PORTS = range(30000, 32768)
# The foot of each range is left to those who ask for a certain one, as Kubernetes does.
RESERVED_ADDRESSES = 256
RESERVED_PORTS = 86

NONE = "None"
SINGLE, PREFER_DUAL, REQUIRE_DUAL = "SingleStack", "PreferDualStack", "RequireDualStack"
FAMILIES = ("IPv4", "IPv6")
FAMILY_POLICIES = (PREFER_DUAL, REQUIRE_DUAL, SINGLE)

Owner = tuple[str, str]  # namespace, name
Item = TypeVar("Item", bound=Hashable)


def is_headless(spec: Object) -> bool:
    return bool(spec.get("clusterIPs") == [NONE])


class Pool(Generic[Item]):
    """Which items of a range are taken, and by whom."""

    def __init__(self) -> None:
        self._owners: dict[Item, Owner] = {}

    def is_free(self, item: Item, owner: Owner) -> bool:
        return self._owners.get(item, owner) == owner

    def take(self, items: Iterable[Item], owner: Owner) -> None:
        for item in items:
            self._owners[item] = owner

    def release(self, items: Iterable[Item], owner: Owner) -> None:
        for item in items:
            if self._owners.get(item) == owner:
                del self._owners[item]

    def __contains__(self, item: Item) -> bool:
        return item in self._owners


class ServiceAddresses(Handler):
    """Fills in clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy and node ports of Services."""

    resources = frozenset({SERVICE.resource})

    def __init__(
        self, store: Store, cluster_range: str = CLUSTER_RANGE, node_ports: range = NODE_PORTS, salt: str = ""
    ) -> None:
        """`salt` tells clusters on one machine apart, so that services of one name do not want one address."""
        self._salt = salt
        self._range = ipaddress.IPv4Network(cluster_range)
        self._node_ports = node_ports
        self._addresses: Pool[str] = Pool()
        self._ports: Pool[int] = Pool()
        self._reserved = Mirror(store, IP_ADDRESS.resource, lambda address: not is_own(address))
        store.load_each(SERVICE.resource, self._load)
        store.observe(self._follow, SERVICE.resource)

    # -- what is taken

    def _load(self, stored: Stored) -> None:
        self._record((stored.namespace, stored.name), {}, stored.obj.get("spec") or {})

    def _follow(self, change: Change) -> None:
        before = (change.previous.obj.get("spec") or {}) if change.previous is not None else {}
        after = (change.stored.obj.get("spec") or {}) if change.type != "DELETED" else {}
        self._record((change.stored.namespace, change.stored.name), before, after)

    def _record(self, owner: Owner, before: Object, after: Object) -> None:
        self._addresses.release(_addresses_of(before), owner)
        self._ports.release(_node_ports_of(before), owner)
        self._addresses.take(_addresses_of(after), owner)
        self._ports.take(_node_ports_of(after), owner)

    # -- admission

    def mutate(self, a: Attributes) -> None:
        if a.operation not in (CREATE, UPDATE) or a.subresource or a.obj is None:
            return
        spec = a.obj.get("spec")
        if not isinstance(spec, dict):
            return
        before: Object = (a.old or {}).get("spec") or {}
        owner = (a.namespace, a.name)
        if spec.get("type") != "ExternalName":
            if spec.get("clusterIP") and not spec.get("clusterIPs"):
                spec["clusterIPs"] = [spec["clusterIP"]]
            _refuse(a.name, self._fill_families(spec, before))
            self._fill_cluster_ip(spec, before, owner)
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            self._fill_node_ports(spec, before, owner)
            self._fill_health_check_port(spec, before, owner)

    def _fill_families(self, spec: Object, before: Object) -> list[FieldError]:
        """IPv4 only; a headless service without selector may name both families, since others fill its endpoints."""
        selectorless = spec.get("clusterIP") == NONE and not spec.get("selector")
        if spec.get("ipFamilyPolicy") is None:
            spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or (REQUIRE_DUAL if selectorless else SINGLE)
        policy = spec["ipFamilyPolicy"]
        errors = cluster_ip_errors(spec)
        addresses, families = spec.get("clusterIPs") or [], list(spec.get("ipFamilies") or [])
        if not errors and policy == SINGLE:
            text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
            many = (("cluster IPs", addresses), ("IP families", families))
            errors = [
                invalid("spec.ipFamilyPolicy", policy, text.format(what)) for what, held in many if len(held) == 2
            ]
        if errors:
            return errors
        for index, address in enumerate(addresses[len(families) :], start=len(families)):
            if address != NONE:
                if family_of(address) != "IPv4":
                    return [invalid(f"spec.clusterIPs[{index}]", addresses, "IPv6 is not configured on this cluster")]
                families.append("IPv4")
        if selectorless:
            families = families or ["IPv4"]
            if len(families) < 2 and policy != SINGLE:
                families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        else:
            if policy == REQUIRE_DUAL:
                text = "this cluster is not configured for dual-stack services"
                errors.append(invalid("spec.ipFamilyPolicy", policy, text))
            for index, family in enumerate(families):
                if family != "IPv4":
                    errors.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
        spec["ipFamilies"] = families or ["IPv4"]
        return errors

    def _fill_cluster_ip(self, spec: Object, before: Object, owner: Owner) -> None:
        asked = spec.get("clusterIPs") or []
        if is_headless(spec) or (asked and asked == before.get("clusterIPs")):
            return
        if not asked:
            chosen = self._next_address(owner)
            spec["clusterIP"], spec["clusterIPs"] = chosen, [chosen]
            return
        if before and before.get("type") != "ExternalName":
            return  # a change of address: validation refuses it in better words
        wanted = parse_address(asked[0])
        problem = ""
        if not isinstance(wanted, ipaddress.IPv4Address) or wanted not in self._range:
            problem = f"the provided IP ({asked[0]}) is not in the valid range. The range of valid IPs is {self._range}"
        elif not self._addresses.is_free(str(wanted), owner) or self._reserved.get("", str(wanted)):
            problem = "provided IP is already allocated"
        if problem:
            text = f"failed to allocate IP {asked[0]}: {problem}"
            _refuse(owner[1], [invalid("spec.clusterIPs", asked, text)])

    def _next_address(self, owner: Owner) -> str:
        """The first free address from a place that depends on the name, so a service made again gets its old one."""
        first = int(self._range.network_address)
        size = self._range.num_addresses - 1  # without the broadcast address
        low = min(RESERVED_ADDRESSES, size // 2)
        for offset in _round(size - low, self._salt, owner):
            address = str(ipaddress.IPv4Address(first + low + offset))
            if address not in self._addresses and not self._reserved.get("", address):
                return address
        raise InternalError(f'failed to allocate a serviceIP for Service "{owner[1]}": range is full')

    # -- node ports

    def _fill_node_ports(self, spec: Object, before: Object, owner: Owner) -> None:
        allocate = spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        held = set(_node_ports_of(before))
        chosen: set[int] = set()
        by_port: dict[int, int] = {}  # one port over several protocols shares its node port
        for port in spec.get("ports") or ():
            if port.get("nodePort"):
                by_port.setdefault(port.get("port") or 0, port["nodePort"])
        for index, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort") or 0
            if not wanted and not allocate:
                continue
            if not wanted:
                number = port.get("port") or 0
                shared = by_port.get(number) if not before else None
                port["nodePort"] = shared or self._next_port(owner, chosen)
                by_port.setdefault(number, port["nodePort"])
            elif wanted not in held | chosen:
                self._check_port(wanted, f"spec.ports[{index}].nodePort", owner)
            chosen.add(port["nodePort"])

    def _fill_health_check_port(self, spec: Object, before: Object, owner: Owner) -> None:
        if spec.get("type") != "LoadBalancer" or spec.get("externalTrafficPolicy") != "Local":
            return
        wanted = spec.get("healthCheckNodePort") or 0
        if not wanted:
            spec["healthCheckNodePort"] = self._next_port(owner, set(_node_ports_of(spec)))
        elif wanted != before.get("healthCheckNodePort"):
            problem = self._port_problem(wanted, owner)
            if problem:
                raise InternalError(f"failed to allocate requested HealthCheck NodePort {wanted}: {problem}")

    def _port_problem(self, port: int, owner: Owner) -> str:
        if port not in self._node_ports:
            first, last = self._node_ports[0], self._node_ports[-1]
            return f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
        return "" if self._ports.is_free(port, owner) else "provided port is already allocated"

    def _check_port(self, port: int, path: str, owner: Owner) -> None:
        problem = self._port_problem(port, owner)
        if problem:
            _refuse(owner[1], [invalid(path, port, problem)])

    def _next_port(self, owner: Owner, chosen: set[int]) -> int:
        low = min(RESERVED_PORTS, len(self._node_ports) // 2)
        for offset in _round(len(self._node_ports) - low, self._salt, owner):
            port = self._node_ports[low + offset]
            if port not in self._ports and port not in chosen:
                return port
        raise InternalError("failed to allocate a nodePort: range is full")


def _refuse(name: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_error(SERVICE, name, errors)


def _round(size: int, salt: str, owner: Owner) -> Iterable[int]:
    """All offsets below `size`, once around from a start that the name decides."""
    start = zlib.crc32(f"{salt}/{owner[0]}/{owner[1]}".encode()) % size
    yield from range(start, size)
    yield from range(start)


def _addresses_of(spec: Object) -> list[str]:
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [str(parsed) for address in addresses if (parsed := parse_address(address)) is not None]


def _node_ports_of(spec: Object) -> list[int]:
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    return [*ports, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else ports


def cluster_ip_errors(spec: Object) -> list[FieldError]:
    """What is wrong with the addresses and families of a Service, whoever holds them."""
    if spec.get("type") == "ExternalName":
        return []
    field = "spec.clusterIPs"
    address, addresses = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    errors: list[FieldError] = []
    if address and not addresses:
        errors.append(required(field))
    elif address and addresses[0] != address:
        errors.append(invalid(field, addresses, "first value must match `clusterIP`"))
    elif addresses and not address:
        errors.append(invalid(field, addresses, "must be empty when `clusterIP` is not specified"))
    errors += _family_errors(spec)
    unusable = False
    for index, each in enumerate(addresses):
        if index == 0 and each == NONE:
            if len(addresses) > 1:
                unusable = True
                errors.append(invalid(field, addresses, "'None' must be the first and only value"))
            continue
        wrong = address_errors(each, f"{field}[{index}]")
        unusable = unusable or bool(wrong)
        errors += wrong
    if len(addresses) > 2:
        errors.append(invalid(field, addresses, "may only hold up to 2 values"))
    return errors if unusable else errors + _pairing_errors(spec, addresses, field)


def _family_errors(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family not in FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{index}]", family, FAMILIES))
        if family in seen:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in FAMILY_POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, FAMILY_POLICIES))
    return errors


def _pairing_errors(spec: Object, addresses: list[str], field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(addresses) > 1 and (len(addresses) > 2 or len({family_of(each) for each in addresses}) < 2):
        errors.append(invalid(field, addresses, "may specify no more than one IP for each IP family"))
    if is_headless(spec):
        return errors
    for index, (each, family) in enumerate(zip(addresses, spec.get("ipFamilies") or (), strict=False)):
        if family in FAMILIES and family_of(each) != family:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{field}[{index}]", each, text))
    return errors
