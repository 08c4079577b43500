"""ClusterRoles that are put together from others."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.labels import from_label_selector


def aggregated_rules(role: Object, cluster_roles: Iterable[Object]) -> list[Object]:
    """The rules that a ClusterRole with an aggregationRule gathers, selector by selector, each role's by its name."""
    others = sorted((one for one in cluster_roles if objects.name(one) != objects.name(role)), key=objects.name)
    rules: list[Object] = []
    for stated in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        selector = from_label_selector(stated)
        for other in others:
            if selector.matches(objects.labels_of(other)):
                rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules
