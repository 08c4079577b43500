"""Certificates that users ask for (CertificateSigningRequest): what a request says, and its signature by our authority.

`cryptography` is imported when there is something to do, so that the start stays quick.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.auth.certificateauthority import LEAF_LIFE, KeyPair

if TYPE_CHECKING:
    from cryptography import x509


BACKDATED = 5 * 60  # seconds; as kube-controller-manager does: the life that was asked for may be an hour


class BadCertificateRequest(ValueError):
    """Not a request that could be signed; the text says why."""


def read(encoded: str) -> x509.CertificateSigningRequest:
    """`encoded`: base64 of PEM, as in spec.request."""
    from cryptography import x509

    try:
        pem = base64.b64decode(encoded, validate=True)
        if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
            raise BadCertificateRequest("PEM block type must be CERTIFICATE REQUEST")
        found = x509.load_pem_x509_csr(pem)
    except (binascii.Error, ValueError) as error:
        raise error if isinstance(error, BadCertificateRequest) else BadCertificateRequest(str(error)) from None
    if not found.is_signature_valid:
        raise BadCertificateRequest("the request's own signature is not valid")
    return found


def organizations(encoded: str) -> list[str]:
    from cryptography.x509.oid import NameOID

    try:
        subject = read(encoded).subject
    except BadCertificateRequest:
        return []
    return [str(one.value) for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


class Signer:
    """Our authority, for requests of clients."""

    def __init__(self, authority: KeyPair) -> None:
        self._authority = authority

    def __call__(self, encoded: str, usages: Sequence[str], seconds: int | None) -> str:
        """The certificate as status.certificate has it: base64 of PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        request = read(encoded)
        issuer = x509.load_pem_x509_certificate(self._authority.certificate.read_bytes())
        key = serialization.load_pem_private_key(self._authority.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        now = int(time.time())
        ends = min(now + min(seconds or LEAF_LIFE, LEAF_LIFE), int(issuer.not_valid_after_utc.timestamp()))
        purposes = {
            "digital_signature": "digital signature" in usages,
            "key_encipherment": "key encipherment" in usages,
            "content_commitment": False, "data_encipherment": False, "key_agreement": False, "key_cert_sign": False,
            "crl_sign": False, "encipher_only": False, "decipher_only": False,
        }  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(issuer.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.fromtimestamp(now - BACKDATED, UTC))
            .not_valid_after(datetime.fromtimestamp(ends, UTC))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(x509.KeyUsage(**purposes), True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)
        )
        pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return base64.b64encode(pem).decode()


def is_certificate(encoded: str) -> bool:
    from cryptography import x509

    try:
        return bool(x509.load_pem_x509_certificates(base64.b64decode(encoded, validate=True)))
    except (binascii.Error, ValueError):
        return False
