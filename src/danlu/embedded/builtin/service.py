"""Services. `apiserver/addresses.py` hands out addresses and node ports; here is what can be said without it."""

from __future__ import annotations

from typing import Any

from danlu.embedded.apiserver.addresses import cluster_ip_errors, is_headless
from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.apiserver.subresources.proxy import SERVICE_PROXY
from danlu.embedded.builtin.diffs import as_struct
from danlu.embedded.builtin.endpoints import PROTOCOLS
from danlu.embedded.builtin.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.meta import names
from danlu.meta.addresses import cidr_errors, endpoint_address_errors, is_address
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import format_labels, validate_labels
from danlu.meta.wellknown import SERVICE

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
WITH_CLUSTER_IP = ("ClusterIP", "NodePort", "LoadBalancer")
WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
AFFINITIES = ("ClientIP", "None")
POLICIES = ("Cluster", "Local")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
AFFINITY_SECONDS = 10800
MAX_AFFINITY_SECONDS = 86400
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_PORT_FIELDS: Object = {
    "name": "",
    "protocol": "",
    "appProtocol": None,
    "port": 0,
    "targetPort": 0,
    "nodePort": 0,
}
FIXED = "may not change once set"
_SHOWN_WIDTH = 16  # of a load balancer's addresses


def externally_accessible(spec: Object) -> bool:
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


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


# -- validation


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    sort = spec.get("type") or ""
    errors: list[FieldError] = []
    if not spec.get("ports") and not is_headless(spec) and sort != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _type_errors(spec, sort)
    errors += _port_errors(spec.get("ports") or [], sort)
    if spec.get("selector") is not None:
        errors += validate_labels(spec["selector"], "spec.selector")
    errors += _affinity_errors(spec)
    errors += cluster_ip_errors(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        errors += endpoint_address_errors(address, f"spec.externalIPs[{index}]")
    if sort not in TYPES:
        errors.append(not_supported("spec.type", sort, TYPES) if sort else required("spec.type"))
    errors += _duplicate_errors(spec.get("ports") or [], sort)
    errors += _balancer_errors(obj, spec, sort)
    return errors + _policy_errors(spec, sort)


def _type_errors(spec: Object, sort: str) -> list[FieldError]:
    if sort in WITH_NODE_PORTS and is_headless(spec):
        return [invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {sort} services")]
    if sort != "ExternalName":
        return []
    errors = [
        forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + [invalid("spec.externalName", name, text) for text in names.dns_subdomain(name)]


def _port_errors(ports: list[Object], sort: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if name:
            errors += [invalid(f"{path}.name", name, text) for text in names.dns_label(name)]
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        number = port.get("port") or 0
        errors += [invalid(f"{path}.port", number, text) for text in names.port_number(number)]
        protocol = port.get("protocol") or ""
        if protocol not in PROTOCOLS:
            wrong = not_supported(f"{path}.protocol", protocol, PROTOCOLS)
            errors.append(wrong if protocol else required(f"{path}.protocol"))
        errors += port_or_name_errors(port.get("targetPort"), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            application = port["appProtocol"]
            errors += [invalid(f"{path}.appProtocol", application, text) for text in names.qualified_name(application)]
    return errors


def port_or_name_errors(port: Any, path: str) -> list[FieldError]:
    """A port by number or by the name a container gives it."""
    texts = names.port_name(port) if isinstance(port, str) else names.port_number(port or 0)
    return [invalid(path, port if isinstance(port, str) else port or 0, text) for text in texts]


def _affinity_errors(spec: Object) -> list[FieldError]:
    affinity = spec.get("sessionAffinity") or ""
    if affinity not in AFFINITIES:
        wrong = not_supported("spec.sessionAffinity", affinity, AFFINITIES)
        return [wrong if affinity else required("spec.sessionAffinity")]
    if affinity == "None":
        text = "must not be set when session affinity is None"
        return [forbidden("spec.sessionAffinityConfig", text)] if spec.get("sessionAffinityConfig") else []
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is None:
        return [required(path, "when session affinity type is ClientIP")]
    if not 0 < seconds <= MAX_AFFINITY_SECONDS:
        return [invalid(path, seconds, f"must be greater than 0 and less than {MAX_AFFINITY_SECONDS}")]
    return []


def _duplicate_errors(ports: list[Object], sort: str) -> list[FieldError]:
    errors: list[FieldError] = []
    node_ports: set[tuple[str, int]] = set()
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path, protocol = f"spec.ports[{index}]", port.get("protocol") or ""
        node_port, number = port.get("nodePort") or 0, port.get("port") or 0
        if node_port and sort == "ClusterIP":
            errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        if node_port and (protocol, node_port) in node_ports:
            errors.append(duplicate(f"{path}.nodePort", node_port))
        if (protocol, number) in numbers:
            shown = as_struct({"protocol": protocol, "port": number}, _PORT_FIELDS)
            errors.append(duplicate(path, shown))
        node_ports.add((protocol, node_port))
        numbers.add((protocol, number))
    return errors


def _balancer_errors(obj: Object, spec: Object, sort: str) -> list[FieldError]:
    errors: list[FieldError] = []
    ranges = spec.get("loadBalancerSourceRanges") or []
    annotation = ((obj.get("metadata") or {}).get("annotations") or {}).get(SOURCE_RANGES)
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        if sort != "LoadBalancer":
            errors.append(forbidden(path, ONLY_LOAD_BALANCER))
        for index, value in enumerate(ranges):
            errors += cidr_errors(value.strip(), f"{path}[{index}]")
    elif annotation is not None:
        path = f"metadata.annotations[{SOURCE_RANGES}]"
        if sort != "LoadBalancer":
            errors.append(forbidden(path, ONLY_LOAD_BALANCER))
        for value in annotation.split(",") if annotation.strip() else ():
            errors += cidr_errors(value.strip(), path)
    if spec.get("allocateLoadBalancerNodePorts") is not None and sort != "LoadBalancer":
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", ONLY_LOAD_BALANCER))
    if spec.get("loadBalancerClass") is not None:
        name = spec["loadBalancerClass"]
        if sort != "LoadBalancer":
            errors.append(forbidden("spec.loadBalancerClass", ONLY_LOAD_BALANCER))
        else:
            errors += [invalid("spec.loadBalancerClass", name, text) for text in names.qualified_name(name)]
    return errors


def _policy_errors(spec: Object, sort: str) -> list[FieldError]:
    errors: list[FieldError] = []
    external = spec.get("externalTrafficPolicy") or ""
    if not externally_accessible(spec):
        if external:
            text = "may only be set for externally-accessible services"
            errors.append(invalid("spec.externalTrafficPolicy", external, text))
    elif external not in POLICIES:
        wrong = not_supported("spec.externalTrafficPolicy", external, POLICIES)
        errors.append(wrong if external else required("spec.externalTrafficPolicy"))
    health = spec.get("healthCheckNodePort") or 0
    if not needs_health_check(spec):
        if health:
            text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(invalid("spec.healthCheckNodePort", health, text))
    elif not health:
        errors.append(required("spec.healthCheckNodePort"))
    else:
        errors += [invalid("spec.healthCheckNodePort", health, text) for text in names.port_number(health)]
    internal = spec.get("internalTrafficPolicy")
    if internal is None and sort in WITH_CLUSTER_IP:
        errors.append(required("spec.internalTrafficPolicy"))
    elif internal is not None and internal not in POLICIES:
        errors.append(not_supported("spec.internalTrafficPolicy", internal, POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in DISTRIBUTIONS:
        errors.append(not_supported("spec.trafficDistribution", distribution, DISTRIBUTIONS))
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        errors += _address_change_errors(spec, before)
    balancer = spec.get("loadBalancerClass")
    if spec.get("type") == before.get("type") == "LoadBalancer" and balancer != before.get("loadBalancerClass"):
        errors.append(invalid("spec.loadBalancerClass", balancer, FIXED))
    checked = needs_health_check(before) and needs_health_check(spec)
    if checked and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        errors.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return errors + validate(new)


def _address_change_errors(spec: Object, before: Object) -> list[FieldError]:
    headless, was_headless = is_headless(spec), is_headless(before)
    if headless and was_headless:
        return []
    addresses, had = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    errors: list[FieldError] = []
    if had and not addresses:
        errors.append(invalid("spec.clusterIPs[0]", addresses, "primary clusterIP can not be unset"))
    for index, (address, was) in enumerate(zip(addresses, had, strict=False)):
        if address != was:
            errors.append(invalid(f"spec.clusterIPs[{index}]", addresses, FIXED))
    if headless == was_headless:
        families, families_before = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
        if families and families_before and families[0] != families_before[0]:
            errors.append(invalid("spec.ipFamilies[0]", families, FIXED))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    path = "status.loadBalancer.ingress"
    ingresses = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if ingresses and (new.get("spec") or {}).get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    errors: list[FieldError] = []
    for index, ingress in enumerate(ingresses):
        errors += _ingress_errors(ingress, f"{path}[{index}]")
    return errors


def _ingress_errors(ingress: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    address, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
    if address and not is_address(address):
        errors += endpoint_address_errors(address, f"{path}.ip")
    if mode is None and address:
        errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
    elif mode is not None and not address:
        errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
    elif mode is not None and mode not in ("Proxy", "VIP"):
        errors.append(not_supported(f"{path}.ipMode", mode, ("Proxy", "VIP")))
    if host:
        errors += [invalid(f"{path}.hostname", host, text) for text in names.dns_subdomain(host)]
        if is_address(host):
            errors.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))
    return errors


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
    if len(shown) > _SHOWN_WIDTH:
        shown = f"{shown[: _SHOWN_WIDTH - 3]}..."
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
    selectable=lambda obj: {
        "spec.clusterIP": (obj.get("spec") or {}).get("clusterIP") or "",
        "spec.type": (obj.get("spec") or {}).get("type") or "",
    },
    selectable_names=frozenset({"spec.clusterIP", "spec.type"}),
    has_status=True,
    create_on_update=True,
    subresources={"proxy": SERVICE_PROXY},
)
