"""A small OpenID Connect provider: it knows one person, who has nothing to type, and checks what it is sent.

Its tokens are signed, so that a real kube-apiserver takes them, which reaches it over TLS. It runs in a thread of its
own: whoever waits for a server that asks it need not keep its loop going.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus, urlencode

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID


class Provider:
    def __init__(self, client_id: str, *, access_token: str = "", client_secret: str = "") -> None:
        self.client_id = client_id
        self.client_secret = client_secret
        self.access_token = access_token
        self.issuer = ""
        self.claims: dict[str, Any] = {"sub": "1"}  # of the person
        self.life_s = 600
        self.refreshes = False  # gives refresh tokens; each is good once
        self.renewed = 0
        self.refuses = ""  # an error that the person's "no" would cause
        self.nonce = ""  # what the ID token says instead of what was asked
        self.signed_as = ""  # an ID token that is not its own: "none", "HS256", or "stranger" for another's key
        self._key_id = 1
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh_tokens: set[str] = set()
        self._key = _new_key()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self, certificate: Path | None = None) -> None:
        """`certificate`: where to put one of its own, key included; it then speaks TLS."""
        context = None
        if certificate is not None:
            certificate.write_bytes(self._certificate())
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(context), self._loop).result(30)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def revoke(self) -> None:
        self._refresh_tokens.clear()

    async def _serve(self, context: ssl.SSLContext | None) -> None:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._describe)
        app.router.add_get("/keys", self._keys)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        self.issuer = f"{'https' if context else 'http'}://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _describe(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "scopes_supported": ["openid", "email", "groups", "offline_access"],
            }
        )

    async def _keys(self, _: web.Request) -> web.Response:
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "alg": "RS256",
            "use": "sig",
            "kid": str(self._key_id),
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        return web.json_response({"keys": [key]})

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        assert asked["response_type"] == "code"
        assert asked["client_id"] == self.client_id
        assert asked["code_challenge_method"] == "S256"
        assert asked["scope"] == "openid email groups offline_access", "no others than this provider knows"
        back = {"state": asked["state"]}
        if self.refuses:
            back |= {"error": "access_denied", "error_description": self.refuses}
        else:
            back["code"] = secrets.token_hex(8)
            self._codes[back["code"]] = asked
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        said = request.headers.get("authorization", "").removeprefix("Basic ")
        pair = f"{self.client_id}:{self.client_secret}" if self.client_secret else ""
        if unquote_plus(base64.b64decode(said).decode()) != pair or form["client_id"] != self.client_id:
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self._refresh_tokens:
                return _refused("this refresh token is not good")
            self._refresh_tokens.remove(form["refresh_token"])
            self.renewed += 1
            return self._tokens({})
        asked = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if asked is None or _base64(digest) != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return _refused("this code is not good")
        return self._tokens({"nonce": self.nonce or asked["nonce"]})

    def _tokens(self, more: dict[str, Any]) -> web.Response:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + self.life_s} | self.claims | more
        tokens: dict[str, Any] = {"id_token": self._signed(claims), "access_token": self.access_token}
        if self.refreshes:
            tokens["refresh_token"] = secrets.token_hex(16)
            self._refresh_tokens.add(tokens["refresh_token"])
        return web.json_response(tokens)

    def change_key(self) -> None:
        self._key = _new_key()
        self._key_id += 1

    def _signed(self, claims: dict[str, Any]) -> str:
        algorithm = self.signed_as if self.signed_as in ("none", "HS256") else "RS256"
        head = {"alg": algorithm, "kid": str(self._key_id)}
        text = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
        if algorithm == "none":
            return f"{text}."
        if algorithm == "HS256":
            return f"{text}.{_base64(hmac.digest(self.client_secret.encode(), text.encode(), 'sha256'))}"
        key = _new_key() if self.signed_as == "stranger" else self._key
        return f"{text}.{_base64(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _certificate(self) -> bytes:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "identity provider of a test")])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        key = self._key.private_bytes(encoding, form, serialization.NoEncryption())
        return made.public_bytes(encoding) + key


def _refused(why: str) -> web.Response:
    return web.json_response({"error": "invalid_grant", "error_description": why}, status=400)


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
