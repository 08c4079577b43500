"""Cluster IPs and node ports: handed out once, given back, and the words for those that are taken."""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Callable
from typing import Any, cast

import pytest

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes
from danlu.embedded.apiserver.allocator import ServiceAddresses
from danlu.embedded.apiserver.request import User
from danlu.embedded.builtin.core.service import SERVED
from danlu.embedded.clusteraddresses import CLUSTER_RANGE
from danlu.embedded.storage import Stored
from danlu.embedded.storage.store import Store
from danlu.embedded.storage.watchcache import Change
from danlu.errors import Invalid
from danlu.meta.kind import Object


class Services:
    """The part of a store that the allocator needs."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.followers: list[Callable[[Change], None]] = []

    def load_each(self, resource: str, take: Callable[[Stored], None]) -> None:
        for stored in self.objects.values() if resource == "services" else ():
            take(stored)

    def observe(self, callback: Callable[[Change], None], resource: str) -> None:
        if resource == "services":  # the other one is who holds an address without being a Service
            self.followers.append(callback)

    def put(self, obj: Object) -> None:
        stored = Stored.of("services", obj, 1)
        before = self.objects.get(stored.name)
        self.objects[stored.name] = stored
        self._tell(Change("MODIFIED" if before else "ADDED", stored, before))

    def delete(self, name: str) -> None:
        stored = self.objects.pop(name)
        self._tell(Change("DELETED", stored, stored))

    def _tell(self, change: Change) -> None:
        for follower in self.followers:
            follower(change)


class Cluster:
    def __init__(self) -> None:
        self.services = Services()
        self.addresses = self.restarted()

    def restarted(self, **settings: Any) -> ServiceAddresses:
        self.services.followers.clear()
        self.addresses = ServiceAddresses(cast(Store, self.services), **settings)
        return self.addresses

    def create(self, name: str, *, dry_run: bool = False, **spec: Any) -> Object:
        spec.setdefault("ports", [{"port": 80}])
        obj: Object = {"metadata": {"name": name, "namespace": "default"}, "spec": copy.deepcopy(spec)}
        SERVED.default(obj)
        SERVED.prepare_create(obj)
        self.addresses.mutate(Attributes(CREATE, SERVED, "default", name, "", obj, None, User("me"), dry_run))
        assert SERVED.validate(obj) == []
        if not dry_run:
            self.services.put(obj)
        return cast(Object, obj["spec"])

    def update(self, name: str, **spec: Any) -> Object:
        old = self.services.objects[name].obj
        new = copy.deepcopy(old)
        new["spec"].update(spec)
        SERVED.default(new)
        SERVED.prepare_update(new, old)
        self.addresses.mutate(Attributes(UPDATE, SERVED, "default", name, "", new, old, User("me")))
        assert SERVED.validate_update(new, old) == []
        self.services.put(new)
        return cast(Object, new["spec"])


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(Invalid) as refused:
        call()
    return refused.value.message


def test_a_service_gets_an_address_of_its_own(cluster: Cluster) -> None:
    first, second = cluster.create("a"), cluster.create("b")
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["ipFamilies"] == ["IPv4"]
    assert first["ipFamilyPolicy"] == "SingleStack"
    assert ipaddress.ip_address(first["clusterIP"]) in ipaddress.ip_network(CLUSTER_RANGE)
    assert first["clusterIP"] != second["clusterIP"]


def test_a_service_made_again_gets_its_old_address(cluster: Cluster) -> None:
    address = cluster.create("a")["clusterIP"]
    cluster.services.delete("a")
    cluster.create("b")
    assert cluster.create("a")["clusterIP"] == address


def test_two_clusters_on_one_machine_give_one_name_two_addresses() -> None:
    first, second = Cluster(), Cluster()
    second.restarted(salt="another")
    assert first.create("a")["clusterIP"] != second.create("a")["clusterIP"]


def test_an_address_asked_for_is_given_when_free(cluster: Cluster) -> None:
    assert cluster.create("a", clusterIP="127.96.0.10")["clusterIPs"] == ["127.96.0.10"]
    assert refusal(lambda: cluster.create("b", clusterIP="127.96.0.10")) == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["127.96.0.10"]: '
        "failed to allocate IP 127.96.0.10: provided IP is already allocated"
    )
    assert refusal(lambda: cluster.create("b", clusterIP="10.0.0.1")) == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: '
        "the provided IP (10.0.0.1) is not in the valid range. The range of valid IPs is 127.96.0.0/12"
    )
    cluster.services.delete("a")
    cluster.create("b", clusterIP="127.96.0.10")


def test_what_is_taken_is_known_after_a_restart(cluster: Cluster) -> None:
    cluster.create("a", clusterIP="127.96.0.10", type="NodePort", ports=[{"port": 80, "nodePort": 30007}])
    cluster.restarted()
    assert "provided IP is already allocated" in refusal(lambda: cluster.create("b", clusterIP="127.96.0.10"))
    assert refusal(lambda: cluster.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 30007}])) == (
        'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated'
    )


def test_headless_and_external_services_get_none(cluster: Cluster) -> None:
    headless = cluster.create("a", clusterIP="None", selector={"a": "b"})
    assert (headless["clusterIPs"], headless["ipFamilies"]) == (["None"], ["IPv4"])
    bare = cluster.create("b", clusterIP="None")
    assert (bare["ipFamilyPolicy"], bare["ipFamilies"]) == ("RequireDualStack", ["IPv4", "IPv6"])
    external = cluster.create("c", type="ExternalName", externalName="example.com")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(external)


def test_node_ports(cluster: Cluster) -> None:
    ports = [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    first = cluster.create("a", type="NodePort", ports=ports)["ports"]
    second = cluster.create("b", type="NodePort", ports=ports)["ports"]
    numbers = [port["nodePort"] for port in first + second]
    assert len(set(numbers)) == 4
    assert all(30000 <= number <= 32767 for number in numbers)
    assert refusal(lambda: cluster.create("c", type="NodePort", ports=[{"port": 80, "nodePort": 80}])) == (
        'Service "c" is invalid: spec.ports[0].nodePort: Invalid value: 80: '
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    )


def test_one_port_over_two_protocols_shares_its_node_port(cluster: Cluster) -> None:
    ports = [{"port": 53, "name": "tcp"}, {"port": 53, "name": "udp", "protocol": "UDP"}]
    first, second = cluster.create("dns", type="NodePort", ports=ports)["ports"]
    assert first["nodePort"] == second["nodePort"]


def test_a_change_of_type_takes_and_gives_back(cluster: Cluster) -> None:
    address = cluster.create("a")["clusterIP"]
    spec = cluster.update("a", type="NodePort")
    number = spec["ports"][0]["nodePort"]
    assert spec["clusterIP"] == address
    spec = cluster.update("a", type="ExternalName", externalName="example.com")
    assert "clusterIP" not in spec
    assert "nodePort" not in spec["ports"][0]
    cluster.create("b", clusterIP=address, type="NodePort", ports=[{"port": 1, "nodePort": number}])
    assert cluster.update("a", type="ClusterIP")["clusterIP"] != address


def test_a_dry_run_takes_nothing(cluster: Cluster) -> None:
    cluster.create("a", dry_run=True, clusterIP="127.96.0.10")
    cluster.create("b", clusterIP="127.96.0.10")


def test_this_cluster_has_one_family(cluster: Cluster) -> None:
    assert refusal(lambda: cluster.create("a", ipFamilies=["IPv6"])) == (
        'Service "a" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'
    )
    assert refusal(lambda: cluster.create("a", ipFamilyPolicy="RequireDualStack")) == (
        'Service "a" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
        "this cluster is not configured for dual-stack services"
    )
    assert "must be a valid IP address" in refusal(lambda: cluster.create("a", clusterIP="nonsense"))


def test_a_full_range_says_so(cluster: Cluster) -> None:
    cluster.restarted(cluster_range="127.96.0.0/30")
    cluster.create("a")
    cluster.create("b")
    with pytest.raises(Exception, match='failed to allocate a serviceIP for Service "c": range is full'):
        cluster.create("c")


def test_health_checks_get_a_port(cluster: Cluster) -> None:
    spec = cluster.create("a", type="LoadBalancer", externalTrafficPolicy="Local")
    assert spec["healthCheckNodePort"] not in (0, spec["ports"][0]["nodePort"])
    assert cluster.update("a", externalTrafficPolicy="Cluster").get("healthCheckNodePort") is None
