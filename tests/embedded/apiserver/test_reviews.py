"""The review kinds, asked directly: what a server answers to `kubectl auth can-i` and `kubectl auth whoami`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from danlu.embedded.apiserver.auth.authenticate import Authenticator
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.embedded.apiserver.auth.tokens import ISSUER, ServiceAccountTokens, StaticTokens
from danlu.embedded.builtin import BUILTINS
from danlu.embedded.builtin.authorization import reviews
from danlu.errors import BadRequest, Invalid
from danlu.meta import wellknown as k
from danlu.meta.kind import Kind, Object

RBAC = "rbac.authorization.k8s.io"


class Asker:
    def __init__(self, world: Any, directory: Path) -> None:
        directory.joinpath("tokens.csv").write_text('t0k,bob,b-uid,"dev"\n')
        authorizer = Authorizer(world.store)
        accounts = ServiceAccountTokens(world.store, directory / "sa.key")
        static = StaticTokens(directory / "tokens.csv")
        self.server = SimpleNamespace(
            authorizer=authorizer, authenticator=Authenticator(authorizer, accounts, static), store=world.store
        )
        self.user = world.user
        self.served = {served.kind.kind: served for served in reviews.SERVED}

    def ask(self, kind: Kind, spec: Object, namespace: str = "", **metadata: Any) -> Object:
        answer = self.served[kind.kind].answer
        assert answer is not None
        call: Any = SimpleNamespace(server=self.server, user=self.user, namespace=namespace)
        sent = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        found = answer(call, sent)
        assert isinstance(found, dict)
        return found


@pytest.fixture
async def asker(world: Any, tmp_path: Path) -> Asker:
    world.put(k.CLUSTER_ROLE, "reader", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"}
    subject = {"apiGroup": RBAC, "kind": "Group", "name": "dev"}
    world.put(k.ROLE_BINDING, "devs", "lab", roleRef=reference, subjects=[subject])
    return Asker(world, tmp_path)


async def test_access_reviews(asker: Asker) -> None:
    pods = {"verb": "get", "resource": "pods", "namespace": "lab"}
    allowed = {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "devs/lab" of ClusterRole "reader" to Group "dev"',
    }
    mine = asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, {"resourceAttributes": pods})
    assert mine["status"] == allowed
    assert mine["spec"] == {"resourceAttributes": pods}
    spec = {"user": "carol", "groups": ["dev"], "resourceAttributes": pods}
    assert asker.ask(k.SUBJECT_ACCESS_REVIEW, spec)["status"] == allowed
    assert asker.ask(k.LOCAL_SUBJECT_ACCESS_REVIEW, spec, "lab")["status"] == allowed
    other = {"resourceAttributes": {**pods, "verb": "delete"}}
    assert asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, other)["status"] == {"allowed": False}
    path = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, path)["status"] == {"allowed": False}


async def test_what_a_review_must_say(asker: Asker) -> None:
    pods = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "lab"}}
    with pytest.raises(Invalid) as refused:
        asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, {})
    assert refused.value.message == (
        '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: '
        "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    )
    with pytest.raises(Invalid, match="at least one of user or group must be specified"):
        asker.ask(k.SUBJECT_ACCESS_REVIEW, pods)
    with pytest.raises(Invalid, match=r"must match metadata\.namespace"):
        asker.ask(k.LOCAL_SUBJECT_ACCESS_REVIEW, {"user": "x", **pods}, "other")
    with pytest.raises(Invalid, match="must be empty"):
        asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, pods, name="x")
    with pytest.raises(Invalid, match="cannot be specified in combination with resourceAttributes"):
        asker.ask(k.SELF_SUBJECT_ACCESS_REVIEW, {**pods, "nonResourceAttributes": {"path": "/", "verb": "get"}})


async def test_rules_review(asker: Asker) -> None:
    status = asker.ask(k.SELF_SUBJECT_RULES_REVIEW, {"namespace": "lab"})["status"]
    assert status["resourceRules"] == [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
    assert status["nonResourceRules"] == []
    with pytest.raises(BadRequest, match="no namespace on request"):
        asker.ask(k.SELF_SUBJECT_RULES_REVIEW, {})


async def test_token_review(asker: Asker) -> None:
    good = asker.ask(k.TOKEN_REVIEW, {"token": "t0k"})["status"]
    assert good["authenticated"]
    assert good["user"] == {"username": "bob", "uid": "b-uid", "groups": ["dev", "system:authenticated"]}
    assert good["audiences"] == [ISSUER]
    assert asker.ask(k.TOKEN_REVIEW, {"token": "x"})["status"] == {"user": {}, "error": "invalid bearer token"}
    elsewhere = asker.ask(k.TOKEN_REVIEW, {"token": "t0k", "audiences": ["x"]})["status"]
    assert elsewhere == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(BadRequest, match="token is required"):
        asker.ask(k.TOKEN_REVIEW, {})


async def test_who_am_i(asker: Asker) -> None:
    info = asker.ask(k.SELF_SUBJECT_REVIEW, {})["status"]["userInfo"]
    assert info == {"username": "alice", "groups": ["dev", "system:authenticated"]}


def test_they_are_served() -> None:
    assert all(served in BUILTINS for served in reviews.SERVED)
