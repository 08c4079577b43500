"""A small OpenID Connect provider: it knows one person, who has nothing to type, and checks what it is sent."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from typing import Any
from urllib.parse import urlencode

from aiohttp import web


class Provider:
    def __init__(self, client_id: str, access_token: str) -> None:
        self.client_id = client_id
        self.access_token = access_token
        self.issuer = ""
        self.refuses = ""  # an error that the person's "no" would cause
        self.nonce = ""  # what the ID token says instead of what was asked
        self._codes: dict[str, dict[str, str]] = {}

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._describe)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.issuer = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _describe(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
            }
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        assert asked["response_type"] == "code"
        assert asked["client_id"] == self.client_id
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        back = {"state": asked["state"]}
        if self.refuses:
            back |= {"error": "access_denied", "error_description": self.refuses}
        else:
            back["code"] = secrets.token_hex(8)
            self._codes[back["code"]] = asked
        raise web.HTTPFound(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        asked = self._codes.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if asked is None or challenge != asked["code_challenge"] or form["redirect_uri"] != asked["redirect_uri"]:
            return web.json_response(
                {"error": "invalid_grant", "error_description": "this code is not good"}, status=400
            )
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "sub": "1",
            "nonce": self.nonce or asked["nonce"],
            "exp": int(time.time()) + 600,
        }
        return web.json_response({"id_token": _unsigned(claims), "access_token": self.access_token})


def _unsigned(claims: dict[str, Any]) -> str:
    """Its signature is the API server's business."""
    parts = [{"alg": "none"}, claims]
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts), "x"])
