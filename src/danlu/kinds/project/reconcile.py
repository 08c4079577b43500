"""One Project → its namespace's label, ResourceQuota, NetworkPolicy and ServiceAccount, and its status. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from danlu.diagnose import say, stated
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.project.quotaprofile import NAMESPACE, QUOTA_PROFILE
from danlu.kinds.project.schema import PROJECT
from danlu.meta import conditions, objects, owners
from danlu.meta.clock import rfc3339
from danlu.meta.kind import Kind, Object
from danlu.meta.objects import copy
from danlu.meta.podsecurity import BASELINE, PREFIX
from danlu.meta.quantity import parse
from danlu.meta.wellknown import NAMESPACE as NAMESPACE_KIND
from danlu.meta.wellknown import RESOURCE_QUOTA, SERVICE_ACCOUNT
from danlu.runtime.reconcile import EventNote, Outcome

LABEL = "project.tensorstack.dev"
QUOTA = "managed-project-quota"
ACCOUNT = "managed-project-sa"
POLICY = "managed-project-network"
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", True, ("netpol",))
ONLY_THE_PROJECT: Object = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]}
ENFORCE = f"{PREFIX}enforce"
WARN_AT = 0.8  # share of a quota


def reconcile(
    obj: Object, observed: Mapping[Kind, Sequence[Object]], now: datetime, settings: PlatformSettings
) -> Outcome:
    meta, spec = obj["metadata"], obj["spec"]
    outcome = Outcome()
    reason, message = _problem(obj, observed, settings)
    if reason != "NameMismatch":
        labels = {LABEL: "true", **_security_label(meta["name"], observed, settings)}
        outcome.apply = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": meta["name"], "labels": labels}},
            _child(obj, SERVICE_ACCOUNT, ACCOUNT, {}),
        ]
        quota = _quota(spec, _profile(spec, observed))
        if quota:
            outcome.apply.append(_child(obj, RESOURCE_QUOTA, QUOTA, {"spec": quota}))
        elif reason != "NotFound":  # a profile that is gone for a moment must not open the project to everything
            outcome.delete = [q for q in observed.get(RESOURCE_QUOTA, ()) if q["metadata"]["name"] == QUOTA]
        policy = _policy(spec)
        if policy and not settings.shared_network:
            outcome.apply.append(_child(obj, NETWORK_POLICY, POLICY, {"spec": policy}))
    status: Object = {"conditions": copy((obj.get("status") or {}).get("conditions") or [])}
    stamp = rfc3339(now)
    if conditions.set(status["conditions"], "Ready", "False" if reason else "True", reason or "Ready", message, stamp):
        outcome.events.append(EventNote("Warning" if reason else "Normal", reason or "Ready", message))
    _quota_status(observed, status, stamp, outcome)
    outcome.status = status
    return outcome


def _security_label(name: str, observed: Mapping[Kind, Sequence[Object]], settings: PlatformSettings) -> dict[str, str]:
    """Pod Security of a project: `baseline`, unless whoever may label namespaces has chosen another level. It is no
    field of a Project, which people of the project may change."""
    if settings.shared_network and name == "default":
        return {}  # the laptop's own
    here = (namespace for namespace in observed.get(NAMESPACE_KIND, ()) if namespace["metadata"]["name"] == name)
    chosen = next((objects.labels_of(namespace).get(ENFORCE) for namespace in here), None)
    return {ENFORCE: chosen or BASELINE}


def _problem(obj: Object, observed: Mapping[Kind, Sequence[Object]], settings: PlatformSettings) -> tuple[str, str]:
    meta, spec = obj["metadata"], obj["spec"]
    name, namespace = meta["name"], meta["namespace"]
    if name != namespace:
        return "NameMismatch", stated("DL-PROJECT-NAME", namespace=namespace, name=name)
    if spec.get("quotaProfile") and not _hard(spec) and _profile(spec, observed) is None:
        return "NotFound", say("DL-PROFILE-MISSING", profile=spec["quotaProfile"], namespace=NAMESPACE)
    if _policy(spec) and settings.shared_network:
        return "NotSupported", stated("DL-NETWORK-SHARED")
    return "", stated("DL-PROJECT-READY")


def _child(obj: Object, kind: Kind, name: str, body: Object) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": obj["metadata"]["namespace"],
            "ownerReferences": [owners.reference(obj, PROJECT)],
        },
        **body,
    }


def _profile(spec: Object, observed: Mapping[Kind, Sequence[Object]]) -> Object | None:
    return next((p for p in observed.get(QUOTA_PROFILE, ()) if p["metadata"]["name"] == spec.get("quotaProfile")), None)


def _quota(spec: Object, profile: Object | None) -> Object:
    """What the project says itself goes before the profile that it follows."""
    if own := _hard(spec):
        return {"hard": own}
    found: Object = (profile or {}).get("spec") or {}
    return found if found.get("hard") else {}


def _hard(spec: Object) -> Object:
    template = (spec.get("resourceQuota") or {}).get("template") or {}
    found: Object = (template.get("spec") or {}).get("hard") or {}
    return found


def _policy(spec: Object) -> Object:
    wanted = spec.get("networkPolicy") or {}
    found: Object = (wanted.get("template") or {}).get("spec") or {}
    return ONLY_THE_PROJECT if wanted.get("useDefaultTemplate") else found


def _quota_status(observed: Mapping[Kind, Sequence[Object]], status: Object, stamp: str, outcome: Outcome) -> None:
    """What is used, and a warning in time: a pod that is refused is noticed too late."""
    quota = next((q for q in observed.get(RESOURCE_QUOTA, ()) if q["metadata"]["name"] == QUOTA), None)
    seen = (quota or {}).get("status") or {}
    if not seen.get("hard"):
        conditions.remove(status["conditions"], "QuotaNearlyUsed")
        return
    status["resourceQuota"] = {"hard": seen["hard"], "used": seen.get("used") or {}}
    near = []
    for name, limit in sorted(seen["hard"].items()):
        used, hard = parse(str((seen.get("used") or {}).get(name, "0"))), parse(str(limit))
        if hard.milli() > 0 and used.milli() >= hard.milli() * WARN_AT:
            near.append(f"{name} {(seen.get('used') or {}).get(name)}/{limit}")
    told = {"share": f"{WARN_AT:.0%}", "used": ", ".join(near)}
    text = stated("DL-QUOTA-NEAR", **told) if near else stated("DL-QUOTA-FREE")
    changed = conditions.set(
        status["conditions"], "QuotaNearlyUsed", "True" if near else "False", "Used" if near else "Room", text, stamp
    )
    if near and changed:
        outcome.events.append(EventNote("Warning", "QuotaNearlyUsed", text))
