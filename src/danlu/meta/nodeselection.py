"""Node selectors, taints and tolerations: whether a node is one that a pod asks for and may run on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from danlu.meta.kind import Object

REFUSING = ("NoSchedule", "NoExecute")
UNSCHEDULABLE_TAINT: Object = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def _as_number(text: object) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None


def requirement_matches(requirement: Object, values: Mapping[str, str]) -> bool:
    key: str = requirement.get("key") or ""
    wanted: Sequence[str] = requirement.get("values") or ()
    have = values.get(key)
    match requirement.get("operator"):
        case "In":
            return have is not None and have in wanted
        case "NotIn":
            return have is None or have not in wanted
        case "Exists":
            return have is not None
        case "DoesNotExist":
            return have is None
        case "Gt" | "Lt" as operator:
            number, bound = _as_number(have), _as_number(wanted[0] if len(wanted) == 1 else None)
            if number is None or bound is None:
                return False
            return number > bound if operator == "Gt" else number < bound
    return False


def term_matches(term: Object, labels: Mapping[str, str], node_name: str) -> bool:
    """All requirements of a term hold; a term without any selects nothing."""
    by_label, by_field = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_label and not by_field:
        return False
    fields = {"metadata.name": node_name}
    return all(requirement_matches(r, labels) for r in by_label) and all(
        requirement_matches(r, fields) for r in by_field
    )


def any_term_matches(terms: Iterable[Object], labels: Mapping[str, str], node_name: str) -> bool:
    return any(term_matches(term, labels, node_name) for term in terms)


def named_nodes(terms: Sequence[Object]) -> set[str] | None:
    """The only nodes that the terms can select because they name them (as a DaemonSet's pods do); None: any node."""
    named: set[str] = set()
    for term in terms:
        own: set[str] | None = None
        for requirement in term.get("matchFields") or ():
            if requirement.get("key") == "metadata.name" and requirement.get("operator") == "In":
                values = set(requirement.get("values") or ())
                own = values if own is None else own & values
        if own is None:
            return None
        named |= own
    return named if terms else None


def tolerates(toleration: Object, taint: Object) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case "Gt" | "Lt" as operator:
            bound, number = _as_number(toleration.get("value")), _as_number(taint.get("value"))
            if bound is None or number is None:
                return False
            return number > bound if operator == "Gt" else number < bound
    return False


def is_tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(taints: Iterable[Object], tolerations: Sequence[Object]) -> Object | None:
    """The first taint that keeps the pod away."""
    for taint in taints:
        if taint.get("effect") in REFUSING and not is_tolerated(taint, tolerations):
            return taint
    return None
