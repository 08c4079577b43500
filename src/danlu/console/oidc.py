"""Sign-in with an identity provider: OpenID Connect's authorization code with PKCE.

Nothing is remembered here between the two halves: what the second needs travels, sealed, through the provider and back
(`state`). Both halves are requests of our own pages, and the secret that they show (`proof.py`) says that the one who
comes back is the one who left: a cookie could not, for it may be somebody else's who put it into the browser. The ID
token is verified with the provider's published keys, here once and by the API server, whom it is for, at every request.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from danlu.console.sealedcookies import Sealer
from danlu.console.sessions import Identity
from danlu.console.settings import SCOPES, OidcSettings
from danlu.console.tokenclaims import claims, ends_at
from danlu.errors import BadRequest, ServiceUnavailable, Unauthorized

if TYPE_CHECKING:
    import aiohttp
    import jwt

WAY_LIFE_S = 15 * 60  # how long somebody may take at the provider's pages
ANSWER_S = 15.0
EARLY_S = 30  # before a token's end the next one is fetched
CALLBACK = "/console/oidc/callback"
LEEWAY_S = 60  # that the provider's clock may differ from ours
# Signed with a key that only the provider has: neither unsigned nor with a secret that others know, too (HS256).
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
REQUIRED = ["iss", "sub", "aud", "exp", "iat"]  # by OpenID Connect


@dataclass(frozen=True, slots=True)
class SignedIn:
    identity: Identity
    next: str


class Oidc:
    def __init__(self, settings: OidcSettings, url: str, sealer: Sealer) -> None:
        self._settings = settings
        self._url = url
        self._sealer = sealer
        self._provider: dict[str, Any] = {}
        self._keys: jwt.PyJWKSet | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self, next_page: str, proof: str) -> str:
        """Where the browser is sent. `proof` is the hash of the secret that the session will need."""
        provider = await self._discover()
        verifier, nonce = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        state = {"verifier": verifier, "nonce": nonce, "proof": proof, "next": local_path(next_page)}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._url + CALLBACK,
            "scope": self._scopes(provider),
            "state": self._sealer.seal("oidc", {**state, "until": time.time() + WAY_LIFE_S}),
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = provider["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def finish(self, brought: Mapping[str, str], proof: str) -> SignedIn:
        """`brought`: the query with which the browser came back. Raises BadRequest or ServiceUnavailable, with words
        for the person."""
        if brought.get("error"):
            said = brought.get("error_description") or brought["error"]
            raise BadRequest(f"the identity provider did not sign you in: {said}")
        state = self._sealer.open("oidc", brought.get("state", ""))
        if state is None or state["until"] < time.time() or not hmac.compare_digest(state["proof"], proof):
            raise BadRequest("this sign-in was begun too long ago or in another browser; begin again")
        tokens = await self._fetch(brought.get("code", ""), state["verifier"])
        told = await self._verified(str(tokens.get("id_token", "")))
        if told.get("nonce") != state["nonce"]:
            raise BadRequest("the identity provider's token is not for this sign-in; begin again")
        return SignedIn(self._identity(tokens), state["next"])

    async def _verified(self, token: str) -> dict[str, Any]:
        """The claims of an ID token: the provider's own, for us, and in its time. Raises BadRequest."""
        import jwt

        try:
            key = await self._key_of(jwt.get_unverified_header(token))
            return jwt.decode(
                token,
                key,
                ALGORITHMS,
                options={"require": REQUIRED},
                audience=self._settings.client_id,
                issuer=self._provider["issuer"],
                leeway=LEEWAY_S,
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise BadRequest(f"the identity provider's token is not for this sign-in ({error}); begin again") from None

    async def _key_of(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        """Keys are fetched again when one is not among them: providers change them. Raises jwt.PyJWTError."""
        import jwt

        for known in (self._keys, None):
            keys = known or jwt.PyJWKSet.from_dict(await self._ask("GET", self._provider.get("jwks_uri", "")))
            self._keys = keys
            fit = [key for key in keys.keys if key.key_id == header.get("kid") or "kid" not in header]
            if fit:
                return fit[0]
        raise jwt.InvalidKeyError(f"it is signed with key {header.get('kid')!r}, which is not published")

    async def renew(self, identity: Identity) -> Identity:
        """Raises Unauthorized when the provider wants to see the person again."""
        form = {"grant_type": "refresh_token", "refresh_token": identity.renewal}
        try:
            tokens = await self._tokens(form)
        except BadRequest as error:
            raise Unauthorized(f"the sign-in has ended: {error.message}") from None
        before, after = claims(identity.token), claims(str(tokens.get(self._settings.token, "")))
        if any(before.get(name) != after.get(name) for name in ("iss", "sub")):
            raise Unauthorized("the sign-in has ended: the identity provider renewed it for somebody else")
        return self._identity({"refresh_token": identity.renewal, **tokens})

    def _identity(self, tokens: dict[str, Any]) -> Identity:
        token = str(tokens.get(self._settings.token, ""))
        now = time.time()
        ends = ends_at(token) or now + _seconds(tokens.get("expires_in"))
        # In time for what is under way; a token of a minute is not renewed all the time.
        early = min(EARLY_S, (ends - now) / 4)
        return Identity(token, renewal=str(tokens.get("refresh_token") or ""), renew_at=int(ends - early))

    def _scopes(self, provider: dict[str, Any]) -> str:
        """Of the usual ones those that it knows: some providers refuse a sign-in for a single scope that is not."""
        known = provider.get("scopes_supported")
        if self._settings.scopes != SCOPES or not isinstance(known, list):
            return self._settings.scopes
        return " ".join(word for word in SCOPES.split() if word == "openid" or word in known)

    async def _discover(self) -> dict[str, Any]:
        if not self._provider:
            issuer = self._settings.issuer.rstrip("/")
            found = await self._ask("GET", f"{issuer}/.well-known/openid-configuration")
            if str(found.get("issuer", "")).rstrip("/") != issuer:
                raise ServiceUnavailable(
                    f"{issuer} calls itself {found.get('issuer')!r}; --oidc-issuer must be the same"
                )
            self._provider = found
        return self._provider

    async def _fetch(self, code: str, verifier: str) -> dict[str, Any]:
        return await self._tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self._url + CALLBACK,
                "code_verifier": verifier,
            }
        )

    async def _tokens(self, form: dict[str, str]) -> dict[str, Any]:
        provider = await self._discover()
        form = {**form, "client_id": self._settings.client_id}
        headers = {"accept": "application/json"}
        if self._settings.client_secret:
            # What a provider says nothing about is, by the specification, the header.
            methods = provider.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            if "client_secret_basic" in methods:
                pair = f"{quote_plus(self._settings.client_id)}:{quote_plus(self._settings.client_secret)}"
                headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = self._settings.client_secret
        return await self._ask("POST", provider["token_endpoint"], form, headers)

    async def _ask(
        self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        import aiohttp

        try:
            async with self._open().request(method, url, data=form, headers=headers) as answer:
                content = await answer.json(content_type=None)
                if answer.status >= 400 or not isinstance(content, dict):
                    said = content.get("error_description") or content.get("error") if isinstance(content, dict) else ""
                    raise BadRequest(f"the identity provider refused: {said or answer.status}")
                return content
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ServiceUnavailable(f"the identity provider at {url} cannot be reached: {error}") from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            from danlu.client.config import Config
            from danlu.client.http import tls_context

            connector = aiohttp.TCPConnector(ssl=tls_context(Config("", ca=self._settings.ca)))
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=ANSWER_S))
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _seconds(told: Any) -> float:
    return float(told) if isinstance(told, int | float) else 0.0


def local_path(text: str) -> str:
    """A path of our own pages, whatever was asked for: a link into us must not lead on to elsewhere."""
    return (
        text if text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable() else "/"
    )
