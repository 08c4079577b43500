"""What belongs to one ordinal of a stateful set: pod name, labels, claims and who owns these; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from danlu.embedded.controllers._shared import podcontrol as states
from danlu.meta import objects, owners
from danlu.meta.integers import decimal
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD, STATEFUL_SET

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"
_NUMBERED = re.compile(r"^(.*)-([0-9]+)$")


def ordinal(pod: Object) -> int:
    """-1 for a pod whose name has no number."""
    found = _NUMBERED.match(pod["metadata"]["name"])
    return decimal(found[2]) if found and decimal(found[2]) < 2**31 else -1


def is_member(stateful_set: Object, pod: Object) -> bool:
    found = _NUMBERED.match(pod["metadata"]["name"])
    return found is not None and found[1] == stateful_set["metadata"]["name"]


def start(stateful_set: Object) -> int:
    value: int = (stateful_set["spec"].get("ordinals") or {}).get("start") or 0
    return value


def ordinals(stateful_set: Object) -> range:
    first = start(stateful_set)
    return range(first, first + stateful_set["spec"]["replicas"])


def to_process(wanted: range, present: Mapping[int, Object], most_missing: int) -> list[int]:
    """The ordinals that one look is about: those with a pod, and the first `most_missing` without. What it costs
    follows from the pods that are there, not from the number that the spec asks for."""
    found: list[int] = []
    missing = 0
    for number in wanted:
        if number not in present:
            missing += 1
            if missing > most_missing:
                break
        found.append(number)
    later = (number for number in present if number in wanted and found and number > found[-1])
    return found + sorted(later)


def pod_name(stateful_set: Object, number: int) -> str:
    return f"{stateful_set['metadata']['name']}-{number}"


def revision_of(pod: Object) -> str:
    return objects.labels_of(pod).get(REVISION_LABEL, "")


def new_pod(stateful_set: Object, template: Object, number: int, revision: str) -> Object:
    pod = states.from_template(template, stateful_set, STATEFUL_SET)
    name = pod_name(stateful_set, number)
    meta = pod["metadata"]
    meta["name"] = name
    meta["labels"].update(_identity_labels(name, number))
    meta["labels"][REVISION_LABEL] = revision
    pod["spec"]["hostname"] = name
    if stateful_set["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = stateful_set["spec"]["serviceName"]
    pod["spec"]["volumes"] = _volumes(stateful_set, pod, number)
    return pod


def _identity_labels(name: str, number: int) -> dict[str, str]:
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(number)}


def missing_labels(pod: Object) -> dict[str, str]:
    """Identity labels that somebody took away or changed."""
    wanted = _identity_labels(pod["metadata"]["name"], ordinal(pod))
    if objects.labels_of(pod).get(POD_NAME_LABEL) == wanted[POD_NAME_LABEL]:
        return {}
    return wanted


# -- claims


def claim_name(stateful_set: Object, template: Object, number: int) -> str:
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{number}"


def claim_templates(stateful_set: Object) -> list[Object]:
    templates: list[Object] = stateful_set["spec"].get("volumeClaimTemplates") or []
    return templates


def _volumes(stateful_set: Object, pod: Object, number: int) -> list[Object]:
    """The claims of the ordinal, in place of volumes of the same name."""
    claims: list[Object] = [
        {
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, template, number)},
        }
        for template in claim_templates(stateful_set)
    ]
    taken = {claim["name"] for claim in claims}
    return claims + [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in taken]


def new_claims(stateful_set: Object, number: int) -> list[Object]:
    claims = []
    for template in claim_templates(stateful_set):
        meta = template["metadata"]
        selected = (stateful_set["spec"]["selector"] or {}).get("matchLabels") or {}
        made: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(stateful_set, template, number),
                "namespace": stateful_set["metadata"]["namespace"],
                "labels": {**(meta.get("labels") or {}), **selected},
            },
            "spec": objects.copy(template["spec"]),
        }
        if meta.get("annotations"):
            made["metadata"]["annotations"] = dict(meta["annotations"])
        claims.append(made)
    return claims


# -- persistentVolumeClaimRetentionPolicy: who is deleted with whom is said by owner references


def _deletes(stateful_set: Object, moment: str) -> bool:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(moment) == "Delete")


def _names(reference: Object, kind: Kind, owner: Object) -> bool:
    return bool(
        reference["apiVersion"] == kind.api_version
        and reference["kind"] == kind.kind
        and reference["name"] == owner["metadata"]["name"]
    )


def is_stale(claim: Object, kind: Kind, owner: Object) -> bool:
    """Whether the claim still belongs to a predecessor of the same name, with which it will be deleted."""
    for reference in owners.references(claim):
        if _names(reference, kind, owner):
            return bool(reference["uid"] != owner["metadata"].get("uid"))
    return False


def has_foreign_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    if not (_deletes(stateful_set, "whenScaled") or _deletes(stateful_set, "whenDeleted")):
        return False
    ours = {stateful_set["metadata"]["uid"], pod["metadata"].get("uid")}
    others = (reference for reference in owners.references(claim) if reference["uid"] not in ours)
    return any(
        one.get("controller") or _names(one, STATEFUL_SET, stateful_set) or _names(one, POD, pod) for one in others
    )


def wanted_owners(claim: Object, stateful_set: Object, pod: Object) -> list[Object]:
    """The owner references that the retention policy asks for on a claim of this pod."""
    held = owners.references(claim)
    if is_stale(claim, STATEFUL_SET, stateful_set) or is_stale(claim, POD, pod):
        return held
    others = [one for one in held if not _names(one, STATEFUL_SET, stateful_set) and not _names(one, POD, pod)]
    if has_foreign_controller(claim, stateful_set, pod):
        return others
    surplus = ordinal(pod) not in ordinals(stateful_set)
    if surplus and _deletes(stateful_set, "whenScaled"):
        return [*others, owners.reference(pod, POD)]
    if _deletes(stateful_set, "whenDeleted"):
        return [*others, owners.reference(stateful_set, STATEFUL_SET)]
    return others
