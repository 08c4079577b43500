"""Services. `apiserver/allocator.py` hands out addresses and node ports; here is what can be said without it."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.apiserver.subresources.proxy import SERVICE_PROXY
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin.core.servicerules import (
    WITH_CLUSTER_IP,
    WITH_NODE_PORTS,
    externally_accessible,
    needs_health_check,
    validate,
    validate_status,
    validate_update,
    warnings,
)
from danlu.meta import names
from danlu.meta.kind import Object
from danlu.meta.labels import format_labels
from danlu.meta.wellknown import SERVICE

AFFINITY_SECONDS = 10800


# -- defaults and what an update keeps


def default(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    _default_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port") or 0
        if port.get("nodePort") == 0:
            del port["nodePort"]
    if externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and spec["type"] in WITH_CLUSTER_IP:
        spec["internalTrafficPolicy"] = "Cluster"
    elif spec["type"] == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    _default_status(obj, spec)


def _default_affinity(spec: Object) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}


def _default_status(obj: Object, spec: Object) -> None:
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    balancer = status.get("loadBalancer")
    if balancer is None:
        balancer = status["loadBalancer"] = {}
    if spec["type"] == "LoadBalancer":
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def prepare_create(obj: Object) -> None:
    obj["status"] = {"loadBalancer": {}}


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    spec, before = new["spec"], old.get("spec") or {}
    _drop_what_the_type_lost(new, spec, before)
    _keep_allocated(spec, before)


def _drop_what_the_type_lost(new: Object, spec: Object, before: Object) -> None:
    """A change of type takes along what only the old type had, where the user did not touch it as well."""
    if before.get("type") != "ExternalName" and spec["type"] == "ExternalName":
        if all(spec.get(key) == before.get(key) for key in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(key) == before.get(key):
                spec.pop(key, None)
    if before.get("type") in WITH_NODE_PORTS and spec["type"] not in WITH_NODE_PORTS:
        ports = spec.get("ports") or ()
        if _node_ports(spec) <= _node_ports(before):
            for port in ports:
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_if_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_if_same(spec, before, "allocateLoadBalancerNodePorts")
        _drop_if_same(spec, before, "loadBalancerClass")
    if externally_accessible(before) and not externally_accessible(spec):
        _drop_if_same(spec, before, "externalTrafficPolicy")
    if spec["type"] != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def _drop_if_same(spec: Object, before: Object, field: str) -> None:
    if spec.get(field) == before.get(field):
        spec.pop(field, None)


def _node_ports(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _keep_allocated(spec: Object, before: Object) -> None:
    """An update that leaves out what was handed out before keeps it."""
    if before.get("type") != "ExternalName" and spec["type"] != "ExternalName":
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        # A client that knows the singular field only, and changed it.
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)
    if before.get("type") in WITH_NODE_PORTS and spec["type"] in WITH_NODE_PORTS:
        used = _node_ports(before) & _node_ports(spec)
        by_name = {port.get("name") or "": port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            known = by_name.get(port.get("name") or "")
            if not port.get("nodePort") and known and known not in used:
                port["nodePort"] = known
    if needs_health_check(before) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


# -- columns


def _cluster_ip(obj: Object) -> str:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or ()
    return str(addresses[0] if addresses else spec.get("clusterIP") or "<none>")


def _external_ip(obj: Object) -> str:
    spec = obj.get("spec") or {}
    sort, external = spec.get("type"), spec.get("externalIPs") or []
    if sort == "ExternalName":
        return str(spec.get("externalName") or "")
    if sort != "LoadBalancer":
        return ",".join(external) or "<none>"
    ingresses = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    shown = ",".join(sorted({ingress.get("ip") or ingress.get("hostname") or "" for ingress in ingresses} - {""}))
    return ",".join([*(shown.split(",") if shown else []), *external]) or "<pending>"


def _ports(obj: Object) -> str:
    pieces = []
    for port in (obj.get("spec") or {}).get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        pieces.append(f"{port.get('port')}{node_port}/{port.get('protocol')}")
    return ",".join(pieces) or "<none>"


SERVED = ServedKind(
    kind=SERVICE,
    schema=schema_of("io.k8s.api.core.v1.Service"),
    name_errors=names.as_dns_label,
    columns=(
        NAME,
        Column("Type", lambda obj: (obj.get("spec") or {}).get("type") or ""),
        Column("Cluster-IP", _cluster_ip),
        Column("External-IP", _external_ip),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda obj: format_labels((obj.get("spec") or {}).get("selector")), priority=1),
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    warnings=warnings,
    selectable=lambda obj: {
        "spec.clusterIP": (obj.get("spec") or {}).get("clusterIP") or "",
        "spec.type": (obj.get("spec") or {}).get("type") or "",
    },
    selectable_names=frozenset({"spec.clusterIP", "spec.type"}),
    has_status=True,
    create_on_update=True,
    subresources={"proxy": SERVICE_PROXY},
    returns_deleted=True,
)
