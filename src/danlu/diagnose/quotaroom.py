"""What ResourceQuotas leave, in numbers: of what the API server says when it refuses, and before it is even asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from danlu.diagnose import podtemplates
from danlu.diagnose.cause import Cause
from danlu.diagnose.evidence import Evidence
from danlu.diagnose.room import shown
from danlu.meta import quantity, resourcesums
from danlu.meta.kind import Object
from danlu.meta.quantity import ZERO, Quantity
from danlu.meta.resourcesums import Amounts

QUOTA, NEVER = "DL-QUOTA", "DL-QUOTA-NEVER"


def with_left(told: Mapping[str, str]) -> dict[str, str]:
    """What a refusal tells of a quota, with what is left of it: `cpu 2`."""
    used, hard = _listed(told.get("used", "")), _listed(told.get("limited", ""))
    left = _named({name: hard[name] - used.get(name, ZERO) for name in hard})
    return {**told, **({"left": left} if left else {})}


def is_quota(cause: Cause) -> bool:
    why = cause.params.get("why")
    return QUOTA in (cause.code, why.get("code") if isinstance(why, Mapping) else "")


def short(obj: Object, evidence: Evidence) -> Cause | None:
    """That the pods which the object still lacks are more than a quota leaves, or ever allows."""
    templates = podtemplates.of(obj)
    wanted = sum(number for _, number in templates)
    if podtemplates.is_elastic(obj) or wanted <= len(evidence.pods):
        return None
    about = f"{obj.get('kind')}/{obj['metadata']['name']}"
    for quota in sorted(evidence.quotas, key=lambda one: str(one["metadata"]["name"])):
        asked = _asked(templates, quota)
        missing = _without(asked, evidence.pods, quota)
        status = quota.get("status") or {}
        hard, used = _parsed((quota.get("spec") or {}).get("hard")), _parsed(status.get("used"))
        if over := [name for name in sorted(asked) if name in hard and asked[name] > hard[name]]:
            name = over[0]
            told = {"name": obj["metadata"]["name"], "quota": quota["metadata"]["name"], "resource": name}
            numbers = {"asked": shown(asked[name]), "hard": shown(hard[name]), "wanted": wanted}
            return Cause(NEVER, {**told, **numbers, "fit": _fit(templates, quota, hard)}, about, "FailedCreate")
        over = [name for name in sorted(missing) if name in hard and used.get(name, ZERO) + missing[name] > hard[name]]
        if over and status.get("used"):
            found = {"quota": quota["metadata"]["name"]}
            found |= {"requested": _stated(missing, over), "used": _stated(used, over), "limited": _stated(hard, over)}
            return Cause(QUOTA, with_left(found), about, "FailedCreate")
    return None


def _asked(templates: Iterable[tuple[Object, int]], quota: Object) -> Amounts:
    total: Amounts = {}
    for template, number in templates:
        resourcesums.add(total, {name: amount * number for name, amount in _charge(_pod(template), quota).items()})
    return total


def _without(asked: Amounts, pods: Sequence[Object], quota: Object) -> Amounts:
    """What is asked for beside the pods that there are, which are counted as used."""
    left = dict(asked)
    for pod in pods:
        for name, amount in _charge(pod, quota).items():
            left[name] = left.get(name, ZERO) - amount
    return {name: amount for name, amount in left.items() if amount > ZERO}


def _fit(templates: Iterable[tuple[Object, int]], quota: Object, hard: Amounts) -> int:
    """How many of them, in their order, a quota allows when nothing else uses it."""
    left, fit = dict(hard), 0
    for template, number in templates:
        each = {name: amount for name, amount in _charge(_pod(template), quota).items() if name in left and amount}
        most = min([number, *(left[name].nano // amount.nano for name, amount in each.items())])
        for name, amount in each.items():
            left[name] = left[name] - amount * most
        fit += most
        if most < number:
            break
    return fit


def _charge(pod: Object, quota: Object) -> Amounts:
    """Of one pod. What cannot be read counts as nothing: whoever admits pods says so."""
    try:
        if not resourcesums.matches_scopes(pod, quota):
            return {}
        return resourcesums.compute_charge(resourcesums.pod_requests(pod), resourcesums.pod_limits(pod))
    except quantity.QuantityError:
        return {}


def _pod(template: Object) -> Object:
    return {"metadata": {}, "spec": template.get("spec") or {}}


def _listed(text: str) -> Amounts:
    """`cpu=4,memory=8Gi`, as quotas are told of."""
    return _parsed(dict(part.split("=", 1) for part in text.split(",") if "=" in part))


def _parsed(written: Mapping[str, object] | None) -> Amounts:
    found: Amounts = {}
    for name, text in (written or {}).items():
        try:
            found[name.strip()] = quantity.parse(str(text).strip())
        except quantity.QuantityError:
            continue
    return found


def _stated(amounts: Mapping[str, Quantity], names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)


def _named(amounts: Mapping[str, Quantity]) -> str:
    return ", ".join(f"{name} {shown(max(amount, ZERO))}" for name, amount in sorted(amounts.items()))
