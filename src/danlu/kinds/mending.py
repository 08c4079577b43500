"""The command that mends it: what is added to the words in which a cluster says why a pod does not run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from danlu.meta.kind import Object

IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable")
DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

IMAGE = "check the image's name and that the nodes may pull it, then `kubectl replace --force -f FILE`"
RIGHTS = "the operator may not; `danlu install` gives it the rights it needs"
QUOTA = "`kubectl describe quota` shows what uses it up"
ROOM = "`kubectl describe nodes` shows what they have and what is taken"
MISSING = "`kubectl get {}` shows those that are there; make it, or name another"

_MISSING = re.compile(r'\b(persistentvolumeclaim|secret|configmap|serviceaccount)s? "[^"]*" not found', re.IGNORECASE)
_NO_PRIORITY = re.compile(r"no PriorityClass with name \S+ was found")
_NO_ROOM = re.compile(r"^0/\d+ nodes are available: .*Insufficient ")
_NO_RIGHT = re.compile(r'is forbidden: User "[^"]*" cannot ')


def with_remedy(reason: str, message: str) -> str:
    """The message, and after it what to do; as it is where it says that itself or nothing is known."""
    remedy = _remedy(reason, message)
    return f"{message.rstrip('. ')}; {remedy}" if remedy and "`" not in message else message


def _remedy(reason: str, message: str) -> str:
    if reason in IMAGE_REASONS:
        return IMAGE
    if _NO_RIGHT.search(message):
        return RIGHTS
    if "exceeded quota" in message:
        return QUOTA
    if found := _MISSING.search(message):
        return MISSING.format({"persistentvolumeclaim": "pvc"}.get(found[1].lower(), found[1].lower()))
    if _NO_PRIORITY.search(message):
        return MISSING.format("priorityclass")
    return ROOM if _NO_ROOM.search(message) else ""


def why_unbound(claim: Object, classes: Iterable[Object]) -> str:
    """What a claim waits for that nobody will bring; empty when it is bound, or a provisioner is at it."""
    if (claim.get("status") or {}).get("phase") == "Bound" or claim["spec"].get("volumeName"):
        return ""
    name = claim["metadata"]["name"]
    known = {one["metadata"]["name"]: one for one in classes}
    asked = claim["spec"].get("storageClassName")
    if asked == "":
        return f'PersistentVolumeClaim "{name}" waits for a PersistentVolume of its size; `kubectl get pv` shows them'
    if asked and asked not in known:
        there = ", ".join(sorted(known)) or "none"
        return (
            f'PersistentVolumeClaim "{name}" names StorageClass "{asked}", which does not exist (there are: {there}); '
            "`kubectl get storageclass` shows them"
        )
    if not asked and not any(is_default(one) for one in known.values()):
        return (
            f'PersistentVolumeClaim "{name}" names no StorageClass and there is no default one; choose it: `kubectl '
            f"annotate storageclass {next(iter(sorted(known)), 'NAME')} {DEFAULT_CLASS[0]}=true`"
        )
    return ""


def is_default(storage_class: Object) -> bool:
    notes: Mapping[str, str] = storage_class["metadata"].get("annotations") or {}
    return any(notes.get(name) == "true" for name in DEFAULT_CLASS)
