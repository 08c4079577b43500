"""ServiceAccounts: who a pod is when it talks to the API."""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.apiserver.subresources.token import TOKEN
from danlu.embedded.builtin._shared.hooks import AGE, NAME, schema_of
from danlu.meta import names
from danlu.meta.wellknown import SERVICE_ACCOUNT

SERVED = ServedKind(
    kind=SERVICE_ACCOUNT,
    schema=schema_of("io.k8s.api.core.v1.ServiceAccount"),
    name_errors=names.as_dns_subdomain,
    columns=(NAME, AGE),
    subresources={"token": TOKEN},
    returns_deleted=True,
)
