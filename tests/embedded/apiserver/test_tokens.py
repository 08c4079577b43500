from __future__ import annotations

import base64
import hmac
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from danlu.embedded.apiserver.auth.authenticate import Authenticator
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.embedded.apiserver.auth.tokens import ISSUER, BadToken, ServiceAccountTokens, StaticTokens
from danlu.embedded.apiserver.subresources.token import request_token
from danlu.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthorized
from danlu.meta import wellknown as k


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


@pytest.fixture
def tokens(world: Any, tmp_path: Path) -> ServiceAccountTokens:
    return ServiceAccountTokens(world.store, tmp_path / "sa.key")


async def test_a_token_lives_as_long_as_its_account(world: Any, tokens: ServiceAccountTokens, tmp_path: Path) -> None:
    account = world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    token = tokens.issue(account, seconds=3600)
    user, audiences = tokens.verify(token)
    assert user.name == "system:serviceaccount:lab:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated")
    assert user.uid == account["metadata"]["uid"]
    assert audiences == (ISSUER,)
    found = claims(token)
    assert found["sub"] == user.name
    assert found["exp"] - found["iat"] == 3600
    assert set(found) == {"aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"}
    assert stat.S_IMODE((tmp_path / "sa.key").stat().st_mode) == 0o600
    # another process with the same key
    assert ServiceAccountTokens(world.store, tmp_path / "sa.key").verify(token)[0].name == user.name

    world.delete(k.SERVICE_ACCOUNT, account)
    with pytest.raises(BadToken, match="not found"):
        tokens.verify(token)
    world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    with pytest.raises(BadToken, match="does not match"):
        tokens.verify(token)


async def test_forged_and_broken_tokens_are_refused(world: Any, tokens: ServiceAccountTokens, tmp_path: Path) -> None:
    account = world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    head, body, signature = tokens.issue(account, seconds=3600).split(".")
    other = ServiceAccountTokens(world.store, tmp_path / "other.key").issue(account, seconds=3600)
    evil = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    old = tokens.issue(account, seconds=-3600)
    changed = "A" if signature[0] != "A" else "B"
    bad = (
        other,
        f"{evil}.{body}.",
        f"{head}.{body}",
        f"{head}.{body}.{changed}{signature[1:]}",
        "x.y.z",
        "é.b.c",
        old,
        "...",
    )
    for token in bad:
        with pytest.raises(BadToken):
            tokens.verify(token)


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


async def test_the_algorithm_is_ours_to_choose(world: Any, tokens: ServiceAccountTokens, tmp_path: Path) -> None:
    """A secret key made of the public one, which anybody can have: signed with it, a token must not count."""
    account = world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    token = tokens.issue(account, seconds=3600)
    assert set(json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))) == {"alg", "kid"}
    private = load_pem_private_key((tmp_path / "sa.key").read_bytes(), None)
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256'})}.{token.split('.')[1]}"
    forged = base64.urlsafe_b64encode(hmac.digest(public, signed.encode(), "sha256")).rstrip(b"=").decode()
    for bad in (f"{signed}.{forged}", f"{part({'alg': 'none'})}.{token.split('.')[1]}."):
        with pytest.raises(BadToken, match=r"^invalid bearer token$"):
            tokens.verify(bad)


async def test_a_token_has_one_spelling(world: Any, tokens: ServiceAccountTokens) -> None:
    """What is kept of verified tokens could else be filled with one token in a thousand spellings."""
    token = tokens.issue(world.put(k.SERVICE_ACCOUNT, "robot", "lab"), seconds=3600)
    for other in (f"{token}!", f" {token}", token.replace(".", ".\n", 1), f"{token}===", f"{token}.x"):
        with pytest.raises(BadToken, match=r"^invalid bearer token$"):
            tokens.verify(other)


async def test_another_issuer_and_nested_headers(world: Any, tokens: ServiceAccountTokens, tmp_path: Path) -> None:
    account = world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    tokens.issue(account, seconds=3600)  # makes the key
    other = ServiceAccountTokens(world.store, tmp_path / "sa.key", "https://elsewhere").issue(account, seconds=3600)
    deep = base64.urlsafe_b64encode(b'{"a":' * 100_000).rstrip(b"=").decode()
    for bad in (other, f"{deep}.e30.e30", f"e30.{deep}.e30"):
        with pytest.raises(BadToken, match=r"^invalid bearer token$"):
            tokens.verify(bad)


async def test_audiences(world: Any, tokens: ServiceAccountTokens) -> None:
    token = tokens.issue(world.put(k.SERVICE_ACCOUNT, "robot", "lab"), seconds=600, audiences=["vault"])
    with pytest.raises(BadToken, match="audiences"):
        tokens.verify(token)
    assert tokens.verify(token, ["x", "vault"])[1] == ("vault",)


async def test_token_request(world: Any, tokens: ServiceAccountTokens, make_pod: Any) -> None:
    world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    world.put(k.NODE, "n1")
    pod = make_pod("p", "lab", serviceAccountName="robot", nodeName="n1")
    pod["metadata"]["uid"] = "pod-uid"
    world.store.put("pods", pod)

    def ask(**spec: Any) -> Any:
        return request_token(world.store, tokens, "lab", "robot", {"spec": spec})

    answer = ask(
        expirationSeconds=3607, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid"}
    )
    assert answer["kind"] == "TokenRequest"
    token = answer["status"]["token"]
    private = claims(token)["kubernetes.io"]
    assert private["pod"] == {"name": "p", "uid": "pod-uid"}
    assert private["node"]["name"] == "n1"
    assert claims(token)["exp"] - claims(token)["iat"] == 365 * 24 * 3600
    user, _ = tokens.verify(token)
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["p"]
    world.delete(k.POD, pod)
    with pytest.raises(BadToken, match="invalidated"):
        tokens.verify(token)

    with pytest.raises(Invalid, match="may not specify a duration less than 10 minutes"):
        ask(expirationSeconds=599)
    with pytest.raises(NotFound):
        ask(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "gone"})
    with pytest.raises(BadRequest, match="cannot bind token to object of type apps/v1, Kind=Deployment"):
        ask(boundObjectRef={"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"})
    with pytest.raises(NotFound, match='serviceaccounts "x" not found'):
        request_token(world.store, tokens, "lab", "x", {})
    other = make_pod("q", "lab", serviceAccountName="else")
    world.store.put("pods", other)
    with pytest.raises(BadRequest, match="different serviceaccount name"):
        ask(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "q"})
    with pytest.raises(Conflict, match="does not match the UID in record"):
        ask(boundObjectRef={"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": "other"})


async def test_keys_and_issuer_documents(tokens: ServiceAccountTokens) -> None:
    (key,) = tokens.jwks()["keys"]
    assert (key["kty"], key["alg"], key["crv"]) == ("EC", "ES256", "P-256")
    assert tokens.openid_configuration()["issuer"] == ISSUER


async def test_a_token_bound_to_a_secret_ends_with_it(world: Any, tokens: ServiceAccountTokens) -> None:
    world.put(k.SERVICE_ACCOUNT, "robot", "lab")
    secret = world.put(k.SECRET, "robot-token", "lab", type="kubernetes.io/service-account-token")
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "robot-token", "uid": secret["metadata"]["uid"]}
    spec = {"expirationSeconds": 1 << 32, "boundObjectRef": bound}
    token = request_token(world.store, tokens, "lab", "robot", {"spec": spec})["status"]["token"]
    assert tokens.verify(token)[0].name == "system:serviceaccount:lab:robot"
    world.delete(k.SECRET, secret)
    with pytest.raises(BadToken, match="invalidated"):
        tokens.verify(token)


@pytest.fixture
def authenticator(world: Any, tokens: ServiceAccountTokens, tmp_path: Path) -> Authenticator:
    path = tmp_path / "tokens.csv"
    path.write_text('# comment\nsecret-1,bob,bob-uid,"dev,ops"\nsecret-2,carol,carol-uid\n')
    return Authenticator(Authorizer(world.store), tokens, StaticTokens(path))


async def test_who_is_asking(authenticator: Authenticator) -> None:
    nobody = authenticator.authenticate({}, None)
    assert (nobody.name, nobody.groups) == ("system:anonymous", ("system:unauthenticated",))
    bob = authenticator.authenticate({"authorization": "Bearer secret-1"}, None)
    assert (bob.name, bob.uid, bob.groups) == ("bob", "bob-uid", ("dev", "ops", "system:authenticated"))
    protocols = "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0LTE"
    assert authenticator.authenticate({"sec-websocket-protocol": protocols}, None).name == "bob"
    assert authenticator.authenticate({"authorization": "Basic Ym9i"}, None).name == "system:anonymous"
    for bad in ("Bearer nonsense", "bearer a.b.c", "Bearer \x00"):
        with pytest.raises(Unauthorized):
            authenticator.authenticate({"authorization": bad}, None)


def test_admin_token_is_made_once(tmp_path: Path) -> None:
    static = StaticTokens(tmp_path / "tokens.csv")
    token = static.ensure_admin()
    assert StaticTokens(tmp_path / "tokens.csv").ensure_admin() == token
    found = static.find(token)
    assert found is not None
    assert "system:masters" in found.groups
    assert stat.S_IMODE((tmp_path / "tokens.csv").stat().st_mode) == 0o600


async def test_impersonation(world: Any, authenticator: Authenticator) -> None:
    rbac = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"], "resourceNames": ["robot"]},
    ]
    world.put(k.CLUSTER_ROLE, "imp", rules=rules)
    world.put(
        k.CLUSTER_ROLE_BINDING, "imp", roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "imp"},
        subjects=[{"kind": "User", "name": "bob", "apiGroup": rbac}],
    )  # fmt: skip

    def act(token: str = "secret-1", **headers: str) -> Any:
        sent = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
        return authenticator.authenticate({"authorization": f"Bearer {token}", **sent}, None)

    jane = act(user="jane", group="a,b")
    assert (jane.name, jane.groups) == ("jane", ("a", "b", "system:authenticated"))
    robot = act(user="system:serviceaccount:lab:robot")
    assert robot.groups == ("system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated")
    assert act(user="system:anonymous").groups == ("system:unauthenticated",)
    with pytest.raises(Forbidden) as refused:
        act("secret-2", user="jane")
    assert refused.value.message == (
        'users "jane" is forbidden: User "carol" cannot impersonate resource "users" in API group "" '
        "at the cluster scope"
    )
    with pytest.raises(Forbidden, match="userextras/scopes"):
        act(user="jane", extra_scopes="dev")
    with pytest.raises(BadRequest, match="without impersonating a user"):
        act(group="a")
