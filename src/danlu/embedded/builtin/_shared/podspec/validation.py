"""What Kubernetes demands of a pod spec as a whole; containers, volumes and placement have files of their own."""

from __future__ import annotations

import re

from danlu.embedded.builtin._shared.podspec.containers import PodContext, ephemeral_errors, init_errors, regular_errors
from danlu.embedded.builtin._shared.podspec.placementrules import affinity_errors, spread_errors, toleration_errors
from danlu.embedded.builtin._shared.podspec.security import host_user_errors, pod_security_errors, system_errors
from danlu.embedded.builtin._shared.podspec.totals import container_requests
from danlu.embedded.builtin._shared.podspec.volumes import volume_errors
from danlu.embedded.builtin._shared.quantities import parsed
from danlu.embedded.builtin._shared.resources import (
    amount_errors,
    container_name_texts,
    name_errors,
    requirement_errors,
)
from danlu.meta import names
from danlu.meta.addresses import address_errors
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required, too_long
from danlu.meta.integers import decimal
from danlu.meta.kind import Object
from danlu.meta.labels import validate_labels
from danlu.meta.metadata import validate_annotations

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION = ("PreemptLowerPriority", "Never")
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
MAX_NAMESERVERS, MAX_SEARCHES, MAX_SEARCH_LENGTH = 3, 32, 2048
_SEARCH_PART = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_search = re.compile(rf"{_SEARCH_PART}(\.{_SEARCH_PART})*")
_COST = re.compile(r"0|-?[1-9][0-9]*")


def validate_pod_template(template: Object, path: str) -> list[FieldError]:
    """A template inside another object; `path` is `spec.template` there."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = validate_labels(metadata.get("labels"), f"{path}.labels")
    errors += validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    errors += annotation_errors(metadata.get("annotations") or {}, f"{path}.annotations")
    errors += validate_pod_spec(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors


def annotation_errors(annotations: dict[str, str], path: str) -> list[FieldError]:
    cost = annotations.get(DELETION_COST)
    if cost is None or (_COST.fullmatch(cost) and -(2**31) <= decimal(cost) < 2**31):
        return []
    return [invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer")]


def validate_pod_spec(spec: Object, path: str, *, is_pod: bool = False, pod_name: str = "") -> list[FieldError]:
    """`is_pod` is False inside a template; `pod_name` is known for pods only."""
    get = spec.get
    volumes, errors = volume_errors(get("volumes") or [], f"{path}.volumes", pod_name)
    if get("terminationGracePeriodSeconds") is None:
        errors.insert(0, required(f"{path}.terminationGracePeriodSeconds"))
    claims = get("resourceClaims") or []
    pod = PodContext(
        volumes=volumes,
        claims=frozenset(claim.get("name") or "" for claim in claims) - {""},
        grace=get("terminationGracePeriodSeconds"),
        restart_policy=get("restartPolicy") or "",
        host_users=get("hostUsers") is not False,
        is_pod=is_pod,
    )
    containers, inits = get("containers") or [], get("initContainers") or []
    if claims:
        errors += _claim_errors(claims, f"{path}.resourceClaims")
    errors += regular_errors(containers, f"{path}.containers", pod)
    if inits:
        errors += init_errors(inits, containers, f"{path}.initContainers", pod)
    if get("ephemeralContainers"):
        others = [*containers, *inits]
        errors += ephemeral_errors(spec["ephemeralContainers"], others, f"{path}.ephemeralContainers", pod)
    if get("resources"):
        errors += _pod_resource_errors(spec, f"{path}.resources")
    if get("hostNetwork"):
        errors += _host_network_errors(containers, f"{path}.containers", is_pod)
    errors += _policy_errors(spec, path)
    errors += _rare_errors(spec, path)
    return errors


def _policy_errors(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, choices in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        value = spec.get(field)
        if value not in choices:
            wrong = not_supported(f"{path}.{field}", value, choices)
            errors.append(wrong if value else required(f"{path}.{field}"))
    if spec.get("nodeSelector"):
        errors += validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    errors += pod_security_errors(spec, path)
    errors += affinity_errors(spec.get("affinity"), f"{path}.affinity")
    errors += _dns_errors(spec.get("dnsConfig"), spec.get("dnsPolicy"), f"{path}.dnsConfig")
    return errors


def _rare_errors(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        where, name = f"{path}.readinessGates[{index}].conditionType", gate.get("conditionType") or ""
        errors += [invalid(where, name, text) for text in names.qualified_name(name)]
    errors += _gate_errors(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    if spec.get("topologySpreadConstraints"):
        errors += spread_errors(spec["topologySpreadConstraints"], f"{path}.topologySpreadConstraints")
    errors += host_user_errors(spec, path)
    errors += _hostname_errors(spec, path)
    errors += _name_errors(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        texts = names.in_range(deadline, 1, 2**31 - 1)
        errors += [invalid(f"{path}.activeDeadlineSeconds", deadline, text) for text in texts]
    if spec.get("tolerations"):
        errors += toleration_errors(spec["tolerations"], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        errors += _alias_errors(alias, f"{path}.hostAliases[{index}]")
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION:
        wrong = not_supported(f"{path}.preemptionPolicy", policy, PREEMPTION)
        errors.append(wrong if policy else required(f"{path}.preemptionPolicy"))
    for name, amount in (spec.get("overhead") or {}).items():
        where = f"{path}.overhead.limits[{name}]"
        errors += name_errors(where, name, container_name_texts) + amount_errors(where, name, amount)
    errors += system_errors(spec, path)
    return errors + _file_key_errors(spec, path)


def _name_errors(spec: Object, path: str) -> list[FieldError]:
    """Names of other objects, in Kubernetes' order."""
    errors: list[FieldError] = []
    for field in ("serviceAccountName", "nodeName"):
        if value := spec.get(field):
            errors += [invalid(f"{path}.{field}", value, text) for text in names.as_dns_subdomain(value)]
    for field in ("hostname", "subdomain"):
        if value := spec.get(field):
            errors += [invalid(f"{path}.{field}", value, text) for text in names.as_dns_label(value)]
    for field in ("priorityClassName", "runtimeClassName"):
        if value := spec.get(field):
            errors += [invalid(f"{path}.{field}", value, text) for text in names.as_dns_subdomain(value)]
    return errors


def _hostname_errors(spec: Object, path: str) -> list[FieldError]:
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    where = f"{path}.hostnameOverride"
    errors: list[FieldError] = []
    if spec.get("setHostnameAsFQDN"):
        errors.append(forbidden(where, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        errors.append(forbidden(where, "may not be specified when hostNetwork is true"))
    if len(name) > 64:
        errors.append(too_long(where, name, 64))
    return errors + [invalid(where, name, text) for text in names.dns_subdomain(name)]


def _claim_errors(claims: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in seen:
            errors.append(duplicate(f"{where}.name", name))
        else:
            errors += [invalid(f"{where}.name", name, text) for text in names.dns_label(name)]
        seen.add(name)
        given = [source for source in sources if claim.get(source) is not None]
        if len(given) > 1:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(where, claim, text))
        if not given:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(where, claim, text))
        for source in given:
            value = claim[source]
            errors += [invalid(f"{where}.{source}", value, text) for text in names.dns_subdomain(value)]
    return errors


def _pod_resource_errors(spec: Object, path: str) -> list[FieldError]:
    """Resources of the pod as a whole, against the sum of what its containers ask for."""
    resources = spec["resources"]
    errors: list[FieldError] = []
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += requirement_errors({**resources, "claims": None}, path, pod_level=True)
    totals = container_requests(spec)
    for name, value in (resources.get("requests") or {}).items():
        asked, total = parsed(value), totals.get(name)
        if asked is not None and total is not None and total > asked:
            text = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(f"{path}.requests[{name}]", str(asked), text))
    limits = resources.get("limits") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            limit, most = parsed(value), parsed(limits[name]) if name in limits else None
            if limit is not None and most is not None and limit > most:
                where = f"{path}.containers[{index}][{name}].limits"
                errors.append(invalid(where, str(limit), f"must be less than or equal to pod limits of {most}"))
    return errors


def _host_network_errors(containers: list[Object], path: str, is_pod: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if (is_pod or host) and host != (port.get("containerPort") or 0):
                text = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{path}[{index}].ports[{at}].hostPort", host, text))
    return errors


def _gate_errors(gates: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        errors += [invalid(f"{path}[{index}]", name, text) for text in names.qualified_name(name)]
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def _alias_errors(alias: Object, path: str) -> list[FieldError]:
    errors = address_errors(alias.get("ip") or "", f"{path}.ip")
    for index, name in enumerate(alias.get("hostnames") or ()):
        errors += [invalid(f"{path}.hostnames[{index}]", name, text) for text in names.dns_subdomain(name)]
    return errors


def _dns_errors(config: Object | None, policy: str | None, path: str) -> list[FieldError]:
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", text)]
    if config is None:
        return []
    errors: list[FieldError] = []
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > MAX_NAMESERVERS:
        text = f"must not have more than {MAX_NAMESERVERS} nameservers"
        errors.append(invalid(f"{path}.nameservers", servers, text))
    for index, server in enumerate(servers):
        errors += address_errors(server, f"{path}.nameservers[{index}]")
    if len(searches) > MAX_SEARCHES:
        errors.append(invalid(f"{path}.searches", searches, f"must not have more than {MAX_SEARCHES} search paths"))
    if len(" ".join(searches)) > MAX_SEARCH_LENGTH:
        text = f"must not have more than {MAX_SEARCH_LENGTH} characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, text))
    for index, search in enumerate(searches):
        errors += _search_errors(search, f"{path}.searches[{index}]")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _search_errors(search: str, path: str) -> list[FieldError]:
    if search == ".":
        return []
    search = search.removesuffix(".")
    errors = [invalid(path, search, names.max_length_text(253))] if len(search) > 253 else []
    if not _search.fullmatch(search):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            "must start and end with an alphanumeric character"
        )
        shown = names.regex_text(text, rf"{_SEARCH_PART}(\.{_SEARCH_PART})*", "example.com")
        errors.append(invalid(path, search, shown))
    return errors


def _file_key_errors(spec: Object, path: str) -> list[FieldError]:
    """Variables read from a file need a volume that the pod itself fills."""
    errors: list[FieldError] = []
    volumes: dict[str, Object] | None = None
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            for at, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                if volumes is None:
                    volumes = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
                name = reference.get("volumeName") or ""
                where = f"{path}.{kind}[{index}].env[{at}].valueFrom.fileKeyRef.volumeName"
                if name not in volumes:
                    errors.append(not_found(where, name))
                elif volumes[name].get("emptyDir") is None:
                    errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors
