"""The server writes into a request who asks for a certificate; who approves or signs needs the signer's leave."""

from __future__ import annotations

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.auth import csrsigner
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.meta.wellknown import CERTIFICATE_SIGNING_REQUEST

GROUP = CERTIFICATE_SIGNING_REQUEST.group
_VERBS = {"approval": "approve", "status": "sign"}


class CertificateAdmission(Handler):
    resources = frozenset({CERTIFICATE_SIGNING_REQUEST.resource})

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def mutate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.obj is None:
            return
        spec = a.obj.setdefault("spec", {})
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        spec["username"] = a.user.name
        given = {"uid": a.user.uid, "groups": list(a.user.groups), "extra": dict(a.user.extra)}
        spec.update({field: value for field, value in given.items() if value})

    def validate(self, a: Attributes) -> None:
        if a.obj is None:
            return
        signer = str((a.obj.get("spec") or {}).get("signerName") or "")
        if a.operation == CREATE:
            groups = csrsigner.organizations(str((a.obj.get("spec") or {}).get("request") or ""))
            if signer == "kubernetes.io/kube-apiserver-client" and "system:masters" in groups:
                text = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
                raise a.forbidden(text)
        verb = _VERBS.get(a.subresource, "")
        if a.operation != UPDATE or not verb or (verb == "sign" and not _is_signed_now(a)):
            return
        domain = signer.partition("/")[0]
        for name in (signer, f"{domain}/*"):
            if self._authorizer.authorize(a.user, verb, GROUP, "signers", "", "", name).allowed:
                return
        raise a.forbidden(f'user not permitted to {verb} requests with signerName "{signer}"')


def _is_signed_now(a: Attributes) -> bool:
    new, old = ((obj or {}).get("status") or {} for obj in (a.obj, a.old))
    return new.get("certificate") != old.get("certificate")
