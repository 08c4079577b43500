"""PodMetrics: what a pod's containers use now."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.metrics import samples
from danlu.meta import names
from danlu.meta.schema import structural
from danlu.meta.wellknown import POD_METRICS

SERVED = ServedKind(
    kind=POD_METRICS,
    schema=lambda: structural(samples.POD_SCHEMA),
    name_errors=names.as_dns_subdomain,
    columns=samples.COLUMNS,
    verbs=("get", "list"),
    computed=samples.pods,
)
