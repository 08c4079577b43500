"""One pod while the kiln is not cold, and a Service before the page that it serves; its phase is the pod's."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.kinds._gang import markers
from danlu.kinds.kiln.schema import KILN
from danlu.kinds.webapp import CREATING, PAUSED, AppPlace
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.runtime.reconcile import Creation, Outcome


PORT = 8000
LABEL = "pottery.example.dev/kiln"


def reconcile(kiln: Object, pods: Sequence[Object], services: Sequence[Object], now: str) -> Outcome:
    if kiln["spec"].get("cold"):
        return Outcome(delete=list(pods), status=_status(kiln, "Cold", PAUSED, now))
    firing = any(conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready") for pod in pods)
    missing = [*([] if pods else [_pod(kiln)]), *([] if services else [_service(kiln)])]
    phase, reason = ("Firing", "Hot") if firing else ("Pending", CREATING)
    return Outcome(create=[Creation(child) for child in missing], status=_status(kiln, phase, reason, now))


def place(kiln: Object) -> AppPlace:
    """Where the page of a kiln is served."""
    return AppPlace(_service(kiln)["metadata"]["name"], PORT)


def _status(kiln: Object, phase: str, reason: str, now: str) -> Object:
    found = [dict(one) for one in (kiln.get("status") or {}).get("conditions") or []]
    conditions.set(found, "Ready", "True" if phase == "Firing" else "False", reason, "", now)
    return {"phase": phase, "conditions": found}


def _pod(kiln: Object) -> Object:
    spec = kiln["spec"]
    page = f"echo firing at {spec.get('heat', 900)} | tee index.html; exec python3 -m http.server --bind $IP {PORT}"
    container = {
        "name": "kiln",
        "image": spec.get("image", "python:3"),
        "command": ["sh", "-c", f"cd $(mktemp -d); {page}"],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": str(spec.get("cores", 1))}},
    }
    queue = spec.get("queue")
    scheduler = {"schedulerName": markers.SCHEDULER} if queue else {}
    pod = _child(kiln, "Pod", "kiln", {"containers": [container], "terminationGracePeriodSeconds": 0, **scheduler})
    pod["metadata"]["labels"] |= {markers.QUEUE_NAME: queue} if queue else {}
    return pod


def _service(kiln: Object) -> Object:
    return _child(kiln, "Service", "page", {"selector": {LABEL: kiln["metadata"]["name"]}, "ports": [{"port": PORT}]})


def _child(kiln: Object, kind: str, word: str, spec: Object) -> Object:
    meta = kiln["metadata"]
    owner = {"apiVersion": KILN.api_version, "kind": KILN.kind, "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": f"{meta['name']}-{word}",
            "namespace": meta["namespace"],
            "labels": {LABEL: meta["name"]},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": spec,
    }
