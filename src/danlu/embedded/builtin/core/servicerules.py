"""What Kubernetes demands of a Service; its addresses are checked where they are handed out."""

from __future__ import annotations

from danlu.embedded.apiserver.allocator import cluster_ip_errors, is_headless
from danlu.embedded.builtin._shared.diffs import as_struct
from danlu.embedded.builtin._shared.podspec.handlers import port_errors
from danlu.embedded.builtin.core.endpoints import PROTOCOLS
from danlu.meta import names
from danlu.meta.addresses import cidr_errors, endpoint_address_errors, is_address
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_labels

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
WITH_CLUSTER_IP = ("ClusterIP", "NodePort", "LoadBalancer")
WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
AFFINITIES = ("ClientIP", "None")
POLICIES = ("Cluster", "Local")
DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
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


def externally_accessible(spec: Object) -> bool:
    return spec.get("type") in WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


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
        errors += port_errors(port.get("targetPort"), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            application = port["appProtocol"]
            errors += [invalid(f"{path}.appProtocol", application, text) for text in names.qualified_name(application)]
    return errors


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


def warnings(obj: Object) -> list[str]:
    spec = obj.get("spec") or {}
    sort, headless = spec.get("type"), spec.get("clusterIP") == "None"
    found: list[str] = []
    if headless:
        ignored = (("loadBalancerIP", "loadBalancerIP"), ("externalIPs", "externalIPs"))
        found += [f"spec.{shown} is ignored for headless services" for field, shown in ignored if spec.get(field)]
        if spec.get("sessionAffinity") != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    elif spec.get("externalIPs") and sort != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if sort == "ExternalName" and spec.get("externalIPs"):
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if sort != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found
