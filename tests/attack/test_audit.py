"""What somebody does is on record, as the policy says; and nobody writes into the record or fills the disk with it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tests.attack.conftest import NewPerson, Person
from tests.attack.test_authorization import handshake
from tests.running import Danlu

from danlu.client.client import Client
from danlu.embedded.apiserver.audit import auditlog, events
from danlu.embedded.apiserver.audit.auditpolicy import AuditPolicy, AuditPolicyError, Recording, parse, read_policy
from danlu.embedded.apiserver.audit.events import Record, Stage
from danlu.embedded.apiserver.request import Query, User
from danlu.embedded.apiserver.target import target_of
from danlu.embedded.cluster import Cluster
from danlu.embedded.settings import AuditSettings, ClusterSettings, RequestLimits

HEAD = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
A = "/api/v1/namespaces/a"
PARTS = {"level": "None", "userGroups": ["system:masters"]}  # the cluster's own, who are not the point here
POLICY = {
    **HEAD,
    "omitStages": ["RequestReceived"],
    "rules": [
        PARTS,
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "serviceaccounts/token"]}]},
        {
            "level": "RequestResponse",
            "omitManagedFields": True,
            "resources": [{"group": "", "resources": ["pods", "limitranges"]}],
        },
        {"level": "Request", "resources": [{"group": "", "resources": ["configmaps"]}]},
        {"level": "Metadata"},
    ],
}


@pytest.fixture
def policy() -> dict[str, Any]:
    return POLICY


@pytest.fixture
def settings(tmp_path: Path, policy: dict[str, Any]) -> ClusterSettings:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    return ClusterSettings(
        data_dir=tmp_path / "danlu",
        port=0,
        run_controllers=False,
        run_node=False,
        audit=AuditSettings(tmp_path / "policy.yaml"),
        request_limits=RequestLimits(streams_per_user=1),
    )


async def lines(cluster: Cluster, **wanted: Any) -> list[dict[str, Any]]:
    """Those with these values, once there are any: they are written beside the requests."""
    for _ in range(1000):
        found = [json.loads(text) for text in read(cluster).splitlines()]
        matching = [event for event in found if all(event.get(key) == value for key, value in wanted.items())]
        if matching:
            return matching
        await asyncio.sleep(0.01)
    raise AssertionError(f"nothing like {wanted} in {found}")


def read(cluster: Cluster) -> str:
    return (cluster.directory.root / "audit.log").read_text()


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": "v3ry-s3cret"}}


async def test_a_request_is_on_record(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    async with mallory.session.get(
        f"{mallory.url}{A}/pods?limit=5",
        headers={"authorization": f"Bearer {mallory.token}", "user-agent": "curl/8 " + "x" * 2000},
    ) as answer:
        audit_id = answer.headers["audit-id"]
    (event,) = await lines(cluster, auditID=audit_id)
    assert event | {"requestReceivedTimestamp": "", "stageTimestamp": "", "userAgent": ""} == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": audit_id,
        "stage": "ResponseComplete",
        "requestURI": f"{A}/pods?limit=5",
        "verb": "list",
        "user": event["user"],
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "",
        "objectRef": {"resource": "pods", "namespace": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "responseObject": event["responseObject"],
        "requestReceivedTimestamp": "",
        "stageTimestamp": "",
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "authorization.k8s.io/reason": event["annotations"]["authorization.k8s.io/reason"],
        },
    }
    assert event["user"]["username"] == mallory.name
    assert "system:serviceaccounts:a" in event["user"]["groups"]
    assert event["userAgent"].endswith("x...TRUNCATED")
    assert event["responseObject"]["kind"] == "PodList"
    assert "RoleBinding" in event["annotations"]["authorization.k8s.io/reason"]
    assert event["requestReceivedTimestamp"] <= event["stageTimestamp"]
    assert (cluster.directory.root / "audit.log").stat().st_mode & 0o777 == 0o600


async def test_what_is_in_a_secret_is_not(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    assert (await mallory.request("POST", f"{A}/secrets", secret("s")))[0] == 201
    patch = {"stringData": {"k": "v3ry-s3cret"}}
    await mallory.request("PATCH", f"{A}/secrets/s", patch, "application/merge-patch+json")
    await mallory.request("GET", f"{A}/secrets")
    await mallory.request("POST", f"{A}/serviceaccounts/mallory/token", {"spec": {}})
    (event,) = await lines(cluster, verb="create", objectRef={"resource": "secrets", "namespace": "a", "name": "s",
                                                               "apiVersion": "v1"})  # fmt: skip
    assert not event.keys() & {"requestObject", "responseObject"}
    await lines(cluster, requestURI=f"{A}/serviceaccounts/mallory/token")
    written = read(cluster)
    for hidden in ("v3ry-s3cret", "djNyeS1zM2NyZXQ", mallory.token, mallory.token.split(".")[2]):
        assert hidden not in written


async def test_bodies_where_the_policy_says_so(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    sent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
    await mallory.request("POST", f"{A}/configmaps", yaml.safe_dump(sent), "application/yaml")
    (event,) = await lines(cluster, requestURI=f"{A}/configmaps")
    assert event["requestObject"] == sent
    assert "responseObject" not in event
    patch = [{"op": "add", "path": "/data/c", "value": "d"}]
    await mallory.request("PATCH", f"{A}/configmaps/m", patch, "application/json-patch+json")
    (event,) = await lines(cluster, verb="patch")
    assert event["requestObject"] == patch
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": []}}
    _, made = await mallory.request("POST", f"{A}/limitranges?pretty=true", limits)
    assert made["metadata"].pop("managedFields")
    (event,) = await lines(cluster, requestURI=f"{A}/limitranges?pretty=true")
    assert event["requestObject"]["metadata"] == {"name": "l"}
    assert event["responseObject"] == made


async def test_refusals_are_on_record(cluster: Cluster, client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    await mallory.request("GET", "/api/v1/namespaces/b/secrets/x")
    (event,) = await lines(cluster, requestURI="/api/v1/namespaces/b/secrets/x")
    assert event["responseStatus"]["code"] == 403
    assert event["responseStatus"]["reason"] == "Forbidden"
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    nobody = Person("nobody", "not-a-token", mallory.session, mallory.url)
    await nobody.request("GET", f"{A}/secrets/y?{'a=b&' * 20}")
    event = next(event for event in await lines(cluster, user={}) if event["verb"] == "get")
    assert (event["responseStatus"]["code"], event["objectRef"]["name"]) == (401, "y")
    assert "not-a-token" not in read(cluster)
    await mallory.request("GET", f"{A}/pods", **{"Impersonate-User": "kubernetes-admin"})
    assert [event["responseStatus"]["code"] for event in await lines(cluster, requestURI=f"{A}/pods")] == [403]


async def test_who_acts_as_another_is_named(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    await new_person("eve")
    await mallory.request("GET", f"{A}/services", **{"Impersonate-User": "system:serviceaccount:a:eve"})
    (event,) = await lines(cluster, requestURI=f"{A}/services")
    assert event["user"]["username"] == mallory.name
    assert event["impersonatedUser"]["username"] == "system:serviceaccount:a:eve"


async def test_streams_begin_and_end(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    path = f"{A}/events?watch=1&timeoutSeconds=1"
    await mallory.request("GET", path)
    await lines(cluster, requestURI=path, stage="ResponseComplete")
    stages = [event["stage"] for event in await lines(cluster, requestURI=path)]
    assert stages == ["ResponseStarted", "ResponseComplete"]
    assert await handshake(mallory, f"{A}/pods/x/exec?command=id&stdout=1") == 404
    (event,) = await lines(cluster, requestURI=f"{A}/pods/x/exec?command=id&stdout=1")
    assert (event["stage"], event["responseStatus"]["code"]) == ("ResponseComplete", 404)


async def test_nobody_writes_lines_of_their_own(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    fake = '{"kind":"Event","auditID":"forged"}'
    await mallory.request("POST", f"{A}/configmaps", f"{{}}\n{fake}\n")
    await mallory.request("POST", f"{A}/configmaps", f'{{"metadata":\n{fake}\n}}')
    await mallory.request("GET", f"{A}/pods/%0a%7b%22auditID%22:%22forged%22%7d?x=%0a{{}}")
    await mallory.request("PUT", f"{A}/configmaps/x", b"\xff\xfe\n{}\n")
    await mallory.request("GET", f"{A}/endpoints")
    await lines(cluster, requestURI=f"{A}/endpoints")
    events = [json.loads(text) for text in read(cluster).splitlines()]
    assert all(event["kind"] == "Event" and len(event["auditID"]) == 36 for event in events)


@pytest.mark.parametrize("policy", [{**HEAD, "rules": [PARTS, {"level": "RequestResponse"}]}])
async def test_an_answer_of_many_lines_is_on_record_in_one(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    meta = {"name": "m", "annotations": {"a": '\n{"kind":"Event","auditID":"forged"}\n'}}
    await mallory.request("POST", f"{A}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await mallory.request("GET", f"{A}/configmaps?pretty=true")
    (event,) = await lines(cluster, requestURI=f"{A}/configmaps?pretty=true", stage="ResponseComplete")
    assert event["responseObject"]["items"][0]["metadata"]["name"] == "m"


async def test_requests_wait_for_a_log_that_is_behind(
    cluster: Cluster, new_person: NewPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that forgot under load would invite load."""
    mallory = await new_person()
    goes_on, whole = threading.Event(), events.line

    def line(stage: Stage) -> bytes:
        assert goes_on.wait(30)
        return whole(stage)

    monkeypatch.setattr(auditlog, "line", line)
    monkeypatch.setattr(auditlog, "MOST_WAITING_BYTES", 0)
    assert (await mallory.request("GET", f"{A}/pods"))[0] == 200
    behind = asyncio.create_task(mallory.request("GET", f"{A}/services"))
    done, _ = await asyncio.wait({behind}, timeout=1)
    assert not done
    goes_on.set()
    assert (await behind)[0] == 200
    await lines(cluster, requestURI=f"{A}/services")


@pytest.mark.parametrize("policy", [{**HEAD, "rules": [{"level": "Metadata", "verbs": ["delete"]}]}])
async def test_what_no_rule_matches_is_not_recorded(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    async with mallory.session.get(
        f"{mallory.url}{A}/pods", headers={"authorization": f"Bearer {mallory.token}"}
    ) as answer:
        assert "audit-id" not in answer.headers
    await mallory.request("DELETE", f"{A}/pods/x")
    found = await lines(cluster, verb="delete")
    assert [event["stage"] for event in found] == ["RequestReceived", "ResponseComplete"]
    assert "responseStatus" not in found[0]
    assert {event["verb"] for event in map(json.loads, read(cluster).splitlines())} == {"delete"}


# -- `danlu up` with one


def test_danlu_up_keeps_a_log(make_danlu: Callable[..., Danlu], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY | {"rules": [{"level": "Metadata"}]}))
    danlu = make_danlu("--no-console", "--audit-policy-file", str(tmp_path / "policy.yaml"),
                       "--audit-log-path", str(tmp_path / "audit.log"))  # fmt: skip
    danlu.kubectl("create", "secret", "generic", "s", "--from-literal=k=v3ry-s3cret")
    danlu.down()
    written = (tmp_path / "audit.log").read_text()
    events = [json.loads(text) for text in written.splitlines()]
    made = [event for event in events if event.get("objectRef", {}).get("name") == "s" and event["verb"] == "create"]
    assert [event["user"]["username"] for event in made] == ["kubernetes-admin"]
    assert "kube-controller-manager" in {event["user"]["username"] for event in events}
    assert "v3ry-s3cret" not in written


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--audit-log-path", "x"], "--audit-log-path needs --audit-policy-file"),
        (["--audit-policy-file", "/nonexistent"], "the audit policy /nonexistent cannot be read: No such file"),
    ],
)
def test_danlu_up_says_what_is_wrong(make_danlu: Callable[..., Danlu], flags: list[str], words: str) -> None:
    danlu = make_danlu(*flags, start=False)
    tried = danlu.command("up", *flags, check=False)
    assert tried.returncode != 0
    assert words in tried.stderr


# -- the policy


def recording(rules: list[dict[str, Any]], method: str, path: str, user: User | None = None, **more: Any) -> Recording:
    target, _, query = path.partition("?")
    policy = parse({**HEAD, "rules": rules, **more})
    return policy.of(user or User("eve", "", ("dev",)), target_of(method, target, Query(query)))


@pytest.mark.parametrize(
    ("rule", "method", "path", "matches"),
    [
        ({}, "GET", "/version", True),
        ({"users": ["eve"]}, "GET", "/version", True),
        ({"users": ["bob"]}, "GET", "/version", False),
        ({"userGroups": ["dev", "x"]}, "GET", "/version", True),
        ({"userGroups": ["ops"]}, "GET", "/version", False),
        ({"verbs": ["get"]}, "GET", f"{A}/pods/x", True),
        ({"verbs": ["get"]}, "GET", f"{A}/pods", False),
        ({"verbs": ["watch"]}, "GET", f"{A}/pods?watch=1", True),
        ({"namespaces": ["a"]}, "GET", f"{A}/pods", True),
        ({"namespaces": ["b"]}, "GET", f"{A}/pods", False),
        ({"namespaces": [""]}, "GET", "/api/v1/nodes", True),
        ({"namespaces": ["a"]}, "GET", "/version", False),
        ({"resources": [{"group": ""}]}, "GET", f"{A}/pods", True),
        ({"resources": [{"group": "apps"}]}, "GET", f"{A}/pods", False),
        ({"resources": [{"group": "*"}]}, "GET", f"{A}/pods", True),
        ({"resources": [{"resources": ["pods"]}]}, "GET", f"{A}/pods/x/log", False),
        ({"resources": [{"resources": ["pods/log"]}]}, "GET", f"{A}/pods/x/log", True),
        ({"resources": [{"resources": ["pods/*"]}]}, "GET", f"{A}/pods/x/log", True),
        ({"resources": [{"resources": ["pods/*"]}]}, "GET", f"{A}/pods/x", True),
        ({"resources": [{"resources": ["*/log"]}]}, "GET", f"{A}/pods/x/log", True),
        ({"resources": [{"resources": ["*"]}]}, "GET", f"{A}/pods/x/log", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["x"]}]}, "GET", f"{A}/pods/x", True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["x"]}]}, "GET", f"{A}/pods/y", False),
        ({"nonResourceURLs": ["/healthz*"]}, "GET", "/healthz/ping", True),
        ({"nonResourceURLs": ["/version"]}, "GET", "/version/", False),
        ({"nonResourceURLs": ["*"]}, "GET", "/metrics", True),
        ({"nonResourceURLs": ["*"]}, "GET", f"{A}/pods", False),
    ],
)
def test_what_a_rule_matches(rule: dict[str, Any], method: str, path: str, matches: bool) -> None:
    found = recording([{"level": "Metadata", **rule}, {"level": "Request"}], method, path)
    assert found.level == ("Metadata" if matches else "Request")


def test_the_first_rule_decides_and_adds_to_the_policy() -> None:
    rules: list[dict[str, Any]] = [{"level": "None", "users": ["eve"]}, {"level": "Metadata", "omitStages": ["Panic"]}]
    assert recording(rules, "GET", "/version").level == "None"
    found = recording(rules, "GET", "/", User("bob"), omitStages=["RequestReceived"], omitManagedFields=True)
    assert found == Recording("Metadata", frozenset(("Panic", "RequestReceived")), True)
    rules[1]["omitManagedFields"] = False
    assert not recording(rules, "GET", "/", User("bob"), omitManagedFields=True).without_managed_fields


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": "Role"}, "audit.k8s.io/v1, kind Policy"),
        ({"rules": []}, "loaded illegal policy with 0 rules"),
        ({"rules": [{}]}, "rules[0].level: Required value"),
        ({"rules": [{"level": "All"}]}, 'rules[0].level: Unsupported value: "All"'),
        ({"rules": [{"level": "None", "user": ["x"]}]}, "unknown field"),
        ({"rules": [{"level": "None", "users": "x"}]}, "must be a list"),
        ({"rules": [{"level": "None", "omitStages": ["x"]}]}, "allowed stages are RequestReceived,ResponseStarted"),
        ({"omitStages": ["x"]}, "allowed stages are"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["x"]}]}, "must begin with a '/' character"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/*/x"]}]}, "must be the final character of the rule"),
        (
            {"rules": [{"level": "None", "nonResourceURLs": ["/x"], "namespaces": ["a"]}]},
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            {"rules": [{"level": "None", "resources": [{"resourceNames": ["x"]}]}]},
            "using resourceNames requires at least one resource",
        ),
        ({"rules": ["x"]}, "must be an object"),
        ({"rules": "x"}, "rules must be a list"),
    ],
)
def test_a_bad_policy_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(AuditPolicyError) as error:
        parse({**POLICY, **changed})
    assert words in str(error.value)


def test_a_policy_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AuditPolicyError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("{")
    with pytest.raises(AuditPolicyError, match="is not YAML"):
        read_policy(tmp_path / "bad.yaml")
    assert isinstance(read_policy_of(tmp_path, POLICY), AuditPolicy)


def read_policy_of(folder: Path, policy: dict[str, Any]) -> AuditPolicy:
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    return read_policy(folder / "policy.yaml")


# -- the file


def a_stage(number: int, size: int = 0) -> Stage:
    query = Query("")
    target = target_of("GET", f"/n/{number}/{'x' * size}", query)
    record = Record(f"id-{number}", Recording("Metadata"), 10**18, target, "GET", query, {}, User("eve"))
    return Stage("ResponseComplete", 10**18, record, 200)


def test_the_log_is_bounded_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("from before\n")
    log = auditlog.Log(path, 20_000, 3)
    for number in range(500):
        log.put(a_stage(number, 100))
    log.close()
    files = sorted(tmp_path.iterdir(), key=lambda one: (one == path, one.stat().st_mtime_ns, one.name))
    assert len(files) == 4
    assert all(file.stat().st_size <= 20_000 and file.stat().st_mode & 0o777 == 0o600 for file in files)
    numbers = [int(json.loads(text)["auditID"][3:]) for file in files for text in file.read_text().splitlines()]
    assert numbers == list(range(500 - len(numbers), 500))
    assert 100 < len(numbers) < 500


def test_a_disk_that_refuses_does_not_end_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = auditlog.Log(tmp_path / "audit.log", 1 << 20, 3)
    whole, refused = auditlog.RotatingFile.write, threading.Event()

    def write(file: auditlog.RotatingFile, text: list[bytes]) -> None:
        if not refused.is_set():
            refused.set()
            raise OSError(28, "No space left on device")
        whole(file, text)

    monkeypatch.setattr(auditlog.RotatingFile, "write", write)
    log.put(a_stage(1))
    assert refused.wait(30)
    log.put(a_stage(2))
    log.close()
    assert [json.loads(text)["auditID"] for text in (tmp_path / "audit.log").read_text().splitlines()] == ["id-2"]


def test_a_line_that_cannot_be_made_does_not_end_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = events.line

    def line(stage: Stage) -> bytes:
        if stage.record.id == "id-1":
            raise RuntimeError("nobody thought of that")
        return whole(stage)

    monkeypatch.setattr(auditlog, "line", line)
    log = auditlog.Log(tmp_path / "audit.log", 1 << 20, 3)
    for number in range(3):
        log.put(a_stage(number))
    log.close()
    written = (tmp_path / "audit.log").read_text().splitlines()
    assert [json.loads(text)["auditID"] for text in written] == ["id-0", "id-2"]


@pytest.mark.parametrize(("most", "size"), [("MOST_WAITING_BYTES", 100_000), ("MOST_WAITING", 0)])
def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str, size: int) -> None:
    monkeypatch.setattr(auditlog, most, 50_000 if size else 5)
    log = auditlog.Log(tmp_path / "audit.log", 1 << 20, 3)
    goes_on = threading.Event()

    def line(_: Stage) -> bytes:
        assert goes_on.wait(30)
        return b"{}\n"

    monkeypatch.setattr(auditlog, "line", line)
    for number in range(10):
        held = a_stage(number)
        held.answer = orjson.dumps("x" * size)
        log.put(held)
    assert log.full
    goes_on.set()
    log.close()
    assert not log.full
