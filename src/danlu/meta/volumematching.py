"""Which persistent volume may serve which claim: the rules that the volume controller and the scheduler share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from danlu.meta import labels
from danlu.meta.kind import Object
from danlu.meta.quantity import ZERO, Quantity, parse


def class_of_volume(volume: Object) -> str:
    old_style = (volume["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old_style or (volume.get("spec") or {}).get("storageClassName") or "")


def class_of_claim(claim: Object) -> str:
    old_style = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(old_style or (claim.get("spec") or {}).get("storageClassName") or "")


def requested(claim: Object) -> Quantity:
    stated = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return parse(stated) if stated is not None else ZERO


def capacity(volume: Object) -> Quantity:
    stated = ((volume.get("spec") or {}).get("capacity") or {}).get("storage")
    return parse(stated) if stated is not None else ZERO


def refers_to(reference: Object | None, claim: Object) -> bool:
    """Whether a volume's claimRef means this claim; one without uid means any claim of that name."""
    if not reference:
        return False
    meta = claim["metadata"]
    if reference.get("name") != meta["name"] or (reference.get("namespace") or "") != (meta.get("namespace") or ""):
        return False
    return not reference.get("uid") or reference.get("uid") == meta.get("uid")


def mode_of(spec: Object) -> str:
    return spec.get("volumeMode") or "Filesystem"


def fits(volume: Object, claim: Object) -> bool:
    """Size and mode: what even a volume that was promised to the claim must have."""
    if mode_of(volume.get("spec") or {}) != mode_of(claim.get("spec") or {}):
        return False
    return capacity(volume) >= requested(claim)


def serves(volume: Object, claim: Object) -> bool:
    """A free volume that satisfies all that the claim asks."""
    spec, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    if spec.get("claimRef") or volume["metadata"].get("deletionTimestamp"):
        return False
    if (volume.get("status") or {}).get("phase") != "Available" or not fits(volume, claim):
        return False
    if class_of_volume(volume) != class_of_claim(claim):
        return False
    if wanted.get("selector") is not None:
        selector = labels.from_label_selector(wanted["selector"])
        if not selector.matches(volume["metadata"].get("labels") or {}):
            return False
    return set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())


def best_volume(
    volumes: Iterable[Object], claim: Object, suits: Callable[[Object], bool] = lambda _: True
) -> Object | None:
    """The volume promised to the claim, else the smallest free one that serves it; `suits` judges the node."""
    best: Object | None = None
    for volume in volumes:
        if refers_to((volume.get("spec") or {}).get("claimRef"), claim):
            if fits(volume, claim) and suits(volume):
                return volume
            continue
        if serves(volume, claim) and suits(volume) and (best is None or capacity(volume) < capacity(best)):
            best = volume
    return best
