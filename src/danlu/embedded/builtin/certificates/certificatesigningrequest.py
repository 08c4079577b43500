"""CertificateSigningRequests: somebody asks for a certificate, somebody approves, the signer signs."""

from __future__ import annotations

from danlu.embedded.apiserver.auth import csrsigner
from danlu.embedded.apiserver.served import Column, Part, ServedKind
from danlu.embedded.builtin._shared.columns import text_at
from danlu.embedded.builtin._shared.hooks import AGE, NAME, drop_status, keep_spec, keep_status, schema_of
from danlu.meta import clock, names, objects
from danlu.meta.fields import FieldError, invalid, not_supported, required
from danlu.meta.kind import Object
from danlu.meta.wellknown import CERTIFICATE_SIGNING_REQUEST

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
SHORTEST_SECONDS = 600
USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip


def prepare_update(new: Object, old: Object) -> None:
    keep_spec(new, old)
    keep_status(new, old)


def prepare_status(new: Object, old: Object) -> None:
    """Approving and denying have their own way in: here they stay as they are."""
    keep_spec(new, old)
    before = {one.get("type"): one for one in _conditions(old)}
    held = [before.get(one.get("type"), one) if one.get("type") in (APPROVED, DENIED) else one
            for one in _conditions(new)]  # fmt: skip
    if held:
        new["status"]["conditions"] = held
    _stamp(new, old)


def prepare_approval(new: Object, old: Object) -> None:
    keep_spec(new, old)
    held = _conditions(new)
    keep_status(new, old)
    if held:
        new["status"] = {**(new.get("status") or {}), "conditions": held}
    _stamp(new, old)


def _conditions(obj: Object) -> list[Object]:
    found: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return found


def _stamp(new: Object, old: Object) -> None:
    now = clock.now_rfc3339()
    before = {(one.get("type"), one.get("status")): one.get("lastTransitionTime") for one in _conditions(old)}
    for one in _conditions(new):
        one["lastUpdateTime"] = one.get("lastUpdateTime") or now
        known = before.get((one.get("type"), one.get("status")))
        one["lastTransitionTime"] = one.get("lastTransitionTime") or known or now


def validate(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    try:
        csrsigner.read(spec.get("request") or "")
    except csrsigner.BadCertificateRequest as error:
        errors.append(invalid("spec.request", spec.get("request") or "", str(error)))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
    errors += _signer_errors(spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < SHORTEST_SECONDS:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, text))
    return errors


def _signer_errors(signer: str) -> list[FieldError]:
    path = "spec.signerName"
    if not signer:
        return [required(path)]
    if signer == "kubernetes.io/legacy-unknown":
        return [invalid(path, signer, "the legacy signerName is not allowed via this API version")]
    domain, slash, name = signer.partition("/")
    if not slash or not name:
        return [
            invalid(path, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
        ]
    texts = names.dns_subdomain(domain) + [text for part in name.split(".") for text in names.dns_subdomain(part)]
    if "." not in domain:
        texts.append("should be a domain with at least two segments separated by dots")
    return [invalid(path, signer, text) for text in texts]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    errors = _condition_errors(new)
    for kind in (APPROVED, DENIED):
        if _has(new, kind) != _has(old, kind):
            text = f"updates may not {'add' if _has(new, kind) else 'remove'} a condition of type {kind!r}"
            errors.append(invalid("status.conditions", _conditions(new), text.replace("'", '"')))
    return errors + _certificate_errors(new)


def validate_approval(new: Object, old: Object) -> list[FieldError]:
    errors = _condition_errors(new)
    for kind in (APPROVED, DENIED, FAILED):
        if _has(old, kind) and not _has(new, kind):
            text = f'updates may not remove a condition of type "{kind}"'
            errors.append(invalid("status.conditions", _conditions(new), text))
    return errors


def _has(obj: Object, kind: str) -> bool:
    return any(one.get("type") == kind for one in _conditions(obj))


def _condition_errors(obj: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, one in enumerate(_conditions(obj)):
        path = f"status.conditions[{index}]"
        kind, status = one.get("type") or "", one.get("status") or ""
        if not kind:
            errors.append(required(f"{path}.type"))
        elif kind in (APPROVED, DENIED, FAILED) and status != "True":
            errors.append(not_supported(f"{path}.status", status, ["True"]))
        elif not status:
            errors.append(required(f"{path}.status"))
        elif status not in ("True", "False", "Unknown"):
            errors.append(not_supported(f"{path}.status", status, ["False", "True", "Unknown"]))
    if _has(obj, APPROVED) and _has(obj, DENIED):
        text = "Approved and Denied conditions are mutually exclusive"
        errors.append(invalid("status.conditions", _conditions(obj), text))
    return errors


def _certificate_errors(obj: Object) -> list[FieldError]:
    encoded = (obj.get("status") or {}).get("certificate")
    if encoded and not csrsigner.is_certificate(encoded):
        return [invalid("status.certificate", "<certificate data>", "must contain one or more PEM blocks")]
    return []


def _condition(obj: Object) -> str:
    found = [kind for kind in (APPROVED, DENIED) if _has(obj, kind)] or ["Pending"]
    if _has(obj, FAILED):
        found.append(FAILED)
    return ",".join([*found, *(["Issued"] if (obj.get("status") or {}).get("certificate") else [])])


def _duration(obj: Object) -> str:
    seconds = objects.get(obj, "spec.expirationSeconds", None)
    return clock.human_duration(seconds) if seconds is not None else "<none>"


def _selectable(obj: Object) -> dict[str, str]:
    return {"spec.signerName": str((obj.get("spec") or {}).get("signerName") or "")}


SERVED = ServedKind(
    kind=CERTIFICATE_SIGNING_REQUEST,
    schema=schema_of("io.k8s.api.certificates.v1.CertificateSigningRequest"),
    name_errors=names.as_path_segment,
    columns=(
        NAME,
        AGE,
        Column("SignerName", text_at("spec.signerName"), description="Who is to sign."),
        Column("Requestor", text_at("spec.username"), description="Who asked."),
        Column("RequestedDuration", _duration, description="For how long it is to hold."),
        Column("Condition", _condition, description="How far it has come."),
    ),
    prepare_create=drop_status,
    prepare_update=prepare_update,
    prepare_status=prepare_status,
    validate=validate,
    validate_status=validate_status,
    has_status=True,
    parts={"approval": Part(prepare_approval, validate_approval)},
    selectable=_selectable,
    selectable_names=frozenset({"spec.signerName"}),
)
