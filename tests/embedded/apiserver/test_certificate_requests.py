"""Certificates that users ask for: who asked, who may approve, and what the signer makes of it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.embedded.apiserver.asking import Ask

from danlu.embedded.apiserver.auth import csrsigner
from danlu.embedded.apiserver.auth.certificateauthority import Certificates
from danlu.embedded.apiserver.request import User
from danlu.embedded.cluster import Cluster
from danlu.embedded.controllers import certificatesigning as signer

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kube-apiserver-client"
JANE = User("jane", "", ("team", "system:authenticated"))


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


def encoded(name: str, *groups: str) -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


def asked(request: str, **spec: Any) -> dict[str, Any]:
    given = {"request": request, "signerName": SIGNER, "usages": ["client auth"], "username": "somebody else", **spec}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    return {**kind, "metadata": {"name": "jane"}, "spec": given}


async def test_the_server_writes_down_who_asked(ask: Ask) -> None:
    made = await ask.made(REQUESTS, asked(encoded("jane")))
    assert made["spec"]["username"] == "admin"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]
    made["spec"]["usages"] = ["server auth"]
    assert (await ask("PUT", f"{REQUESTS}/jane", made)).body["spec"]["usages"] == ["client auth"]


async def test_what_cannot_be_signed_is_refused(ask: Ask) -> None:
    for body, text in (
        (asked("bm8="), "PEM block type must be CERTIFICATE REQUEST"),
        (asked(encoded("jane"), usages=[]), "spec.usages: Required value"),
        (asked(encoded("jane"), signerName="plain"), "spec.signerName"),
        (asked(encoded("jane"), expirationSeconds=60), "600 seconds"),
    ):
        answer = await ask("POST", REQUESTS, body)
        assert answer.status == 422
        assert text in answer.message
    answer = await ask("POST", REQUESTS, asked(encoded("jane", "system:masters")))
    assert answer.status == 403


async def test_approving_takes_the_signers_leave_and_is_not_done_through_status(ask: Ask) -> None:
    made = await ask.made(REQUESTS, asked(encoded("jane")))
    made["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]}
    assert (await ask("PUT", f"{REQUESTS}/jane/status", made)).status == 422
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
        "rules": [{"apiGroups": ["certificates.k8s.io"], "resources": ["*"], "verbs": ["get", "update"]}],
    }  # fmt: skip
    await ask.made("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    }  # fmt: skip
    await ask.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
    refused = await ask("PUT", f"{REQUESTS}/jane/approval", made, user=JANE)
    assert (refused.status, "not permitted to approve" in refused.message) == (403, True)
    approved = await ask("PUT", f"{REQUESTS}/jane/approval", made)
    assert approved.body["status"]["conditions"][0]["lastUpdateTime"]
    assert signer.is_waiting(approved.body)


def test_the_signed_certificate_is_for_that_key_and_subject(tmp_path: Path) -> None:
    authority = Certificates(tmp_path).ensure_authority()
    request = encoded("jane", "team")
    signed = base64.b64decode(csrsigner.Signer(authority)(request, ["client auth", "digital signature"], 3600))
    certificate = x509.load_pem_x509_certificate(signed)
    assert certificate.subject == csrsigner.read(request).subject
    assert certificate.public_key() == csrsigner.read(request).public_key()
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate.read_bytes()))
    lasts = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lasts.total_seconds() <= 2 * 3600
    assert csrsigner.is_certificate(base64.b64encode(signed).decode())


def test_our_signer_signs_for_clients_only() -> None:
    assert signer.usage_problem({"usages": ["client auth", "digital signature"]}) == ""
    assert "server auth" in signer.usage_problem({"usages": ["client auth", "server auth"]})
    assert "must include" in signer.usage_problem({"usages": ["digital signature"]})
