"""Claims that wait in vain, for kinds whose pods wait for them: a scheduler says only that they are unbound."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.client.informer import Informer
from danlu.diagnose.cause import Cause
from danlu.diagnose.claims import why_unbound
from danlu.kinds import references
from danlu.kinds.platform import Right
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import PERSISTENT_VOLUME_CLAIM

RIGHTS = (
    Right(("",), ("persistentvolumeclaims",), ("get", "list", "watch")),
    Right(("storage.k8s.io",), ("storageclasses",), ("get", "list", "watch")),
)


def unbound(pods: Iterable[Object], claims: Informer, classes: Informer) -> dict[str, Cause]:
    """By name: why. Looked for only when a pod has no node: most pods have one."""
    found: dict[str, Cause] = {}
    for pod in pods:
        scheduled = conditions.get((pod.get("status") or {}).get("conditions"), "PodScheduled")
        if scheduled is None or scheduled.get("status") != "False":
            continue
        for need in references.of_pod(pod["spec"]):
            if need.kind == PERSISTENT_VOLUME_CLAIM and need.name not in found:
                claim = claims.get(pod["metadata"]["namespace"], need.name)
                if claim is not None and (why := why_unbound(claim, classes.list())):
                    found[need.name] = why
    return found
