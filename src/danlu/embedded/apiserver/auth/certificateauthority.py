"""The cluster's own certificate authority and what it signs.

    pki/ca.crt ca.key            the key is made once
    pki/server.crt server.key    made again when near its end, or when a name is missing
    pki/NAME.crt NAME.key        client certificates: CN is the user, O are the groups
    pki/pki.json                 from when to when each holds and what it was made for

A certificate that does not hold *now* is made again, whichever end is wrong: a machine whose clock was ahead at the
first start has certificates that begin in the future. The authority's is made again with the same key and name, so that
all it has signed holds on, and whoever trusts the old one while it holds accepts what is signed from then on.

Start-up must stay quick, so the index answers "is all well?" and `cryptography` is imported only to make something.
Every file is written whole (rename) with mode 0600. The index forgets a pair before it is replaced and learns of it
afterwards, so a crash in between costs a new pair and never leaves a key beside another key's certificate.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from danlu.embedded import private_files

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

DAY = 24 * 3600
AUTHORITY_LIFE = 10 * 365 * DAY
LEAF_LIFE = 365 * DAY
RENEW_BEFORE = 30 * DAY
# Clocks of other machines may be behind ours, and ours may be ahead by a time zone until it is set: less than a day.
BACKDATED = DAY
LAST_MOMENT = 253402300799  # 9999-12-31T23:59:59Z, the last that a certificate can name
CLUSTER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
CLUSTER_ADDRESSES = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    certificate: Path
    key: Path


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace `path` in one step; nobody ever sees half a key, nor one that others may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.write(path, data, mode)


class Certificates:
    """The `pki` folder of one data directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._index_path = directory / "pki.json"
        self._index: dict[str, dict[str, Any]] = self._read_index()
        self._ensured: dict[str, dict[str, Any]] = {}  # what is in use, and what for

    @property
    def authority(self) -> KeyPair:
        return self._pair("ca")

    def authority_pem(self) -> str:
        return self.ensure_authority().certificate.read_text()

    def outdated(self) -> bool:
        """Whether one that is in use does not hold now, or soon will not: `ensure` them again."""
        return any(not self._valid(name, made_for) for name, made_for in self._ensured.items())

    def ensure_authority(self) -> KeyPair:
        self._ensured["ca"] = {}
        if not self._valid("ca", {}):
            kept = self._authority_key()
            self._make("ca", {}, AUTHORITY_LIFE, kept)
            if kept is None:  # what another key signed is worth nothing now
                self._index = {"ca": self._index["ca"]}
            self._write_index()
        return self._pair("ca")

    def ensure_server(self, extra_names: Iterable[str] = ()) -> KeyPair:
        """`extra_names`: further host names and addresses under which clients will call."""
        names = sorted({*CLUSTER_NAMES, *CLUSTER_ADDRESSES, *_host_names(), *(name for name in extra_names if name)})
        return self._ensure("server", {"names": names})

    def ensure_client(self, file_name: str, user: str, groups: Sequence[str] = ()) -> KeyPair:
        return self._ensure(file_name, {"user": user, "groups": list(groups)})

    # -- the index: what is there, without parsing a certificate

    def _pair(self, name: str) -> KeyPair:
        return KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def _ensure(self, name: str, made_for: dict[str, Any]) -> KeyPair:
        self.ensure_authority()
        self._ensured[name] = made_for
        if not self._valid(name, made_for):
            self._make(name, made_for, LEAF_LIFE)
            self._write_index()
        return self._pair(name)

    def _valid(self, name: str, made_for: dict[str, Any]) -> bool:
        entry = self._index.get(name)
        pair = self._pair(name)
        if not entry or not pair.certificate.is_file() or not pair.key.is_file():
            return False
        if entry["made_for"] != made_for and not set(made_for.get("names", ["?"])) <= set(
            entry["made_for"].get("names", ())
        ):
            return False
        now = time.time()
        return bool(self._begins(name, entry) <= now and entry["ends"] - now > RENEW_BEFORE)

    def _begins(self, name: str, entry: dict[str, Any]) -> float:
        if "begins" not in entry:  # an index of a Danlu that did not ask
            from cryptography import x509

            try:
                found = x509.load_pem_x509_certificate(self._pair(name).certificate.read_bytes())
                entry["begins"] = int(found.not_valid_before_utc.timestamp())
            except (OSError, ValueError):
                return float("inf")
        return float(entry["begins"])

    def _read_index(self) -> dict[str, dict[str, Any]]:
        try:
            index = json.loads(self._index_path.read_bytes())
            return {name: entry for name, entry in index.items() if {"ends", "made_for"} <= entry.keys()}
        except (OSError, ValueError, AttributeError):
            return {}

    def _write_index(self) -> None:
        write_private(self._index_path, json.dumps(self._index, indent=1, sort_keys=True).encode())

    # -- making

    def _make(
        self, name: str, made_for: dict[str, Any], life: int, key: ec.EllipticCurvePrivateKey | None = None
    ) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = key or ec.generate_private_key(ec.SECP256R1())
        is_authority = name == "ca"
        now = int(time.time())
        begins, ends = now - BACKDATED, min(now + life, LAST_MOMENT)
        subject = _subject(name, made_for)
        if is_authority:
            issuer, signing_key = subject, key
        else:
            issuer, signing_key = self._signer()
            ends = min(ends, int(self._index["ca"]["ends"]))  # nobody believes it for longer than its authority
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_moment(begins))
            .not_valid_after(_moment(ends))
        )
        for extension, critical in _extensions(name, made_for, key.public_key(), signing_key.public_key()):
            builder = builder.add_extension(extension, critical)
        certificate = builder.sign(signing_key, hashes.SHA256())
        if self._index.pop(name, None) is not None:
            self._write_index()
        pair = self._pair(name)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(pair.key, key_pem)
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
        self._index[name] = {"begins": begins, "ends": ends, "made_for": made_for}

    def _signer(self) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        pair = self._pair("ca")
        key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject, key

    def _authority_key(self) -> ec.EllipticCurvePrivateKey | None:
        """The authority's own, if there is one that can be used."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            key = serialization.load_pem_private_key(self._pair("ca").key.read_bytes(), None)
        except (OSError, ValueError, TypeError):
            return None
        return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _host_names() -> set[str]:
    name = socket.gethostname()
    return {name} if name else set()


def _moment(seconds: int) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


def _subject(name: str, made_for: dict[str, Any]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    common_name = {"ca": "danlu-ca", "server": "kube-apiserver"}.get(name) or made_for["user"]
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in made_for.get("groups", ())]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _extensions(
    name: str,
    made_for: dict[str, Any],
    public_key: ec.EllipticCurvePublicKey,
    signer_key: ec.EllipticCurvePublicKey,
) -> list[tuple[x509.ExtensionType, bool]]:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    is_authority = name == "ca"
    found: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), True),
        (_key_usage(is_authority), True),
        (x509.SubjectKeyIdentifier.from_public_key(public_key), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key), False),
    ]
    if is_authority:
        return found
    usage = ExtendedKeyUsageOID.SERVER_AUTH if "names" in made_for else ExtendedKeyUsageOID.CLIENT_AUTH
    found.append((x509.ExtendedKeyUsage([usage]), False))
    if "names" in made_for:
        found.append((x509.SubjectAlternativeName([_alternative(text) for text in made_for["names"]]), False))
    return found


def _key_usage(is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(text: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
