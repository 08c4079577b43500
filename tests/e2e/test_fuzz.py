"""No request may produce a 500 or close the connection without an answer.

schemathesis makes requests from the OpenAPI documents that the server serves itself; below it stand the nasty ones that
no document describes.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import Api, Danlu

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip(
        "schemathesis", reason="schemathesis is not installed; scripts/setup --dev has it"
    )
    import hypothesis
    import requests

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # the tools' own
]
EXAMPLES = 3
# Documents whose schemas are small enough to make bodies from in no time, whole; of the others, what needs no body.
# (tests/embedded/apiserver/test_mutated_bodies.py sends damaged bodies of every kind.)
WHOLE = (
    "apis/coordination.k8s.io/v1",
    "apis/storage.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/rbac.authorization.k8s.io/v1",
)
WITHOUT_BODIES = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1")
SMALL = ("/configmaps", "/secrets", "/resourcequotas")
LARGE = ("/pods", "/nodes", "/services", "/namespaces/{name}", "/deployments", "/jobs", "/customresourcedefinitions")


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu()


@pytest.fixture(scope="module")
def api(danlu: Danlu) -> Api:
    return Api(danlu.kubeconfig)


@pytest.fixture(scope="module")
def session(danlu: Danlu, tmp_path_factory: pytest.TempPathFactory) -> Iterator[requests.Session]:
    """As the admin, with the certificates of the data directory."""
    with requests.Session() as found:
        found.trust_env = False
        found.verify = str(danlu.data / "pki/ca.crt")
        found.cert = (str(danlu.data / "pki/admin.crt"), str(danlu.data / "pki/admin.key"))
        yield found


def described(api: Api, name: str) -> dict[str, Any]:
    """The document, less what cannot be made quickly and what never ends (old watch paths)."""
    status, document = api.request("GET", f"/openapi/v3/{name}")
    assert status == 200
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        is_small = name in WHOLE or any(word in path for word in SMALL)
        if "/watch/" in path or not (is_small or any(word in path for word in LARGE)):
            continue
        dropped = () if is_small else ("post", "put")
        paths[path] = {key: value for key, value in item.items() if key not in dropped}
    return {**document, "paths": paths}


@pytest.mark.parametrize("name", [*WHOLE, *WITHOUT_BODIES])
def test_documented_requests(api: Api, session: requests.Session, name: str) -> None:
    schema = schemathesis.openapi.from_dict(described(api, name))
    problems: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()

        @hypothesis.seed(1)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        @hypothesis.given(case=operation.as_strategy())
        def try_out(case: Any) -> None:
            problems.extend(problem_of(case, api.url, session))

        try_out()
    assert problems == []
    assert api.request("GET", "/readyz")[0] == 200


def problem_of(case: Any, url: str, session: requests.Session) -> list[str]:
    query = dict(case.query or {})
    for endless in ("watch", "follow", "sendInitialEvents"):
        query.pop(endless, None)
    case.query = query
    if case.path_parameters and len(str(case.body)) % 2:  # half of them where something is
        case.path_parameters = {**case.path_parameters, "namespace": "default"}
    try:
        answer = case.call(base_url=url, session=session, timeout=20, verify=session.verify)
    except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, UnicodeError):
        return []  # it never left this process
    except Exception as error:
        return [f"{case.method} {case.formatted_path} {query}: {type(error).__name__} {error}"]
    if answer.status_code >= 500:
        return [
            f"{case.method} {case.formatted_path} {query} {case.body!r:.300}: {answer.status_code} {answer.text[:300]}"
        ]
    return []


# -- what no document describes

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"Content-Type": "application/json"}


def send(api: Api, method: str, target: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """The target exactly as it stands: nothing is made neat on the way."""
    connection = api.open()
    with contextlib.closing(connection):
        connection.putrequest(method, target, skip_host=False, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            connection.endheaders(body)  # a server may answer before it has read all
        answer = connection.getresponse()
        return answer.status, answer.read()


def reason(body: bytes) -> str:
    found = json.loads(body)
    assert found["kind"] == "Status", found
    assert found["message"]
    return str(found["reason"])


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/namespaces/../../etc/passwd",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/%2e%2e%2f%2e%2e/configmaps/x",
        "/api/v1/namespaces/default/configmaps/..",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces/default/configmaps/a%00b",
        "/api/v1/namespaces/default/configmaps/%ff%fe",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/namespaces/default/configmaps/" + "a" * 5000,
        "//api//v1//namespaces//default//configmaps/x",
        "/api/v1/namespaces//configmaps/x",
        "/api/v1/namespaces/default/configmaps/x/",
        "/api/v1/namespaces/default/configmaps/x/status/more/and/more",
        "/apis/../api/v1/configmaps/x",
        "/apis//v1/configmaps",
        "/apis/%2e/v1",
        "/api/v1/namespaces/default/pods/x/log/../../../secrets/x",
        "/api/v1/namespaces/default/pods/..%2f..%2fetc/log",
        "/api/v1/nodes/../proxy",
        "/" + "x/" * 2000,
        "/?" + "a=b&" * 2000,
        "/api/v1/configmaps?limit=" + "9" * 400,
        "/api/v1/configmaps?limit=-1&continue=%ff",
        "/api/v1/configmaps?continue=bm9uc2Vuc2U",
        "/api/v1/configmaps?labelSelector=%28%29%2C%3D%21",
        "/api/v1/configmaps?fieldSelector=spec.nonsense%3Dx",
        "/api/v1/configmaps?resourceVersion=x",
        "/api/v1/configmaps?resourceVersion=-5",
        "/api/v1/configmaps?watch=1&resourceVersion=x",
        "/api/v1/configmaps?watch=1&timeoutSeconds=x",
        "/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersionMatch=nonsense",
        "/openapi/v3/../../x",
        "/openapi/v3/apis/%2e%2e",
    ],
)
def test_odd_targets(api: Api, target: str) -> None:
    status, body = send(api, "GET", target)
    assert status < 500, body
    assert b"root:" not in body
    assert b"Traceback" not in body


def test_a_handshake_that_is_too_long_is_answered(api: Api) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    for size in (100, 20_000, 2_000_000):
        target = "/api/v1/namespaces/default/pods/x/exec?command=" + "y" * size
        status, body = send(api, "GET", target, None, Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==", **upgrade)
        assert 400 <= status < 500, (size, status, body)


def test_names_that_try_to_leave_their_place(api: Api) -> None:
    for name in ("..", ".", "a/b", "../x", "A", "-x", "x" * 254, "a\u0000b", "", "%2e%2e"):
        status, body = send(api, "POST", CONFIG_MAPS, json.dumps({"metadata": {"name": name}}).encode(), **JSON)
        assert status == 422, (name, body)
        assert reason(body) == "Invalid"


def test_bodies_that_are_too_large(api: Api) -> None:
    limit = 3 * 1024 * 1024
    status, body = send(api, "POST", CONFIG_MAPS, b'{"data":"' + b"x" * limit + b'"}', **JSON)
    assert status == 413
    assert reason(body) == "RequestEntityTooLarge"
    status, body = send(api, "POST", CONFIG_MAPS, b"[" * (limit - 10), **JSON)
    assert (status, reason(body)) == (400, "BadRequest")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"3",
        b'"text"',
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": []}',
        b'{"metadata": {"name": 5}}',
        b'{"metadata": {"name": "x", "labels": {"a": 5}}}',
        b'{"metadata": {"name": "x"}, "data": {"a": {"b": 1}}}',
        b'{"metadata": {"name": "\xff\xfe"}}',
        b"\xff\xfe\x00",
        b'{"a":' * 50_000,
        b'{"metadata": {"name": "x", "annotations": ' + b'{"a":' * 9000 + b"1" + b"}" * 9000 + b"}}",
        b'{"metadata": {"name": "\\ud800"}}',
        b'{"metadata": {"name": "x", "generation": 1e999}}',
        b'{"metadata": {"name": "x", "generation": 99999999999999999999999999}}',
        b'{"metadata": {"name": "x", "creationTimestamp": "yesterday"}}',
        b'{"metadata": {"name": "x", "ownerReferences": [null, {}]}}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_bad_bodies(api: Api, body: bytes) -> None:
    status, answer = send(api, "POST", CONFIG_MAPS, body, **JSON)
    assert 400 <= status < 500, answer
    assert reason(answer) in ("BadRequest", "Invalid")


def test_of_a_key_that_stands_twice_the_last_counts(api: Api) -> None:
    body = b'{"metadata": {"name": "x"}, "metadata": {"name": "y"}}'
    status, answer = send(api, "POST", CONFIG_MAPS, body, **JSON)
    assert (status, json.loads(answer)["metadata"]["name"]) == (201, "y")


def test_wrong_content_types(api: Api) -> None:
    good = b'{"metadata": {"name": "typed"}}'
    for kind in ("text/plain", "application/xml", "nonsense", "application/", "multipart/form-data; boundary=x"):
        status, body = send(api, "POST", CONFIG_MAPS, good, Content_Type=kind)
        assert (status, reason(body)) == (415, "UnsupportedMediaType"), kind
    status, body = send(api, "GET", CONFIG_MAPS, Accept="image/png")
    assert status == 406
    for kind in ("application/vnd.kubernetes.protobuf", "application/yaml", "application/cbor"):
        status, body = send(api, "POST", CONFIG_MAPS, b"\x00\x01\xff" * 50, Content_Type=kind)
        assert 400 <= status < 500, body
    torn = b"k8s\x00\x0a\xff\xff\xff\x7f"
    status, body = send(api, "POST", CONFIG_MAPS, torn, Content_Type="application/vnd.kubernetes.protobuf")
    assert 400 <= status < 500, body


PATCHES = {
    "application/json-patch+json": (
        b"{}",
        b"[5]",
        b'[{"op":"fly","path":"/data"}]',
        b'[{"op":"remove","path":"/nothing/here"}]',
        b'[{"op":"add","path":"data","value":1}]',
        b'[{"op":"test","path":"/data/k","value":"other"}]',
        b'[{"op":"replace","path":"","value":5}]',
        b'[{"op":"copy","from":"/metadata","path":"/metadata/annotations"}]',
        b'[{"op":"add","path":"/metadata/finalizers/99","value":"x/y"}]',
    ),
    "application/merge-patch+json": (
        b"[]",
        b"5",
        b"null",
        b'{"metadata":null}',
        b'{"metadata":{"name":"other"}}',
        b"{",
    ),
    "application/strategic-merge-patch+json": (
        b"[]",
        b'{"$patch":"explode"}',
        b'{"metadata":{"finalizers":{"$setElementOrder":1}}}',
        b'{"data":5}',
    ),
    "application/apply-patch+yaml": (
        b"[",
        b"- a",
        b"a: &x [*x]",
        b"apiVersion: v2\nkind: ConfigMap\nmetadata: {name: patched}",
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: patched}",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}",
        b"!!python/object/apply:os.system ['true']",
    ),
}


@pytest.mark.parametrize("kind", list(PATCHES))
def test_bad_patches_change_nothing(api: Api, kind: str) -> None:
    send(api, "POST", CONFIG_MAPS, b'{"metadata": {"name": "patched"}, "data": {"k": "v"}}', **JSON)
    before = send(api, "GET", f"{CONFIG_MAPS}/patched")[1]
    for patch in PATCHES[kind]:
        for query in ("?fieldManager=x", "?fieldManager=x&dryRun=All", "?fieldManager=x&force=nonsense"):
            status, body = send(api, "PATCH", f"{CONFIG_MAPS}/patched{query}", patch, Content_Type=kind)
            assert 400 <= status < 500, (patch, status, body)
            assert reason(body)
    assert send(api, "GET", f"{CONFIG_MAPS}/patched")[1] == before


def test_bad_methods_and_options(api: Api) -> None:
    for method, target, wanted in (
        ("POST", f"{CONFIG_MAPS}/x", 405),
        ("PUT", CONFIG_MAPS, 405),
        ("DELETE", "/api/v1/namespaces/default/configmaps/x?gracePeriodSeconds=soon", 400),
        ("DELETE", "/api/v1/namespaces/default/configmaps/x?propagationPolicy=Up", 422),
        ("POST", f"{CONFIG_MAPS}?dryRun=Some", 422),
        ("POST", f"{CONFIG_MAPS}?fieldValidation=Loose", 422),
    ):
        status, body = send(api, method, target, b'{"metadata": {"name": "m"}}' if method == "POST" else None, **JSON)
        assert status == wanted, (method, target, body)


# -- who may


@pytest.mark.parametrize(
    "header",
    [
        "Bearer nonsense",
        "Bearer a.b.c",
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06bWFzdGVycyJ9.",
        "Bearer " + "x" * 10_000,
    ],
)
def test_bad_tokens_are_not_let_in(danlu: Danlu, api: Api, header: str) -> None:
    context = ssl.create_default_context(cafile=str(danlu.data / "pki/ca.crt"))
    host, _, port = api.url.removeprefix("https://").rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", CONFIG_MAPS, headers={"Authorization": header})
        answer = connection.getresponse()
        assert (answer.status, reason(answer.read())) == (401, "Unauthorized")


def test_what_is_not_allowed_is_forbidden(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu()  # the other one has lost its roles by now
    said = danlu.fails("get", "secrets", "--as", "nobody")
    assert 'User "nobody" cannot list resource "secrets" in API group "" in the namespace "default"' in said
    context = ssl.create_default_context(cafile=str(danlu.data / "pki/ca.crt"))
    anonymous = Api(danlu.kubeconfig)
    anonymous.context = context
    status, answer = anonymous.request("GET", CONFIG_MAPS)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert 'User "system:anonymous"' in answer["message"]


def test_the_server_is_still_well(danlu: Danlu) -> None:
    assert danlu.kubectl("get", "--raw", "/readyz") == "ok"
    log = Path(danlu.data / "danlu.log").read_text()
    assert "Traceback" not in log, log[-3000:]
