"""Bearer tokens: static ones from a file, and service accounts' tokens, signed with the cluster's own key.

PyJWT signs and verifies, with one algorithm and one key. A token is checked by signature once; after that a dictionary
answers until it ends. On every use the service account and whatever object the token is bound to must still exist with
the same uid: deleting a pod ends its token at once.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import secrets
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from danlu.embedded.apiserver.auth.certificateauthority import write_private
from danlu.embedded.apiserver.request import User
from danlu.embedded.storage.errors import DataDirectoryError
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.types import Options

    from danlu.embedded.storage.store import Store

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUTHENTICATED = "system:authenticated"
LEEWAY = 60  # seconds that clocks may differ
ALGORITHM = "ES256"
_KEPT_TOKENS = 10_000
# Of the claims only the issuer is verified with the signature. Times and audiences count anew at every use, below.
_OPTIONS: Options = {
    "require": ["iss"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
}


class BadToken(Exception):
    """The token proves nothing; the text says why (TokenReview shows it)."""


def service_account_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


@dataclass(frozen=True, slots=True)
class _Verified:
    user: User
    audiences: tuple[str, ...]
    expires: float
    requires: tuple[tuple[str, str, str, str], ...]  # (resource, namespace, name, uid) that must exist


class ServiceAccountTokens:
    def __init__(self, store: Store, key_path: Path, issuer: str = ISSUER, audiences: Sequence[str] = ()) -> None:
        self._store = store
        self._key_path = key_path
        self.issuer = issuer
        self.audiences = tuple(audiences) or (issuer,)  # what the API server itself answers to
        self._verified: dict[str, _Verified] = {}

    # -- issuing

    def issue(
        self,
        account: Object,
        *,
        seconds: int,
        audiences: Sequence[str] = (),
        bound: tuple[str, Object] | None = None,
        node: Object | None = None,
        warn_after: int | None = None,
    ) -> str:
        """`bound`: ("pod" | "secret" | "node", object): the token ends when that object does."""
        now = int(time.time())
        meta = account["metadata"]
        namespace = meta["namespace"]
        private: dict[str, Any] = {"namespace": namespace}
        private["serviceaccount"] = {"name": meta["name"], "uid": meta.get("uid", "")}
        if bound is not None:
            private[bound[0]] = _reference(bound[1])
        if node is not None:
            private["node"] = _reference(node)
        if warn_after is not None:
            private["warnafter"] = now + warn_after
        claims: dict[str, Any] = {
            "aud": list(audiences or self.audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": service_account_name(namespace, meta["name"]),
        }
        import jwt

        # Kubernetes' own tokens name no type.
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": self._key_id, "typ": None})

    # -- verifying

    def verify(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """The user, and those of the wanted audiences that the token is for. Raises BadToken."""
        verified = self._verified.get(token)
        if verified is None:
            verified = self._check(token)
            if len(self._verified) >= _KEPT_TOKENS:
                self._verified.clear()
            self._verified[token] = verified
        if time.time() > verified.expires + LEEWAY:
            self._verified.pop(token, None)
            raise BadToken("service account token has expired")
        for resource, namespace, name, uid in verified.requires:
            stored = self._store.latest(resource, namespace, name)
            if stored is None and resource == "serviceaccounts":
                raise BadToken(f'serviceaccounts "{name}" not found')
            if stored is None:
                raise BadToken("service account token has been invalidated")
            if stored.uid != uid:
                what = "service account" if resource == "serviceaccounts" else resource.removesuffix("s")
                raise BadToken(f"{what} UID ({stored.uid}) does not match claim ({uid})")
        wanted = audiences or self.audiences
        common = tuple(audience for audience in wanted if audience in verified.audiences)
        if not common:
            raise BadToken(
                f"invalid bearer token, token audiences {_go(verified.audiences)} is invalid for the target audiences "
                f"{_go(wanted)}"
            )
        return verified.user, common

    def _check(self, token: str) -> _Verified:
        claims = self._open(token)
        now = time.time()
        if now + LEEWAY < claims.get("nbf", 0):
            raise BadToken("service account token is not valid yet")
        try:
            private = claims["kubernetes.io"]
            namespace, account = private["namespace"], private["serviceaccount"]
            requires = [("serviceaccounts", namespace, account["name"], account.get("uid", ""))]
            if "secret" in private:
                requires.append(("secrets", namespace, private["secret"]["name"], private["secret"].get("uid", "")))
            if "pod" in private:
                requires.append(("pods", namespace, private["pod"]["name"], private["pod"].get("uid", "")))
            elif "node" in private:
                requires.append(("nodes", "", private["node"]["name"], private["node"].get("uid", "")))
        except (KeyError, TypeError):
            raise BadToken("service account token claims could not be validated") from None
        groups = (*service_account_groups(namespace), AUTHENTICATED)
        name = service_account_name(namespace, account["name"])
        user = User(name, account.get("uid", ""), groups, _extra(claims.get("jti", ""), private))
        audiences = claims.get("aud") or self.audiences
        audiences = (audiences,) if isinstance(audiences, str) else tuple(audiences)
        return _Verified(user, audiences, claims.get("exp", float("inf")), tuple(requires))

    # -- what the OpenID endpoints answer

    def jwks(self) -> Object:
        from jwt.algorithms import ECAlgorithm

        point = ECAlgorithm.to_jwk(self._public_key, as_dict=True)
        return {"keys": [{"use": "sig", "kid": self._key_id, "alg": ALGORITHM, **point}]}

    def openid_configuration(self, server: str = "") -> Object:
        """`server`: the address under which clients reach us, for the link to the keys."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{server or self.issuer}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }

    # -- the key; made or read when the first token needs it

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            key = serialization.load_pem_private_key(self._key_path.read_bytes(), None)
        except FileNotFoundError:
            key = ec.generate_private_key(ec.SECP256R1())
            form = serialization.PrivateFormat.PKCS8
            pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
            write_private(self._key_path, pem)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    @cached_property
    def _public_key(self) -> ec.EllipticCurvePublicKey:
        return self._key.public_key()

    @cached_property
    def _key_id(self) -> str:
        from cryptography.hazmat.primitives import serialization

        form = serialization.PublicFormat.SubjectPublicKeyInfo
        der = self._public_key.public_bytes(serialization.Encoding.DER, form)
        return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()

    def _open(self, token: str) -> dict[str, Any]:
        """The claims, once the signature holds."""
        import jwt

        try:
            return jwt.decode(token, self._public_key, [ALGORITHM], issuer=self.issuer, options=_OPTIONS)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise BadToken("invalid bearer token") from None


class StaticTokens:
    """Tokens in a file, in Kubernetes' format: token,user,uid,"group1,group2"."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._users: dict[bytes, User] = {}  # by digest: a look-up that leaks no timing of the token itself
        self.load()

    def load(self) -> None:
        self._users = {}
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return
        except UnicodeDecodeError as error:
            raise DataDirectoryError(
                f'{self.path} is not text (byte {error.start}); mend it (token,user,uid,"group1,group2" on each line) '
                "or move it away"
            ) from error
        for row in csv.reader(text.splitlines(), skipinitialspace=True):
            if len(row) < 3 or not row[0] or row[0].startswith("#"):
                continue
            groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
            self._users[_digest(row[0])] = User(row[1], row[2], (*groups, AUTHENTICATED))

    def find(self, token: str) -> User | None:
        return self._users.get(_digest(token)) if self._users else None

    def ensure_admin(self, user: str = "danlu-admin", groups: Sequence[str] = ("system:masters",)) -> str:
        """The administrator's token, made at the first start."""
        try:
            for row in csv.reader(self.path.read_text().splitlines(), skipinitialspace=True):
                if len(row) > 1 and row[1] == user:
                    return row[0]
            text = self.path.read_text()
        except FileNotFoundError:
            text = ""
        token = secrets.token_urlsafe(32)
        group_text = ",".join(groups)
        write_private(self.path, f'{text}{token},{user},{user},"{group_text}"\n'.encode())
        self.load()
        return token


def _reference(obj: Object) -> dict[str, str]:
    meta = obj["metadata"]
    return {key: meta[key] for key in ("name", "uid") if meta.get(key)}


def _extra(token_id: str, private: dict[str, Any]) -> dict[str, list[str]]:
    extra: dict[str, list[str]] = {}
    if token_id:
        extra["authentication.kubernetes.io/credential-id"] = [f"JTI={token_id}"]
    for kind in ("node", "pod"):
        for key in ("name", "uid"):
            if (private.get(kind) or {}).get(key):
                extra[f"authentication.kubernetes.io/{kind}-{key}"] = [private[kind][key]]
    return extra


def _go(texts: Sequence[str]) -> str:
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
