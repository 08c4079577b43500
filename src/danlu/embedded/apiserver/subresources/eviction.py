"""`pods/NAME/eviction`: a delete that asks the pod's PodDisruptionBudget first."""

from __future__ import annotations

from danlu.embedded import disruptions
from danlu.embedded.apiserver import bodydecoder, deletehandler, writeoptions
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.embedded.storage import Stored
from danlu.errors import BadRequest, Forbidden, InternalError, MethodNotAllowed, NotFound, TooManyRequests
from danlu.meta import clock, conditions, objects
from danlu.meta.kind import Kind, Object
from danlu.meta.labels import from_label_selector
from danlu.meta.schema import native
from danlu.meta.wellknown import POD, POD_DISRUPTION_BUDGET

KIND = Kind("policy", "v1", "Eviction", "evictions")
MOST_DISRUPTED = 2000  # evicted pods that the controller has not confirmed yet
_ENDED_OR_NOT_BEGUN = ("Succeeded", "Failed", "Pending")
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def handle(call: Call) -> Response:
    served = call.served
    assert served is not None
    if call.method != "POST":
        raise MethodNotAllowed()
    writeoptions.check(call, writeoptions.CREATE)
    eviction = bodydecoder.read_as(call, native("io.k8s.api.policy.v1.Eviction"), KIND)
    name = (eviction.get("metadata") or {}).get("name") or call.name
    if name != call.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    stored = call.server.store.latest(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name)
    asked = deletehandler.Options.of(eviction.get("deleteOptions") or {})
    asked.dry_run = asked.dry_run or call.dry_run
    if not _needs_no_leave(stored.obj):
        budget = _budget_of(call, stored.obj)
        if budget is not None and not _may_go_unhealthy(stored.obj, budget):
            _take(call, budget, write=not asked.dry_run)
        if not asked.dry_run:
            stored = await _mark(call, stored)
    await deletehandler.remove(call, served, stored, asked)
    return Response.json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _needs_no_leave(pod: Object) -> bool:
    return objects.is_deleting(pod) or objects.get(pod, "status.phase", "Pending") in _ENDED_OR_NOT_BEGUN


def _budget_of(call: Call, pod: Object) -> Object | None:
    found = []
    for one in call.server.store.scan_latest(POD_DISRUPTION_BUDGET.resource, call.namespace):
        if from_label_selector(objects.get(one.obj, "spec.selector")).matches(objects.labels_of(pod)):
            found.append(one.obj)
    if len(found) > 1:
        raise InternalError(_SEVERAL)
    return found[0] if found else None


def _may_go_unhealthy(pod: Object, budget: Object) -> bool:
    """A pod that is not ready costs the budget nothing; by default it may go only while enough others are."""
    if conditions.is_true(objects.get(pod, "status.conditions", ()), "Ready"):
        return False
    if objects.get(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, wanted = (objects.get(budget, f"status.{key}", 0) for key in ("currentHealthy", "desiredHealthy"))
    return bool(healthy >= wanted > 0)


def _take(call: Call, budget: Object, *, write: bool) -> None:
    """One of what the budget allows. From reading it to writing nothing awaits: no two take the same one."""
    name, status = objects.name(budget), budget.setdefault("status", {})
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", retry_s=10)
    if allowed < 0:
        raise Forbidden("pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MOST_DISRUPTED:
        raise Forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refusal(f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    now = clock.now_rfc3339()
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        disruptions.say(budget, status, disruptions.TOO_FEW, now)
    status.setdefault("disruptedPods", {})[call.name] = now
    if write:
        call.server.store.put(POD_DISRUPTION_BUDGET.resource, budget)


def _refusal(text: str, retry_s: int = 0) -> TooManyRequests:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    return TooManyRequests(_REFUSED, {**details, "retryAfterSeconds": retry_s} if retry_s else details)


async def _mark(call: Call, stored: Stored) -> Stored:
    """Why it is about to go, for whoever finds it failed later (a Job's podFailurePolicy)."""
    pod = stored.obj
    held = pod.setdefault("status", {}).setdefault("conditions", [])
    now, text = clock.now_rfc3339(), "Eviction API: evicting"
    conditions.set(held, "DisruptionTarget", "True", "EvictionByEvictionAPI", text, now)
    return await call.server.store.put(POD.resource, pod)


EVICTION = Subresource(("create",), KIND, handle)
