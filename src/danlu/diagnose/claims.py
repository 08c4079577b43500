"""Why a PersistentVolumeClaim is not bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from danlu.diagnose.cause import Cause
from danlu.diagnose.evidence import Evidence, message_of
from danlu.meta.kind import Object

DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def explain_claim(claim: Object, evidence: Evidence) -> list[Cause]:
    if (claim.get("status") or {}).get("phase") != "Pending":
        return []
    name = claim["metadata"]["name"]
    about = evidence.about(claim["metadata"].get("uid"))
    if any(event.get("reason") == "WaitForFirstConsumer" for event in about):
        return [Cause("DL-CLAIM-FIRST-USE", {"claim": name}, f"PersistentVolumeClaim/{name}", "WaitForFirstConsumer")]
    if cause := why_unbound(claim, evidence.classes):
        return [cause]
    told = next((event for event in about if event.get("type") == "Warning"), next(iter(about), None))
    message = message_of(told) if told else "Pending"
    return [Cause("DL-CLAIM-PENDING", {"claim": name, "message": message}, f"PersistentVolumeClaim/{name}", "Pending")]


def why_unbound(claim: Object, classes: Sequence[Object] | None) -> Cause | None:
    """What a claim waits for that nobody will bring; None when it is bound, or a provisioner is at it.

    `classes`: all StorageClasses; None when they are not known."""
    spec = claim.get("spec") or {}
    if (claim.get("status") or {}).get("phase") == "Bound" or spec.get("volumeName"):
        return None
    name, wanted = claim["metadata"]["name"], spec.get("storageClassName")
    about = f"PersistentVolumeClaim/{name}"
    if wanted == "":
        return Cause("DL-CLAIM-NO-VOLUME", {"claim": name}, about, "FailedBinding")
    if classes is None:
        return None
    known = {one["metadata"]["name"]: one for one in classes}
    if wanted and wanted not in known:
        told = {"claim": name, "class": wanted, "there": ", ".join(sorted(known)) or "none"}
        return Cause("DL-CLAIM-NO-CLASS", told, about, "ProvisioningFailed")
    if not wanted and not any(is_default(one) for one in known.values()):
        some = next(iter(sorted(known)), "NAME")
        return Cause("DL-CLAIM-NO-DEFAULT", {"claim": name, "class": some}, about, "FailedBinding")
    return None


def is_default(storage_class: Object) -> bool:
    notes: Mapping[str, str] = storage_class["metadata"].get("annotations") or {}
    return any(notes.get(name) == "true" for name in DEFAULT_CLASS)
