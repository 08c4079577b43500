"""Damaged keys and certificates are found before anyone uses them.

    pki/digests.json     SHA-256 of every file, written after each start

A file that is as it was needs no further look, so `cryptography` is not imported. Any other is read for real: keys must
load, certificates must belong to their keys and be signed by the authority. What fails goes into quarantine, and is
made anew by whoever makes it (`certificateauthority`, `tokens`).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from danlu.embedded import private_files
from danlu.embedded.storage.quarantine import FILE, Finding, Quarantine

DIGESTS, INDEX, ACCOUNTS = "digests.json", "pki.json", "service-accounts.key"
AUTHORITY, SECRET = "ca", ".secret"
_LOST = {
    AUTHORITY: "a new authority was made: kubeconfigs that were copied elsewhere have to be fetched again",
    ACCOUNTS: "a new one is made: tokens of service accounts that were given out before are refused",
}


def check(folder: Path, quarantine: Quarantine) -> list[Finding]:
    """Moves away what cannot be used; tells what that was."""
    known = _read(folder / DIGESTS)
    suspects = {path.name for path in _files(folder) if known.get(path.name) != _digest(path)}
    if not suspects:
        return []
    findings = []
    names = {Path(name).stem for name in suspects if name.endswith((".crt", ".key")) and name != ACCOUNTS}
    if AUTHORITY in names:
        names |= {path.stem for path in _files(folder) if path.suffix == ".crt"}
    for name in sorted(names, key=lambda name: name != AUTHORITY):
        for path, why in _problems(folder, name):
            findings.append(_set_aside(path, why, _LOST.get(name, "a new one was made"), quarantine))
    if ACCOUNTS in suspects and (why := _key_problem(folder / ACCOUNTS)):
        findings.append(_set_aside(folder / ACCOUNTS, why, _LOST[ACCOUNTS], quarantine))
    for name in sorted(name for name in suspects & known.keys() if name.endswith(SECRET)):
        # Nothing in it tells what it should be; what it was is known, and a key of zeros would be everybody's.
        findings.append(_set_aside(folder / name, "it is not what it was", "a new one is made", quarantine))
    if INDEX in suspects and not _index_holds(folder):
        (folder / INDEX).unlink()  # it says only what the certificates say, too
    return findings


def record(folder: Path) -> None:
    """Nothing, where the disk is full: the next start then reads the files for real."""
    digests = {path.name: _digest(path) for path in _files(folder)}
    if digests == _read(folder / DIGESTS):
        return
    try:
        private_files.write(folder / DIGESTS, json.dumps(digests, indent=1, sort_keys=True).encode())
    except OSError as error:
        if not private_files.is_full(error):
            raise


def _files(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("*.*") if path.suffix in (".crt", ".key", SECRET) or path.name == INDEX]
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _set_aside(path: Path, why: str, then: str, quarantine: Quarantine) -> Finding:
    kept = quarantine.keep_file(path)
    finding = Finding(kept.name, FILE, f"{path} was damaged ({why}); {then}", path=str(kept))
    quarantine.add(finding)
    return finding


# -- the long look


def _problems(folder: Path, name: str) -> list[tuple[Path, str]]:
    """Of one pair; a file that is missing is nobody's damage, it is made anew."""
    from cryptography import x509

    certificate_path, key_path = folder / f"{name}.crt", folder / f"{name}.key"
    if why := _key_problem(key_path):
        # A certificate without its key is of no use, but it is not damaged: it stays for whoever wants to look.
        return [(key_path, why)] if key_path.exists() else []
    if not certificate_path.exists() or not key_path.exists():
        return []
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
        public = certificate.public_key()
    except Exception:  # the parser has many words for it
        return [(certificate_path, "it cannot be read")]
    if public != _key(key_path).public_key():
        return [(certificate_path, "it does not belong to its key")]
    try:
        issuer = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.crt").read_bytes())
        certificate.verify_directly_issued_by(issuer)
    except OSError:
        return []
    except Exception:
        return [(certificate_path, "its signature does not hold")]
    return []


def _key(path: Path) -> Any:
    from cryptography.hazmat.primitives import serialization

    return serialization.load_pem_private_key(path.read_bytes(), None)


def _key_problem(path: Path) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        return "" if isinstance(_key(path), ec.EllipticCurvePrivateKey) else "it is a key of another kind"
    except Exception:
        return "it cannot be read"


def _index_holds(folder: Path) -> bool:
    from cryptography import x509

    try:
        for name, entry in _read(folder / INDEX).items():
            certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
            begins = entry.get("begins", int(certificate.not_valid_before_utc.timestamp()))
            if int(certificate.not_valid_after_utc.timestamp()) != entry["ends"]:
                return False
            if int(certificate.not_valid_before_utc.timestamp()) != begins or not isinstance(entry["made_for"], dict):
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True
