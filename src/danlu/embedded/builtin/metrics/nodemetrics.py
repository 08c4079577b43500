"""NodeMetrics: what a node uses now."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin.metrics import samples
from danlu.meta import names
from danlu.meta.schema import structural
from danlu.meta.wellknown import NODE_METRICS

SERVED = ServedKind(
    kind=NODE_METRICS,
    schema=lambda: structural(samples.NODE_SCHEMA),
    name_errors=names.as_dns_subdomain,
    columns=samples.COLUMNS,
    verbs=("get", "list"),
    computed=samples.nodes,
)
