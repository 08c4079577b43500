"""What is seen of another operator, and which of its webhooks guard our kinds. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from danlu.kinds._operators.known import KnownOperator
from danlu.meta import objects
from danlu.meta.kind import Kind, Object

SET_ASIDE = "danlu.dev/webhooks-set-aside"
"""Annotation of a webhook configuration: the webhooks in it whose failurePolicy we have changed to Ignore."""

Backend = tuple[str, str]  # namespace and name of a service


@dataclass(frozen=True, slots=True)
class Installed:
    """A Deployment of another operator."""

    place: str  # NAMESPACE/NAME
    runs: bool  # a pod of it is ready


def place(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def installed(operator: KnownOperator, deployments: Iterable[Object]) -> list[Installed]:
    """Those that are meant to run: one that is scaled to nothing does no harm."""
    return sorted(
        (
            Installed(place(obj), bool((obj.get("status") or {}).get("readyReplicas")))
            for obj in deployments
            if operator.is_workload(obj)
            and (obj.get("spec") or {}).get("replicas") != 0
            and not objects.is_deleting(obj)
        ),
        key=lambda one: one.place,
    )


def guards(operator: KnownOperator, configuration: Object, kinds: Collection[Kind]) -> Iterator[Object]:
    """Webhooks of this operator that are asked about nothing but kinds of ours. Anybody else's are theirs to keep."""
    ours = {(kind.group, kind.plural) for kind in kinds}
    for webhook in configuration.get("webhooks") or ():
        asked = {
            (group, resource.partition("/")[0])
            for rule in webhook.get("rules") or ()
            for group in rule.get("apiGroups") or ()
            for resource in rule.get("resources") or ()
        }
        if webhook["name"].endswith(operator.webhook_suffix) and asked and asked <= ours:
            yield webhook


def backend(webhook: Object) -> Backend | None:
    """The service that answers; None: an address, of which nobody can say whether something is behind it."""
    service = (webhook.get("clientConfig") or {}).get("service")
    return (service["namespace"], service["name"]) if service else None


def is_answered(slices: Iterable[Object]) -> bool:
    return any(
        (endpoint.get("conditions") or {}).get("ready") is not False
        for one in slices
        for endpoint in one.get("endpoints") or ()
    )


def policies(configuration: Object, guarding: Collection[str], silent: Collection[str]) -> Object | None:
    """The configuration as it should be; None where it is so already.

    Of `guarding`, those in `silent` (nobody answers for them) are set aside; one that we set aside and that is
    answered again gets its failurePolicy back.
    """
    noted = set_aside(configuration)
    aside = {name for name in noted if name in silent}
    webhooks = []
    for webhook in configuration.get("webhooks") or ():
        name, policy = webhook["name"], webhook.get("failurePolicy") or "Fail"
        if name in guarding and name in silent and policy == "Fail":
            policy = "Ignore"
            aside.add(name)
        elif name in noted and name not in silent:
            policy = "Fail"
        webhooks.append({**webhook, "failurePolicy": policy})
    annotations = {**(configuration["metadata"].get("annotations") or {})}
    annotations.pop(SET_ASIDE, None)
    if aside:
        annotations[SET_ASIDE] = ",".join(sorted(aside))
    wanted = {
        **configuration,
        "metadata": {**configuration["metadata"], "annotations": annotations},
        "webhooks": webhooks,
    }
    unchanged = aside == noted and webhooks == [*(configuration.get("webhooks") or ())]
    return None if unchanged else wanted


def set_aside(configuration: Object) -> set[str]:
    text = (configuration["metadata"].get("annotations") or {}).get(SET_ASIDE) or ""
    return {name for name in text.split(",") if name}
