"""Signs approved CertificateSigningRequests of API clients (kubernetes.io/kube-apiserver-client).

Other signers are other people's: `kubectl get csr` shows Approved until whoever owns the signer has signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from danlu.meta import clock, conditions, objects
from danlu.meta.kind import Object
from danlu.meta.wellknown import CERTIFICATE_SIGNING_REQUEST
from danlu.runtime import Controller, Manager, Request

Sign = Callable[[str, Sequence[str], int | None], str]  # request, usages, seconds -> certificate; raises ValueError
SIGNER = "kubernetes.io/kube-apiserver-client"
ALLOWED_USAGES = frozenset({"digital signature", "key encipherment", "client auth"})


def make(manager: Manager, sign: Sign) -> Controller:
    requests = manager.informer(CERTIFICATE_SIGNING_REQUEST)

    async def reconcile(request: Request) -> None:
        found = requests.get("", request.name)
        if found is None or not is_waiting(found):
            return
        status = objects.copy(found["status"])
        problem = usage_problem(found["spec"])
        try:
            if problem:
                raise ValueError(problem)
            spec = found["spec"]
            status["certificate"] = sign(spec["request"], spec.get("usages") or (), spec.get("expirationSeconds"))
        except ValueError as error:
            failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": str(error)}
            status["conditions"].append({**failed, "lastUpdateTime": clock.now_rfc3339()})
        await manager.client.update_status(CERTIFICATE_SIGNING_REQUEST, {**found, "status": status})

    controller = Controller("certificates", reconcile)
    controller.watches(requests)
    return controller


def is_waiting(request: Object) -> bool:
    """Approved for our signer, and neither signed nor given up."""
    status = request.get("status") or {}
    held = status.get("conditions")
    if request["spec"].get("signerName") != SIGNER or status.get("certificate"):
        return False
    return conditions.is_true(held, "Approved") and not conditions.is_true(held, "Failed")


def usage_problem(spec: Object) -> str:
    usages = set(spec.get("usages") or ())
    if "client auth" not in usages:
        return 'usages must include "client auth"'
    further = sorted(usages - ALLOWED_USAGES)
    return f"usages contained disallowed values: {', '.join(further)}" if further else ""
