"""NetworkPolicies, Ingresses and their classes, addresses of services: what is filled in, refused and shown."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.conftest import Kube

API = "networking.k8s.io/v1"


def policy(**spec: Any) -> dict[str, Any]:
    spec.setdefault("podSelector", {"matchLabels": {"app": "web"}})
    return {"apiVersion": API, "kind": "NetworkPolicy", "metadata": {"name": "few"}, "spec": spec}


def ingress(name: str = "site", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "Ingress", "metadata": {"name": name}, "spec": spec}


def path(text: str | None = "/", sort: str | None = "Prefix", service: Any = "web", **port: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"backend": {"service": {"name": service, "port": port or {"number": 80}}}}
    if text is not None:
        made["path"] = text
    if sort is not None:
        made["pathType"] = sort
    return made


def rule(*paths: dict[str, Any], host: str = "example.com") -> dict[str, Any]:
    return {"host": host, "http": {"paths": list(paths)}}


# -- NetworkPolicy


def test_a_network_policy_is_filled_in_and_shown(kube: Kube) -> None:
    kube.apply(policy(ingress=[{"ports": [{"port": 80}]}], egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]))
    spec = kube.get("netpol", "few")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"ports": [{"port": 80, "protocol": "TCP"}]}]
    header, row = kube("get", "netpol").splitlines()
    assert header.split() == ["NAME", "POD-SELECTOR", "AGE"]
    assert row.split()[:2] == ["few", "app=web"]
    kube("patch", "netpol", "few", "--type=merge", "-p", '{"spec": {"policyTypes": ["Ingress"]}}')
    assert kube.get("netpol", "few")["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"podSelector": {"matchLabels": {"-": "x"}}}, "spec.podSelector.matchLabels: Invalid value"),
        ({"ingress": [{"from": [{}]}]}, "spec.ingress[0].from[0]: Required value: must specify a peer"),
        ({"ingress": [{"from": [{"ipBlock": {"cidr": ""}}]}]}, "spec.ingress[0].from[0].ipBlock.cidr: Required value"),
        ({"egress": [{"to": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
         "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"),
        ({"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]},
         'spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: "11.0.0.0/16": must be a strict subset of `cidr`'),
        ({"ingress": [{"ports": [{"protocol": "ICMP"}]}]},
         'spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"'),
        ({"ingress": [{"ports": [{"port": 80, "endPort": 70}]}]},
         "endPort: Invalid value: 80: must be greater than or equal to `port`"),
        ({"ingress": [{"ports": [{"port": "web", "endPort": 70}]}]}, "may not be specified when `port` is non-numeric"),
        ({"ingress": [{"ports": [{"endPort": 70}]}]}, "may not be specified when `port` is not specified"),
        ({"ingress": [{"ports": [{"port": 0}]}]}, "must be between 1 and 65535, inclusive"),
        ({"policyTypes": ["Both"]},
         'spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"'),
        ({"policyTypes": ["Ingress", "Egress", "Egress"]}, "may not specify more than two policyTypes"),
    ],
)  # fmt: skip
def test_what_a_network_policy_may_not_be(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=policy(**spec))


# -- Ingress


def test_an_ingress_is_filled_in_and_shown(kube: Kube) -> None:
    hosts = [rule(path(), host=f"{letter}.example.com") for letter in "abcd"]
    kube.apply(ingress(rules=hosts, ingressClassName="none-such", tls=[{"hosts": ["a.example.com"]}]))
    kube.apply(ingress("all", ingressClassName="none-such", defaultBackend=path()["backend"]))
    found = kube.get("ing", "site")
    assert found["status"] == {"loadBalancer": {}}
    assert found["metadata"]["generation"] == 1
    header, every, some = kube("get", "ing").splitlines()
    assert header.split() == ["NAME", "CLASS", "HOSTS", "ADDRESS", "PORTS", "AGE"]
    assert every.split()[:4] == ["all", "none-such", "*", "80"]
    shown = "a.example.com,b.example.com,c.example.com + 1 more..."
    assert shown in some
    assert "80, 443" in some


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"),
        ({"rules": [rule(path(sort=None))]}, "paths[0].pathType: Required value: pathType must be specified"),
        ({"rules": [rule(path(sort="Regex"))]},
         'Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"'),
        ({"rules": [rule(path("x"))]}, 'paths[0].path: Invalid value: "x": must be an absolute path'),
        ({"rules": [rule(path("/a//b"))]}, "must not contain '//'"),
        ({"rules": [rule(path("/a/.."))]}, "cannot end with '/..'"),
        ({"rules": [rule()]}, "spec.rules[0].http.paths: Required value"),
        ({"rules": [rule(path(), host="10.0.0.1")]}, "must be a DNS name, not an IP address"),
        ({"rules": [rule(path(), host="*.*.com")]}, "a wildcard DNS-1123 subdomain must start with '*.'"),
        ({"rules": [rule(path(service=""))]}, "paths[0].backend.service.name: Required value"),
        ({"rules": [rule(path(name="x" * 16))]}, "service.port.name: Invalid value"),
        ({"rules": [rule(path(name="http", number=80))]}, "cannot set both port name & port number"),
        ({"rules": [rule({"path": "/", "pathType": "Exact", "backend": {}})]},
         'paths[0].backend: Invalid value: "": resource or service backend is required'),
        ({"defaultBackend": {"resource": {"kind": "", "name": "x"}}}, "spec.defaultBackend.resource.kind: Required"),
        ({"defaultBackend": {"service": {"name": "web"}}},
         "spec.defaultBackend: Required value: port name or number is required"),
        ({"rules": [rule(path())], "tls": [{"hosts": ["-"], "secretName": "S"}]},
         'spec.tls[0].secretName: Invalid value: "S"'),
    ],
)  # fmt: skip
def test_what_an_ingress_may_not_be(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=ingress(**spec))


def test_the_old_annotation_is_warned_of(kube: Kube) -> None:
    made = ingress(rules=[rule(path())])
    made["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "none-such"}
    done = kube.run("create", "-f", "-", stdin=made)
    assert "is deprecated, please use 'spec.ingressClassName' instead" in done.stderr
    assert "ingressClassName" not in kube.get("ingress", "site")["spec"]


# -- IngressClass


def ingress_class(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "IngressClass", "metadata": {"name": name}, "spec": spec}


def test_the_default_ingress_class_is_taken(kube: Kube) -> None:
    name = kube.namespace
    made = ingress_class(name, controller="example.com/x", parameters={"kind": "Settings", "name": "mine"})
    made["metadata"]["annotations"] = {"ingressclass.kubernetes.io/is-default-class": "true"}
    kube.apply(made)
    try:
        assert kube.get("ingressclass", name)["spec"]["parameters"]["scope"] == "Cluster"
        assert kube("get", "ingressclass", name).splitlines()[1].split()[:4] == [
            name, "(default)", "example.com/x", "Settings/mine",
        ]  # fmt: skip

        def defaulted() -> bool:
            kube("delete", "ingress", "site", "--ignore-not-found")
            kube.apply(ingress(rules=[rule(path())]))
            return bool(kube.get("ingress", "site")["spec"].get("ingressClassName") == name)

        kube.wait("the default class to be known", defaulted)
        why = kube.fails("patch", "ingressclass", name, "-p", '{"spec": {"controller": "example.com/y"}}')
        assert "spec.controller: Invalid value" in why
        assert "field is immutable" in why
    finally:
        kube("delete", "ingressclass", name)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.controller: Required value"),
        ({"controller": "nginx"}, 'must be a domain-prefixed path (such as "acme.io/foo")'),
        ({"controller": "example.com/?"}, "Invalid path"),
        ({"controller": "example.com/x", "parameters": {"kind": "A", "name": "b", "scope": "Namespace"}},
         "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"),
        ({"controller": "example.com/x", "parameters": {"kind": "A", "name": "b", "namespace": "c"}},
         "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"),
        ({"controller": "example.com/x", "parameters": {"kind": "A", "name": "b", "scope": "Zone"}},
         'Unsupported value: "Zone": supported values: "Cluster", "Namespace"'),
    ],
)  # fmt: skip
def test_what_an_ingress_class_may_not_be(kube: Kube, spec: dict[str, Any], words: str) -> None:
    assert words in kube.fails("create", "-f", "-", stdin=ingress_class("bad", **spec))


# -- addresses of services


def service(name: str, **spec: Any) -> dict[str, Any]:
    spec.setdefault("ports", [{"port": 80}])
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_a_cluster_ip_has_an_object(kube: Kube) -> None:
    kube.apply(service("web"))
    address = kube.value("service/web", "{.spec.clusterIP}")
    found = kube.wait("its object", lambda: kube.run("get", "ip", address, "-o", "json", check=False).stdout)
    assert f'"name": "{address}"' in found
    made = kube.get("ipaddress", address)
    assert made["spec"]["parentRef"] == {"resource": "services", "namespace": kube.namespace, "name": "web"}
    assert made["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    row = kube("get", "ip", address).splitlines()[1]
    assert row.split() == [address, f"services/{kube.namespace}/web"]
    kube("delete", "service", "web")
    kube.gone(f"ipaddress/{address}")


def test_an_address_that_somebody_holds_is_given_to_no_service(kube: Kube) -> None:
    kube.apply(service("first"))
    address = kube.value("service/first", "{.spec.clusterIP}")
    kube("delete", "service", "first")
    kube.gone(f"ipaddress/{address}")
    parent = {"group": "example.com", "resource": "things", "name": "mine"}
    kube.apply({"apiVersion": API, "kind": "IPAddress", "metadata": {"name": address}, "spec": {"parentRef": parent}})
    try:
        why = kube.fails("create", "-f", "-", stdin=service("second", clusterIP=address))
        assert f"failed to allocate IP {address}: provided IP is already allocated" in why
    finally:
        kube("delete", "ipaddress", address)


def test_the_default_range_is_there(kube: Kube) -> None:
    found = kube.get("servicecidr", "kubernetes")
    assert found["spec"]["cidrs"]
    kube.until("servicecidr/kubernetes", '{.status.conditions[?(@.type=="Ready")].status}', "True")
    header, row = kube("get", "servicecidr", "kubernetes").splitlines()
    assert header.split() == ["NAME", "CIDRS", "AGE"]
    assert row.split()[1] == ",".join(found["spec"]["cidrs"])
    why = kube.fails("patch", "servicecidr", "kubernetes", "--type=merge", "-p", '{"spec": {"cidrs": ["10.0.0.0/8"]}}')
    assert "spec.cidrs" in why
    assert "field is immutable" in why


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"kind": "ServiceCIDR", "spec": {"cidrs": []}}, "spec.cidrs: Required value: at least one CIDR required"),
        ({"kind": "ServiceCIDR", "spec": {"cidrs": ["10.0.0.1/8"]}}, "must not have bits set beyond the prefix length"),
        ({"kind": "ServiceCIDR", "spec": {"cidrs": ["2001:DB8::/64"]}}, 'must be in canonical form ("2001:db8::/64")'),
        ({"kind": "ServiceCIDR", "spec": {"cidrs": ["10.0.0.0/8", "11.0.0.0/8"]}},
         "may specify no more than one IP for each IP family"),
        ({"kind": "IPAddress", "spec": {}}, "spec.parentRef: Required value"),
        ({"kind": "IPAddress", "spec": {"parentRef": {"resource": "", "name": "x"}}},
         "spec.parentRef.resource: Required value"),
        ({"kind": "IPAddress", "metadata": {"name": "10.0.0.01"}, "spec": {}}, "must not have leading 0s"),
    ],
)  # fmt: skip
def test_what_addresses_may_not_be(kube: Kube, made: dict[str, Any], words: str) -> None:
    made = {"apiVersion": API, "metadata": {"name": "203.0.113.7"}, **made}
    assert words in kube.fails("create", "-f", "-", stdin=made)


def test_they_are_explained(kube: Kube) -> None:
    assert "pathType" in kube("explain", "ingress.spec.rules.http.paths")
    assert "podFixed" in kube("explain", "runtimeclass.overhead")
    for kind in ("networkpolicy.spec.ingress", "ingressclass.spec", "servicecidr.spec.cidrs", "ipaddress.spec"):
        assert "FIELD" in kube("explain", kind)
