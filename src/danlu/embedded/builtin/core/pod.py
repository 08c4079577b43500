"""Pods: made Pending with their class of service; deleted with grace once they run on a node."""

from __future__ import annotations

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.apiserver.subresources.binding import BINDING_OF_POD
from danlu.embedded.apiserver.subresources.eviction import EVICTION
from danlu.embedded.apiserver.subresources.exec import ATTACH, EXEC
from danlu.embedded.apiserver.subresources.log import LOG
from danlu.embedded.apiserver.subresources.portforward import PORT_FORWARD
from danlu.embedded.apiserver.subresources.proxy import POD_PROXY
from danlu.embedded.builtin._shared.hooks import (
    AGE,
    NAME,
    first_generation,
    keep_status,
    name_of,
    next_generation,
    schema_of,
)
from danlu.embedded.builtin._shared.podspec import default_pod, merge_matched_keys, pod_warnings, quality_of_service
from danlu.embedded.builtin.core.podparts import PARTS
from danlu.embedded.builtin.core.podtable import (
    ip_of,
    node_of,
    nominated_node_of,
    readiness_gates_of,
    ready_of,
    restarts_of,
    status_of,
)
from danlu.embedded.builtin.core.podupdate import validate_pod, validate_pod_status, validate_pod_update
from danlu.meta import clock, names
from danlu.meta.fields import FieldError, forbidden
from danlu.meta.kind import Object
from danlu.meta.wellknown import POD

FINISHED = ("Succeeded", "Failed")


def prepare_create(obj: Object) -> None:
    first_generation(obj)
    merge_matched_keys(obj)
    spec = obj.get("spec") or {}
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        now = clock.now_rfc3339()
        obj["status"]["conditions"] = [{"lastProbeTime": None, "lastTransitionTime": now, **gated}]


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    next_generation(new, old)


def prepare_status(new: Object, old: Object) -> None:
    """The spec and the owners stay; the class given at creation does not get lost."""
    new["spec"] = old.get("spec") or {}
    metadata, before = new.setdefault("metadata", {}), old.get("metadata") or {}
    for field in ("ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    status, status_before = new.setdefault("status", {}), old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and field in status_before:
            status[field] = status_before[field]


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = validate_pod(obj)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def warnings(obj: Object) -> list[str]:
    found = pod_warnings(obj)
    texts = names.as_dns_label(name_of(obj))
    if texts:
        found.insert(
            0,
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(texts)}]",
        )
    return found


def grace(obj: Object, asked: int | None) -> int | None:
    """Seconds until a delete is final. A pod that runs nowhere, or no longer, goes at once."""
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in FINISHED:
        return 0
    period = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
    return 1 if period < 0 else int(period)


def selectable(obj: Object) -> dict[str, str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    addresses = status.get("podIPs") or ()
    return {
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": (addresses[0].get("ip") if addresses else status.get("podIP")) or "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


SERVED = ServedKind(
    kind=POD,
    schema=schema_of("io.k8s.api.core.v1.Pod"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Ready", ready_of, description="How many of the pod's containers are ready for traffic."),
        Column("Status", status_of, description="What the pod's containers are doing, in one word."),
        Column("Restarts", restarts_of, description="How often containers were restarted, and when last."),
        AGE,
        Column("IP", ip_of, priority=1),
        Column("Node", node_of, priority=1),
        Column("Nominated Node", nominated_node_of, priority=1),
        Column("Readiness Gates", readiness_gates_of, priority=1),
    ),
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    default=default_pod,
    validate=validate,
    validate_update=validate_pod_update,
    validate_status=validate_pod_status,
    warnings=warnings,
    selectable=selectable,
    selectable_names=frozenset(selectable({})),
    has_status=True,
    parts=PARTS,
    grace=grace,
    subresources={
        "attach": ATTACH,
        "binding": BINDING_OF_POD,
        "eviction": EVICTION,
        "exec": EXEC,
        "log": LOG,
        "portforward": PORT_FORWARD,
        "proxy": POD_PROXY,
    },
    returns_deleted=True,
)
