"""The fuzzer's own parts: a seed is an attack, the judge knows what is whose, reducing keeps what matters."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.attack.fuzz.campaign import read, reduce
from tests.attack.fuzz.generate import FAMILIES, episode
from tests.attack.fuzz.oracle import Judge
from tests.attack.fuzz.people import PEOPLE
from tests.attack.fuzz.process import Server
from tests.attack.fuzz.steps import Harvest, Step, bend, render
from tests.attack.fuzz.wire import Answer
from tests.attack.fuzz.world import World

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.json"))


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    world = World(Server(tmp_path), seed=1)
    for namespace in ("a", "b", "c", "d"):
        for plural in ("configmaps", "secrets", "namespaces"):
            world._value(namespace, plural, f"canary-{namespace}0")
    return Judge(world)


def canary(judge: Judge, namespace: str, plural: str) -> bytes:
    return next(value for value, place in judge.world.values.items() if place[:2] == (namespace, plural))


def test_the_same_seed_is_the_same_attack() -> None:
    first, again = ([step.written() for step in episode(7, 3)] for _ in range(2))
    assert first == again
    assert first != [step.written() for step in episode(8, 3)]


def test_every_family_takes_part_and_every_step_can_be_written_and_sent() -> None:
    seen = set()
    for number in range(40):
        for step in episode(1, number):
            seen.add(step.family)
            assert Step.read(json.loads(json.dumps(step.written()))) == step
            render(step.body)
    assert seen == {family.__name__ for family in FAMILIES}


def test_a_canary_is_known_in_every_coding(judge: Judge) -> None:
    value = canary(judge, "d", "secrets")
    step = Step("alice", "GET", "/api/v1/namespaces/a/secrets")
    for body in (value, base64.b64encode(value), b'{"kind":"Status","message":"' + value + b'"}'):
        problem = judge.answer(step, Answer(403, body))
        assert problem is not None
        assert problem[0] == "leak"


def test_whoever_may_read_is_shown(judge: Judge) -> None:
    assert judge.answer(Step("alice"), Answer(200, canary(judge, "a", "secrets"))) is None
    assert judge.answer(Step("carol"), Answer(200, canary(judge, "c", "configmaps"))) is None
    assert judge.answer(Step("carol"), Answer(200, canary(judge, "c", "secrets"))) is not None
    assert judge.answer(Step("bob"), Answer(200, canary(judge, "b", "namespaces"))) is not None


@pytest.mark.parametrize(
    ("obj", "shown"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}}, False),
        ({"kind": "ConfigMap", "metadata": {"name": "x", "namespace": "b"}}, True),
        ({"kind": "Namespace", "metadata": {"name": "a"}}, False),
        ({"kind": "Namespace", "metadata": {"name": "d"}}, True),
        ({"kind": "ClusterRole", "metadata": {"name": "x"}}, True),
        ({"kind": "SecretList", "metadata": {}, "items": [{"metadata": {"name": "x", "namespace": "d"}}]}, True),
        ({"kind": "Table", "rows": [{"object": {"metadata": {"name": "x", "namespace": "d"}}}]}, True),
        ({"type": "ADDED", "object": {"kind": "Pod", "metadata": {"name": "x", "namespace": "d"}}}, True),
        ({"kind": "SelfSubjectReview", "metadata": {}, "status": {}}, False),
    ],
)
def test_objects_of_others_are_a_finding_without_a_canary(judge: Judge, obj: dict[str, object], shown: bool) -> None:
    problem = judge.answer(Step("alice"), Answer(200, json.dumps(obj).encode()))
    assert (problem is not None) == shown


def test_what_an_owner_hands_on_is_theirs_to_give(judge: Judge) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings"
    assert judge.answer(Step("alice", "POST", path), Answer(201, b"{}")) is None
    assert judge.answer(Step("bob"), Answer(200, canary(judge, "a", "secrets"))) is None
    assert judge.answer(Step("bob"), Answer(200, canary(judge, "d", "secrets"))) is not None


def test_errors_and_dropped_connections_are_findings(judge: Judge) -> None:
    assert judge.answer(Step("alice"), Answer(500, b"x")) is not None
    assert judge.answer(Step("alice"), Answer(504, b"x")) is None
    assert judge.answer(Step("alice"), Answer(problem="connection dropped: x")) is not None


def test_changes_are_judged_by_who_wrote(judge: Judge) -> None:
    before = {("d", "secrets", "x"): "1", ("b", "secrets", "x"): "1", ("c", "configmaps", "shared"): "1"}
    assert judge._told(before, before) == ""
    judge.writers = {"bob"}
    assert judge._told(before, {**before, ("b", "secrets", "x"): "2"}) == ""
    assert "secrets x in namespace d was changed" in judge._told(before, {**before, ("d", "secrets", "x"): "2"})
    assert "was changed" in judge._told(before, {**before, ("c", "configmaps", "shared"): "2"})
    judge.writers = {"dave"}
    assert judge._told(before, {**before, ("c", "configmaps", "shared"): "2"}) == ""
    assert "is new" in judge._told(before, {**before, ("c", "configmaps", "other"): "1"})


def test_reducing_leaves_what_matters() -> None:
    steps = [Step("alice", path=f"/{number}") for number in range(20)]

    def fails(some: list[Step]) -> bool:
        return {"/3", "/11"} <= {step.path for step in some}

    assert [step.path for step in reduce(steps, fails, lambda: True)] == ["/3", "/11"]


def test_tokens_are_bent_where_they_can_be_read() -> None:
    harvest = Harvest()
    token = base64.urlsafe_b64encode(b'{"rv":5,"start":"a/x"}').rstrip(b"=").decode()
    harvest.gather("admin", "/api/v1/secrets", {"metadata": {"continue": token, "resourceVersion": "5"}})
    assert harvest.resolve({"ref": "token", "of": "admin", "resource": "secrets"}) == token
    bent = bend(token + ".signature", {"set": {"start": "b/x"}})
    head, _, tail = bent.partition(".")
    assert json.loads(base64.urlsafe_b64decode(head + "=="))["start"] == "b/x"
    assert tail == "signature"
    assert bend(token, {"letter": 4}) != token
    assert harvest.resolve({"ref": "revision", "of": "admin", "offset": -2}) == "3"


def test_the_model_has_a_namespace_in_which_nobody_may_create() -> None:
    assert not [person.name for person in PEOPLE.values() if person.home == "d"]
    assert not [person.name for person in PEOPLE.values() if person.may_change("c", "configmaps", "new")]


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_seeds_can_be_read(path: Path) -> None:
    _, steps = read(path)
    assert steps
    assert all(step.person in PEOPLE or step.person == "admin" for step in steps)
