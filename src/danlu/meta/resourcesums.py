"""What a pod, a service or a claim counts for: the sums that quotas charge and that the scheduler places.

Quota admission and the quota controller both count with these functions, so the two never disagree.
All functions are pure; amounts are `Quantity`, keyed by resource name as it stands in the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from danlu.meta import labels
from danlu.meta.clock import later, parse_time
from danlu.meta.kind import Object
from danlu.meta.quantity import ZERO, Quantity, of, parse

Amounts = dict[str, Quantity]

ONE = of(1)
STORAGE_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"


# -- sums over containers


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    return {name: parse(value) for name, value in (resources or {}).items()}


def add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def _raise_to(total: Amounts, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        known = total.get(name)
        if known is None or amount > known:
            total[name] = amount


def is_sidecar(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


def _of_containers(spec: Object, part: str, fill: Callable[[Amounts], None] | None = None) -> Amounts:
    """Containers run together; init containers run one after the other, beside the sidecars started before them."""

    def of(container: Object) -> Amounts:
        found = amounts((container.get("resources") or {}).get(part))
        if fill:
            fill(found)
        return found

    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, of(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = of(container)
        if is_sidecar(container):
            add(total, own)
            add(sidecars, own)
            own = sidecars
        else:
            add(own, sidecars)
        _raise_to(peak, own)
    _raise_to(total, peak)
    return total


def _pod_level(spec: Object, part: str) -> Amounts:
    stated = amounts((spec.get("resources") or {}).get(part))
    return {name: q for name, q in stated.items() if name in ("cpu", "memory") or name.startswith("hugepages-")}


def pod_requests(pod: Object, fill: Callable[[Amounts], None] | None = None) -> Amounts:
    """What a node must have free for this pod. `fill` may complete each container's own requests first."""
    spec = pod.get("spec") or {}
    total = _of_containers(spec, "requests", fill)
    total.update(_pod_level(spec, "requests"))
    add(total, amounts(spec.get("overhead")))
    return total


def pod_limits(pod: Object) -> Amounts:
    spec = pod.get("spec") or {}
    total = _of_containers(spec, "limits")
    total.update(_pod_level(spec, "limits"))
    for name, amount in amounts(spec.get("overhead")).items():
        if name in total and total[name] != ZERO:
            total[name] = total[name] + amount
    return total


# -- what quotas charge


def is_extended(resource: str) -> bool:
    """`nvidia.com/gpu`: a resource that Kubernetes itself does not define."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def compute_charge(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Amounts:
    charge: Amounts = {"pods": ONE}
    for name, amount in requests.items():
        if name in ("cpu", "memory", "ephemeral-storage") or name.startswith("hugepages-"):
            charge[name] = amount
            charge[f"requests.{name}"] = amount
        elif is_extended(name):
            charge[f"requests.{name}"] = amount
    for name, amount in limits.items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            charge[f"limits.{name}"] = amount
    return charge


def is_charged(pod: Object, now: datetime | None = None) -> bool:
    """Finished pods are free, and so are pods that outlived their grace period (their node is lost)."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    meta = pod["metadata"]
    deleted, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if now and deleted and grace is not None:
        return now <= later(parse_time(deleted), grace)
    return True


def pod_usage(pod: Object, now: datetime | None = None) -> Amounts:
    charge: Amounts = {"count/pods": ONE}
    if is_charged(pod, now):
        charge.update(compute_charge(pod_requests(pod), pod_limits(pod)))
    return charge


def service_usage(service: Object) -> Amounts:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or ()
    node_ports, balancers = 0, 0
    if spec.get("type") == "NodePort":
        node_ports = len(ports)
    elif spec.get("type") == "LoadBalancer":
        balancers = 1
        allocated = spec.get("allocateLoadBalancerNodePorts") is not False
        node_ports = len(ports) if allocated else sum(1 for port in ports if port.get("nodePort"))
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": of(node_ports),
        "services.loadbalancers": of(balancers),
    }


def storage_class_of(claim: Object) -> str:
    old_style = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old_style or (claim.get("spec") or {}).get("storageClassName") or "")


def claim_usage(claim: Object) -> Amounts:
    charge: Amounts = {"count/persistentvolumeclaims": ONE, "persistentvolumeclaims": ONE}
    storage_class = storage_class_of(claim)
    if storage_class:
        charge[f"{storage_class}{STORAGE_CLASS_SUFFIX}persistentvolumeclaims"] = ONE
    requested = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    if requested is not None:
        amount = parse(requested)
        granted = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        if granted is not None and parse(granted) > amount:
            amount = parse(granted)
        charge["requests.storage"] = amount
        if storage_class:
            charge[f"{storage_class}{STORAGE_CLASS_SUFFIX}requests.storage"] = amount
    return charge


# The plain names that count objects of a kind, besides count/<resource>.
COUNTED_BY_NAME = {
    "configmaps": "configmaps",
    "secrets": "secrets",
    "resourcequotas": "resourcequotas",
    "replicationcontrollers": "replicationcontrollers",
}


def object_usage(resource: str) -> Amounts:
    """One object of a kind that is only counted; `resource` is `configmaps` or `jobs.batch`."""
    charge: Amounts = {f"count/{resource}": ONE}
    if resource in COUNTED_BY_NAME:
        charge[COUNTED_BY_NAME[resource]] = ONE
    return charge


def usage_of(resource: str, obj: Object, now: datetime | None = None) -> Amounts:
    if resource == "pods":
        return pod_usage(obj, now)
    if resource == "services":
        return service_usage(obj)
    if resource == "persistentvolumeclaims":
        return claim_usage(obj)
    return object_usage(resource)


def charged_resource(hard: str) -> str:
    """What a quota's resource name counts: `requests.cpu` → `pods`, `count/jobs.batch` → `jobs.batch`."""
    if hard.startswith("count/"):
        return hard.removeprefix("count/")
    if STORAGE_CLASS_SUFFIX in hard or hard in ("persistentvolumeclaims", "requests.storage"):
        return "persistentvolumeclaims"
    if hard == "services" or hard.startswith("services."):
        return "services"
    if hard in COUNTED_BY_NAME:
        return hard
    return "pods"


# -- scopes


def is_best_effort(pod: Object) -> bool:
    spec = pod.get("spec") or {}
    holders: Iterable[Object] = [spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for holder in holders:
        resources = holder.get("resources") or {}
        for part in ("requests", "limits"):
            for name, amount in (resources.get(part) or {}).items():
                if name in ("cpu", "memory") and parse(amount) > ZERO:
                    return False
    return True


def has_deadline(pod: Object) -> bool:
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def crosses_namespaces(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in [*required, *(weighted.get("podAffinityTerm") or {} for weighted in preferred)]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


def scope_requirements(quota: Object) -> list[Object]:
    spec = quota.get("spec") or {}
    stated = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return stated + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def _in_scope(pod: Object, requirement: Object) -> bool:
    match requirement.get("scopeName"):
        case "Terminating":
            return has_deadline(pod)
        case "NotTerminating":
            return not has_deadline(pod)
        case "BestEffort":
            return is_best_effort(pod)
        case "NotBestEffort":
            return not is_best_effort(pod)
        case "CrossNamespacePodAffinity":
            return crosses_namespaces(pod)
        case "PriorityClass":
            name = (pod.get("spec") or {}).get("priorityClassName") or ""
            if requirement.get("operator") == "Exists":
                return bool(name)
            expression = {
                "key": "PriorityClass",
                "operator": requirement.get("operator"),
                "values": requirement.get("values") or [],
            }
            selector = labels.from_label_selector({"matchExpressions": [expression]})
            return selector.matches({"PriorityClass": name} if name else {})
    return False


def matches_scopes(pod: Object, quota: Object) -> bool:
    return all(_in_scope(pod, requirement) for requirement in scope_requirements(quota))
