"""Who is asking: a client certificate, a bearer token, or nobody in particular; and who they ask to act as."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote

from danlu.embedded.apiserver.auth.forbidden import AccessAttributes, access_forbidden
from danlu.embedded.apiserver.auth.subjects import BadCertificate, read_subject
from danlu.embedded.apiserver.auth.tokens import (
    AUTHENTICATED,
    BadToken,
    ServiceAccountTokens,
    StaticTokens,
    service_account_groups,
)
from danlu.embedded.apiserver.request import User
from danlu.errors import BadRequest, Unauthorized
from danlu.meta import names
from danlu.meta.fields import quoted

if TYPE_CHECKING:
    from danlu.embedded.apiserver.auth.rbac import Authorizer

ANONYMOUS = "system:anonymous"
UNAUTHENTICATED = "system:unauthenticated"
_ACCOUNT = "system:serviceaccount:"
_EXTRA = "impersonate-extra-"
_IMPERSONATE = re.compile("impersonate-").match
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."
_KEPT_CERTIFICATES = 1024
# What whoever asks may know where nobody is served anonymously: that it lives.
HEALTH_PAGES = ("/healthz", "/livez", "/readyz")


class Authenticator:
    def __init__(
        self,
        authorizer: Authorizer,
        accounts: ServiceAccountTokens,
        static: StaticTokens,
        *,
        anonymous: bool = True,
    ) -> None:
        """`anonymous`: requests without credentials are those of system:anonymous; else health pages alone are."""
        self._authorizer = authorizer
        self._anonymous = anonymous
        self.accounts = accounts
        self._static = static
        self._certificates: dict[bytes, User] = {}

    def authenticate(self, headers: Mapping[str, str], peer_certificate: bytes | None, path: str = "") -> User:
        """Header names in lower case. Headers that may stand several times come joined with commas."""
        user = self._sender(headers, peer_certificate)
        if user.name == ANONYMOUS and not self._anonymous and path not in HEALTH_PAGES:
            raise Unauthorized("Unauthorized")
        if any(map(_IMPERSONATE, headers)):
            return self._impersonated(user, headers)
        return user

    def review(self, token: str, audiences: Sequence[str]) -> tuple[User, tuple[str, ...]]:
        """Who a token stands for, and for which of the audiences. Raises BadToken."""
        user = self._static.find(token)
        if user is None:
            return self.accounts.verify(token, audiences)
        # A token in a file is meant for this server, and for nobody else's.
        common = tuple(
            audience for audience in audiences or self.accounts.audiences if audience in self.accounts.audiences
        )
        if not common:
            raise BadToken("invalid bearer token")
        return user, common

    def _sender(self, headers: Mapping[str, str], peer_certificate: bytes | None) -> User:
        if peer_certificate is not None:
            return self._certificates.get(peer_certificate) or self._read_certificate(peer_certificate)
        token = _bearer_token(headers)
        if not token:
            return User(ANONYMOUS, "", (UNAUTHENTICATED,))
        try:
            return self.review(token, ())[0]
        except BadToken:
            raise Unauthorized("Unauthorized") from None

    def _read_certificate(self, der: bytes) -> User:
        try:
            name, groups = read_subject(der)
        except BadCertificate:
            raise Unauthorized("Unauthorized") from None
        if not name:
            raise Unauthorized("Unauthorized")
        credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
        extra = {"authentication.kubernetes.io/credential-id": [credential]}
        user = User(name, "", (*groups, AUTHENTICATED), extra)
        if len(self._certificates) >= _KEPT_CERTIFICATES:
            self._certificates.clear()
        self._certificates[der] = user
        return user

    # -- acting as someone else; each part of the other's identity needs the right to impersonate it

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("impersonate-user", "")
        asked_groups = _values(headers.get("impersonate-group", ""))
        uid = headers.get("impersonate-uid", "")
        extra = {
            unquote(header[len(_EXTRA) :].lower()): _values(value)
            for header, value in headers.items()
            if header.startswith(_EXTRA)
        }
        if not name:
            if asked_groups or uid or extra:
                _without_user(asked_groups, uid, extra)
            return user
        groups = list(asked_groups)
        account_namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
        # What only looks like a service account is a user of that name.
        is_account = not names.dns_label(account_namespace) and not names.dns_subdomain(account)
        if name.startswith(_ACCOUNT) and is_account:
            self._require(user, "", "serviceaccounts", "", account_namespace, account)
            if not groups:
                groups = list(service_account_groups(account_namespace))
        else:
            self._require(user, "", "users", "", "", name)
        for group in asked_groups:
            self._require(user, "", "groups", "", "", group)
        for key, values in extra.items():
            for value in values:
                self._require(user, "authentication.k8s.io", "userextras", key, "", value)
        if uid:
            self._require(user, "authentication.k8s.io", "uids", "", "", uid)
        default = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
        if default not in groups and not (default == AUTHENTICATED and UNAUTHENTICATED in groups):
            groups.append(default)
        return User(name, uid, tuple(groups), extra, impersonator=user)

    def _require(self, user: User, group: str, resource: str, subresource: str, namespace: str, name: str) -> None:
        wanted = AccessAttributes("impersonate", group, resource, subresource, namespace, name)
        decision = self._authorizer.authorize(user, *wanted)
        if not decision.allowed:
            raise access_forbidden(user.name, wanted, decision.reason)


def _bearer_token(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    # A browser cannot set headers on a WebSocket; it hides the token among the protocols it offers.
    for protocol in headers.get("sec-websocket-protocol", "").split(","):
        _, found, encoded = protocol.strip().partition(_WEBSOCKET_TOKEN)
        if found:
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            except ValueError:
                raise Unauthorized("Unauthorized") from None
    return ""


def _values(header: str) -> list[str]:
    return [part.strip() for part in header.split(",") if part.strip()]


def _without_user(groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> NoReturn:
    """Kubernetes shows here how Go prints the struct that it read."""
    pairs = ", ".join(f"{quoted(key)}:{_go_strings(values)}" for key, values in sorted(extra.items()))
    shown_extra = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    raise BadRequest(
        f'requested &user.DefaultInfo{{Name:"", UID:{quoted(uid)}, Groups:{_go_strings(groups)}, '
        f"Extra:{shown_extra}}} without impersonating a user name"
    )


def _go_strings(texts: Sequence[str]) -> str:
    return f"[]string{{{', '.join(quoted(text) for text in texts)}}}" if texts else "[]string(nil)"
