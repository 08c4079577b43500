"""`explain`: why an object waits or failed, the worst first; nothing when all is well."""

from __future__ import annotations

from danlu.diagnose.cause import Cause, causes_in
from danlu.diagnose.claims import explain_claim
from danlu.diagnose.evidence import NOTHING, Evidence
from danlu.diagnose.owners import explain_owner
from danlu.diagnose.pods import explain_pod
from danlu.meta import conditions
from danlu.meta.kind import Object


def explain(obj: Object, evidence: Evidence = NOTHING) -> list[Cause]:
    match obj.get("kind"):
        case "Pod":
            return explain_pod(obj, evidence)
        case "PersistentVolumeClaim":
            return explain_claim(obj, evidence)
        case "Node":
            return _explain_node(obj)
    return explain_owner(obj, evidence)


def _explain_node(node: Object) -> list[Cause]:
    if conditions.is_true((node.get("status") or {}).get("conditions"), "Ready"):
        return []
    name = node["metadata"]["name"]
    if told := causes_in(node, f"Node/{name}"):
        return told
    return [Cause("DL-NODE-LOST", {"node": name}, f"Node/{name}", "NodeNotReady")]
