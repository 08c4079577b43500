"""Secrets of type kubernetes.io/service-account-token: born with a token that lasts as long as they do.

A cluster's token controller fills them a moment later; here the key is at hand, so they are never seen empty. A Secret
whose service account is not there stays empty, as nobody could use its token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from danlu.embedded.apiserver.admission import CREATE, UPDATE, Attributes, Handler
from danlu.embedded.apiserver.auth.tokens import ACCOUNT_NAME, LEGACY_SECRET_TYPE, ServiceAccountTokens

if TYPE_CHECKING:
    from danlu.embedded.apiserver.auth.certificates import Certificates
    from danlu.embedded.storage.store import Store


class ServiceAccountSecrets(Handler):
    resources = frozenset({"secrets"})

    def __init__(self, store: Store, tokens: ServiceAccountTokens, certificates: Certificates) -> None:
        self._store = store
        self._tokens = tokens
        self._certificates = certificates

    def mutate(self, a: Attributes) -> None:
        if a.obj is None or a.obj.get("type") != LEGACY_SECRET_TYPE or a.operation not in (CREATE, UPDATE):
            return
        meta = a.obj["metadata"]
        name = (meta.get("annotations") or {}).get(ACCOUNT_NAME)
        account = self._store.latest("serviceaccounts", a.namespace, name) if name else None
        if account is not None and meta.get("uid"):
            self._tokens.fill_secret(a.obj, account.obj, self._certificates.authority_pem())
