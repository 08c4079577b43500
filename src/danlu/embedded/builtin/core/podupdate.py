"""What may change in a pod once it exists: images, a shrinking deadline, more tolerations, fewer gates."""

from __future__ import annotations

from typing import Any

from danlu.embedded.builtin._shared.podspec import validate_pod_spec
from danlu.embedded.builtin._shared.podspec.placementrules import REQUIRED
from danlu.embedded.builtin._shared.podspec.printed import spec_diff
from danlu.embedded.builtin._shared.podspec.validation import annotation_errors
from danlu.meta import names
from danlu.meta.addresses import address_errors
from danlu.meta.fields import FieldError, forbidden, invalid, required
from danlu.meta.kind import Object

MIRROR = "kubernetes.io/config.mirror"
CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
CONTAINER_LISTS = ("containers", "initContainers")


def validate_pod(obj: Object) -> list[FieldError]:
    """The rules of creation and update alike."""
    metadata, spec = obj.get("metadata") or {}, obj.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    errors: list[FieldError] = []
    if annotations:
        errors += annotation_errors(annotations, "metadata.annotations")
        if MIRROR in annotations and not spec.get("nodeName"):
            text = "must set spec.nodeName if mirror pod annotation is set"
            errors.append(invalid(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], text))
    errors += validate_pod_spec(spec, "spec", is_pod=True, pod_name=metadata.get("name") or "")
    if not spec.get("serviceAccountName"):
        errors += _token_errors(spec)
    return errors


def _token_errors(spec: Object) -> list[FieldError]:
    text = "must not be specified when serviceAccountName is not set"
    return [
        forbidden(f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken", text)
        for index, volume in enumerate(spec.get("volumes") or ())
        for at, source in enumerate((volume.get("projected") or {}).get("sources") or ())
        if source.get("serviceAccountToken") is not None
    ]


def validate_pod_update(new: Object, old: Object) -> list[FieldError]:
    errors = validate_pod(new)
    errors += _mirror_errors(new, old)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if spec == before:
        return errors
    for field in CONTAINER_LISTS:
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            return [*errors, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        errors += _image_errors(spec.get(field) or [], f"spec.{field}")
    deadline_errors, stop = _deadline_errors(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += deadline_errors
    if stop:
        return errors
    errors += _toleration_errors(spec.get("tolerations") or [], before.get("tolerations") or [])
    errors += _gate_errors(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    errors += _narrowing_errors(spec, before)
    rest = _without_changeable(spec, before)
    if rest != before:
        text = f"pod updates may not change fields other than {CHANGEABLE}\n{spec_diff(before, rest)}"
        errors.append(forbidden("spec", text))
    return errors


def _mirror_errors(new: Object, old: Object) -> list[FieldError]:
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    before = (old.get("metadata") or {}).get("annotations") or {}
    if annotations.get(MIRROR) == before.get(MIRROR):
        return []
    verb = "remove or update" if MIRROR in before else "add"
    return [forbidden(f"metadata.annotations[{MIRROR}]", f"may not {verb} mirror pod annotation")]


def _image_errors(containers: list[Object], path: str) -> list[FieldError]:
    return [required(f"{path}[{at}].image") for at, container in enumerate(containers) if not container.get("image")]


def _deadline_errors(deadline: int | None, before: int | None) -> tuple[list[FieldError], bool]:
    """(what is wrong, whether to look no further)."""
    path = "spec.activeDeadlineSeconds"
    if deadline is None:
        text = "must not update from a positive integer to nil value"
        return ([] if before is None else [invalid(path, None, text)]), False
    outside = names.in_range(deadline, 0, 2**31 - 1)
    if outside:
        return [invalid(path, deadline, text) for text in outside], True
    if before is not None and before < deadline:
        return [invalid(path, deadline, "must be less than or equal to previous value")], True
    return [], False


def _toleration_errors(tolerations: list[Object], before: list[Object]) -> list[FieldError]:
    def bare(toleration: Object) -> frozenset[tuple[str, Any]]:
        return frozenset((key, value) for key, value in toleration.items() if key != "tolerationSeconds" and value)

    kept = {bare(toleration) for toleration in tolerations}
    if all(bare(toleration) in kept for toleration in before):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _gate_errors(gates: list[Object], before: list[Object]) -> list[FieldError]:
    known = {gate.get("name") for gate in before}
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(gates)
        if gate.get("name") not in known
    ]


def _narrowing_errors(spec: Object, before: Object) -> list[FieldError]:
    """A gated pod may narrow down where it wants to run, and not widen it."""
    if not before.get("schedulingGates"):
        return []
    errors: list[FieldError] = []
    selector, had = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in had.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", selector, text))
    terms, terms_before = _required_terms(spec), _required_terms(before)
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    if terms_before and len(terms) != len(terms_before):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*errors, invalid(path, terms, text)]
    for index, (term, was) in enumerate(zip(terms, terms_before, strict=False)):
        if not _only_adds(term, was):
            text = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{path}[{index}]", term, text))
    return errors


def _required_terms(spec: Object) -> list[Object]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    return list((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ())


def _only_adds(term: Object, was: Object) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(was.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    return all((term.get(field) or [])[: len(was[field])] == was[field] for field in fields if was.get(field))


def _without_changeable(spec: Object, before: Object) -> Object:
    """The new spec with the old one's values where a change is allowed."""
    rest = dict(spec)
    fields = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if before.get("schedulingGates"):
        fields.append("nodeSelector")
        _keep_node_affinity(rest, before)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fields.append("terminationGracePeriodSeconds")
    for field in fields:
        if field in before:
            rest[field] = before[field]
        else:
            rest.pop(field, None)
    for field in CONTAINER_LISTS:
        if spec.get(field):
            pairs = zip(spec[field], before[field], strict=True)
            rest[field] = [{**container, "image": was.get("image")} for container, was in pairs]
    return rest


def _keep_node_affinity(rest: Object, before: Object) -> None:
    affinity = dict(rest.get("affinity") or {})
    affinity.pop("nodeAffinity", None)
    had = (before.get("affinity") or {}).get("nodeAffinity")
    if had is not None:
        affinity["nodeAffinity"] = had
    if affinity or "affinity" in before:
        rest["affinity"] = affinity
    else:
        rest.pop("affinity", None)


def validate_pod_status(new: Object, old: Object) -> list[FieldError]:
    status, before = new.get("status") or {}, old.get("status") or {}
    errors: list[FieldError] = []
    # Kubernetes has one field for both: podIP is the first of podIPs. Names of pods are written from it into files.
    if (address := status.get("podIP") or "") and address != before.get("podIP"):
        errors += address_errors(address, "status.podIPs[0]")
    for field in ("podIPs", "hostIPs"):
        known = {entry.get("ip") for entry in before.get(field) or ()}
        for index, entry in enumerate(status.get(field) or ()):
            if entry.get("ip") not in known:
                errors += address_errors(entry.get("ip") or "", f"status.{field}[{index}]")
    if not (status.get("qosClass") or "") or status.get("qosClass") == before.get("qosClass", status.get("qosClass")):
        return errors
    return [*errors, invalid("status.qosClass", status["qosClass"], "field is immutable")]
