"""Nodes. Unlike other kinds a node may bring its status along when it is created."""

from __future__ import annotations

import ipaddress

from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.apiserver.subresources.proxy import NODE_PROXY
from danlu.embedded.builtin._shared.diffs import as_struct
from danlu.embedded.builtin._shared.hooks import AGE, NAME, keep_spec, keep_status, schema_of
from danlu.embedded.builtin._shared.quantities import canonicalise
from danlu.embedded.builtin._shared.resources import amount_errors
from danlu.meta import conditions, names
from danlu.meta.addresses import cidr_errors
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.labels import validate_label_key
from danlu.meta.wellknown import NODE

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT_FIELDS: Object = {"key": "", "value": "", "effect": "", "timeAdded": None}
_INFO_FIELDS = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def default(obj: Object) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        spec = obj["spec"] = {}
    _follow_cidr(spec)
    status = obj.get("status")
    if not isinstance(status, dict):
        status = obj["status"] = {}
    canonicalise(status.get("capacity"))
    canonicalise(status.get("allocatable"))
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    status["nodeInfo"] = dict.fromkeys(_INFO_FIELDS, "") | (status.get("nodeInfo") or {})


def _follow_cidr(spec: Object) -> None:
    """`podCIDR` is the first of `podCIDRs`; where both are sent, the singular wins."""
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not several or several[0] != one):
        spec["podCIDRs"] = [one]
    elif several and not one:
        spec["podCIDR"] = several[0]


def taint_errors(taints: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        field = f"{path}[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        errors += validate_label_key(key, f"{field}.key")
        wrong = names.label_value(value)
        if wrong:
            errors.append(invalid(f"{field}.value", value, ";".join(wrong)))
        if not effect:
            errors.append(required(f"{field}.effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{field}.effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            text = "taints must be unique by key and effect pair"
            errors.append(FieldError("FieldValueDuplicate", field, as_struct(taint, _TAINT_FIELDS), text))
        seen.add((key, effect))
    return errors


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = taint_errors(spec.get("taints") or [], "metadata.taints")
    errors += _resource_errors(obj)
    cidrs = spec.get("podCIDRs") or []
    for index, cidr in enumerate(cidrs):
        errors += cidr_errors(cidr, f"spec.podCIDRs[{index}]")
    if len(cidrs) > 1 and not errors:
        families = {ipaddress.ip_network(cidr, strict=False).version for cidr in cidrs}
        if len(cidrs) > 2 or len(families) < 2:
            errors.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))
    return errors


def _resource_errors(obj: Object) -> list[FieldError]:
    status = obj.get("status") or {}
    return [
        error
        for field in ("capacity", "allocatable")
        for name, value in (status.get(field) or {}).items()
        for error in amount_errors(f"status.{field}.{name}", name, value)
    ]


def validate_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        text = 'node updates may not change podCIDR except from "" to valid'
        errors.append(forbidden("spec.podCIDRs", text))
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        text = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", text))
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def validate_status(new: Object, old: Object) -> list[FieldError]:
    errors = _resource_errors(new)
    seen: set[tuple[object, object]] = set()
    for index, address in enumerate((new.get("status") or {}).get("addresses") or ()):
        key = (address.get("type"), address.get("address"))
        if key in seen:
            shown = as_struct(address, {"type": "", "address": ""})
            errors.append(duplicate(f"status.addresses[{index}]", shown))
        seen.add(key)
    return errors


# -- columns


def _status(obj: Object) -> str:
    ready = conditions.get((obj.get("status") or {}).get("conditions"), "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if (obj.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(obj: Object) -> str:
    labels: dict[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL) or "")
    return ",".join(sorted(roles - {""})) or "<none>"


def _info(obj: Object, field: str, missing: str = "<unknown>") -> str:
    return str(((obj.get("status") or {}).get("nodeInfo") or {}).get(field) or missing)


def _kernel(obj: Object) -> str:
    kernel, architecture = _info(obj, "kernelVersion"), _info(obj, "architecture", "")
    return f"{kernel} ({architecture})" if architecture else kernel


def _address(obj: Object, sort: str) -> str:
    for address in (obj.get("status") or {}).get("addresses") or ():
        if address.get("type") == sort:
            return str(address.get("address") or "")
    return "<none>"


SERVED = ServedKind(
    kind=NODE,
    schema=schema_of("io.k8s.api.core.v1.Node"),
    name_errors=names.as_dns_subdomain,
    columns=(
        NAME,
        Column("Status", _status, description="The status of the node"),
        Column("Roles", _roles, description="The roles of the node"),
        AGE,
        Column("Version", lambda obj: _info(obj, "kubeletVersion", ""), description="Version of the node's agent."),
        Column("Internal-IP", lambda obj: _address(obj, "InternalIP"), priority=1),
        Column("External-IP", lambda obj: _address(obj, "ExternalIP"), priority=1),
        Column("OS-Image", lambda obj: _info(obj, "osImage"), priority=1),
        Column("Kernel-Version", _kernel, priority=1),
        Column("Container-Runtime", lambda obj: _info(obj, "containerRuntimeVersion"), priority=1),
    ),
    prepare_update=keep_status,
    prepare_status=keep_spec,
    default=default,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    selectable=lambda obj: {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"},
    selectable_names=frozenset({"spec.unschedulable"}),
    has_status=True,
    subresources={"proxy": NODE_PROXY},
)
