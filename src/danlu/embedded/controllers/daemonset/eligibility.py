"""Which nodes a daemon's pod belongs on, and how it is bound to one; pure."""

from __future__ import annotations

from danlu.meta import nodeselection, objects
from danlu.meta.kind import Object

TOLERATED: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def tolerations(spec: Object) -> list[Object]:
    """The template's own, and those that keep a daemon on a node in trouble."""
    wanted = list(spec.get("tolerations") or ())
    for key, effect in (*TOLERATED, *((ON_HOST_NETWORK,) if spec.get("hostNetwork") else ())):
        made = {"key": key, "operator": "Exists", "effect": effect}
        if made not in wanted:
            wanted.append(made)
    return wanted


def judge(node: Object, daemon_set: Object) -> tuple[bool, bool]:
    """Whether a pod should be put on the node, and whether one that is there may stay."""
    spec = daemon_set["spec"]["template"]["spec"]
    name = node["metadata"]["name"]
    if spec.get("nodeName") not in (None, "", name) or not _is_wanted(spec, node):
        return False, False
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerated = tolerations(spec)
    if nodeselection.untolerated(taints, tolerated) is not None:
        driving_out = [taint for taint in taints if taint["effect"] == "NoExecute"]
        return False, nodeselection.untolerated(driving_out, tolerated) is None
    return True, True


def _is_wanted(spec: Object, node: Object) -> bool:
    labels = objects.labels_of(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = objects.get(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return nodeselection.any_term_matches(required.get("nodeSelectorTerms") or (), labels, node["metadata"]["name"])


def bind(spec: Object, node: str) -> None:
    """Lets the pod run on this node only; the template's own required terms were judged already."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    required["nodeSelectorTerms"] = [term]


def target(pod: Object) -> str:
    """The node that the pod is on, or is meant for; empty for a pod of other making."""
    bound: str = pod["spec"].get("nodeName") or ""
    if bound:
        return bound
    required = objects.get(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""
