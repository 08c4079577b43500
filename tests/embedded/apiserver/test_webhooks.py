"""Admission webhooks against a real HTTPS server: what it is asked, and what its answers do."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.embedded.apiserver.asking import MERGE, NAMESPACE, Ask, config_map

from danlu.embedded.apiserver.auth.certificateauthority import Certificates
from danlu.embedded.cluster import Cluster

API = "/apis/admissionregistration.k8s.io/v1"
MAPS = f"{NAMESPACE}/configmaps"
Answer = dict[str, Any]


class Hook:
    """Answers as the test says and remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Answer] = lambda _: {"allowed": True}
        certificates = Certificates(folder)
        pair = certificates.ensure_server()
        self.bundle = base64.b64encode(certificates.authority_pem().encode()).decode()
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self.url = ""

    def sign_itself(self, folder: Path) -> None:
        """With a certificate that is no authority, and is its own issuer: what `openssl req -x509` often makes."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hook")])
        now = datetime.now(UTC)
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        made = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
            .add_extension(addresses, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        pem = made.public_bytes(serialization.Encoding.PEM)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / "self.pem").write_bytes(pem + secret)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(folder / "self.pem")
        self.bundle = base64.b64encode(pem).decode()

    async def start(self) -> web.AppRunner:
        application = web.Application()
        application.router.add_post("/hook", self._handle)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._context)
        await site.start()
        self.url = f"https://127.0.0.1:{runner.addresses[0][1]}/hook"
        return runner

    async def _handle(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Hook]:
    made = Hook(tmp_path / "hook")
    runner = await made.start()
    yield made
    await runner.cleanup()


async def configure(ask: Ask, hook: Hook, kind: str = "Validating", **more: Any) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    one = {
        "name": "hook.example.com", "clientConfig": {"url": hook.url, "caBundle": hook.bundle}, "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], **more,
    }  # fmt: skip
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "hooks"}, "webhooks": [one],
    }  # fmt: skip
    await ask.made(f"{API}/{kind.lower()}webhookconfigurations", body)


async def test_a_refusal_is_told_in_the_webhooks_words(ask: Ask, hook: Hook) -> None:
    await configure(ask, hook)
    hook.answer = lambda _: {
        "allowed": False,
        "status": {"message": "not on Sundays", "code": 403, "reason": "Forbidden"},
    }
    answer = await ask("POST", MAPS, config_map("c", k="v"))
    assert answer.status == 403
    assert answer.message == 'admission webhook "hook.example.com" denied the request: not on Sundays'
    asked = hook.asked[0]
    assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", "default", "c")
    assert asked["object"]["data"] == {"k": "v"}
    assert asked["userInfo"]["username"] == "admin"
    # Other kinds are not its business, and it cannot keep itself in force.
    await ask.made(f"{NAMESPACE}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert (await ask("DELETE", f"{API}/validatingwebhookconfigurations/hooks")).status == 200
    await ask.made(MAPS, config_map("c"))


async def test_updates_and_deletes_are_asked_about_too(ask: Ask, hook: Hook) -> None:
    await ask.made(MAPS, config_map("c", k="1"))
    await configure(ask, hook)
    hook.answer = lambda asked: {"allowed": asked["operation"] == "UPDATE", "warnings": ["look out"]}
    answer = await ask("PATCH", f"{MAPS}/c", {"data": {"k": "2"}}, MERGE)
    assert answer.status == 200
    assert "look out" in answer.headers["warning"]
    assert (hook.asked[0]["oldObject"]["data"], hook.asked[0]["object"]["data"]) == ({"k": "1"}, {"k": "2"})
    refused = await ask("DELETE", f"{MAPS}/c")
    assert refused.message.endswith("denied the request without explanation")
    assert hook.asked[-1]["object"] is None


async def test_a_patch_changes_the_object(ask: Ask, hook: Hook) -> None:
    patch = [{"op": "add", "path": "/data/added", "value": "1"}]
    hook.answer = lambda _: {
        "allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()
    }  # fmt: skip
    await configure(ask, hook, "Mutating")
    assert (await ask.made(MAPS, config_map("c", k="v")))["data"] == {"k": "v", "added": "1"}


async def test_who_does_not_answer_is_passed_over_only_if_the_configuration_says_so(ask: Ask, hook: Hook) -> None:
    nobody = {"url": "https://127.0.0.1:1/hook", "caBundle": hook.bundle}
    await configure(ask, hook, clientConfig=nobody)
    answer = await ask("POST", MAPS, config_map("c"))
    assert answer.status == 500
    assert 'failed calling webhook "hook.example.com"' in answer.message
    ignore = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    path = f"{API}/validatingwebhookconfigurations/hooks"
    assert (await ask("PATCH", path, ignore, "application/json-patch+json")).status == 200
    await ask.made(MAPS, config_map("c"))


async def test_a_server_that_nobody_vouches_for_is_not_believed(ask: Ask, hook: Hook, tmp_path: Path) -> None:
    other = base64.b64encode(Certificates(tmp_path / "other").authority_pem().encode()).decode()
    await configure(ask, hook, clientConfig={"url": hook.url, "caBundle": other})
    assert (await ask("POST", MAPS, config_map("c"))).status == 500
    assert hook.asked == []


async def test_a_bundle_may_be_the_serving_certificate_itself(ask: Ask, tmp_path: Path) -> None:
    """As Go believes it: self-signed without CA:TRUE, or issued by an authority that the bundle does not have."""
    issued = Hook(tmp_path / "issued")
    issued.bundle = base64.b64encode(
        Certificates(tmp_path / "issued").ensure_server().certificate.read_bytes()
    ).decode()
    self_signed = Hook(tmp_path / "self-signed")
    self_signed.sign_itself(tmp_path)
    for hook in (issued, self_signed):
        runner = await hook.start()
        await configure(ask, hook)
        await ask.made(MAPS, config_map(f"c{len(hook.asked)}-{id(hook)}"))
        assert len(hook.asked) == 1
        assert (await ask("DELETE", f"{API}/validatingwebhookconfigurations/hooks")).status == 200
        await runner.cleanup()


async def test_match_conditions_decide_before_anybody_is_asked(ask: Ask, hook: Hook) -> None:
    conditions = [{"name": "large", "expression": "object.data.size == 'large'"}]
    await configure(ask, hook, matchConditions=conditions)
    await ask.made(MAPS, config_map("small", size="small"))
    assert hook.asked == []
    await ask.made(MAPS, config_map("large", size="large"))
    assert len(hook.asked) == 1


async def test_a_change_after_a_concurrent_write_is_made_again(ask: Ask, hook: Hook) -> None:
    """While the webhook thinks, somebody else changes the object: both changes are there in the end."""
    await ask.made(MAPS, config_map("c"))
    await configure(ask, hook)
    store, is_written = ask.server.store, False

    def answer(_asked: dict[str, Any]) -> Answer:
        nonlocal is_written
        if not is_written:
            is_written = True
            stored = store.latest("configmaps", "default", "c")
            assert stored is not None
            store.put("configmaps", {**stored.obj, "data": {"theirs": "1"}})
        return {"allowed": True}

    hook.answer = answer
    changed = await ask("PATCH", f"{MAPS}/c", {"data": {"ours": "2"}}, MERGE)
    assert changed.body["data"] == {"theirs": "1", "ours": "2"}


async def test_configurations_that_could_not_work_are_refused(ask: Ask, hook: Hook) -> None:
    for change, text in (
        ({"name": "short"}, "at least three segments"),
        ({"clientConfig": {}}, "exactly one of url or service is required"),
        ({"clientConfig": {"url": "http://plain.example.com"}}, "is the only allowed URL scheme"),
        ({"sideEffects": "Some"}, "sideEffects: Unsupported value"),
        ({"timeoutSeconds": 60}, "between 1 and 30 seconds"),
        ({"matchConditions": [{"name": "x", "expression": "... ["}]}, "compilation failed"),
    ):
        with pytest.raises(AssertionError, match=text):
            await configure(ask, hook, **change)
