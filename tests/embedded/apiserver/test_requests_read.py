"""Gets, lists, watches, and paths that lead nowhere, in the words of a real Kubernetes 1.36.3 API server."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest
from tests.embedded.apiserver.asking import (
    ADMIN,
    DEFINITIONS,
    NAMESPACE,
    THINGS,
    Ask,
    config_map,
    definition,
    thing,
)

from danlu.embedded.apiserver.app import App, _send_stream
from danlu.embedded.apiserver.request import Call, Query, Response, StreamResponse, User
from danlu.embedded.cluster import Cluster

MAPS = f"{NAMESPACE}/configmaps"
SECRETS = f"{NAMESPACE}/secrets"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
NOT_FOUND = "the server could not find the requested resource"


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


async def test_paths_and_methods_that_lead_nowhere(ask: Ask) -> None:
    cases: list[tuple[str, str, int, str]] = [
        ("GET", f"{NAMESPACE}/foos", 404, NOT_FOUND),
        ("GET", "/apis/apps/v9/deployments", 404, NOT_FOUND),
        ("GET", f"{MAPS}/c/status", 404, NOT_FOUND),
        ("GET", "/api/v1/configmaps/c", 404, NOT_FOUND),
        ("GET", "/apis/foo.io/v1/foos", 404, "404 page not found\n"),
        ("GET", f"{MAPS}/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        ("GET", f"{MAPS}/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ("POST", f"{MAPS}/c", 405, NOT_ALLOWED),
        ("POST", "/api/v1/configmaps", 405, NOT_ALLOWED),
        ("DELETE", "/api/v1/configmaps", 405, NOT_ALLOWED),
        ("PUT", MAPS, 405, NOT_ALLOWED),
        ("PATCH", MAPS, 405, NOT_ALLOWED),
        ("HEAD", MAPS, 405, NOT_ALLOWED),
        ("OPTIONS", MAPS, 405, NOT_ALLOWED),
        ("POST", "/version", 405, NOT_ALLOWED),
        ("PUT", f"{NAMESPACE}/pods/p/exec", 405, NOT_ALLOWED),
        ("POST", f"{NAMESPACE}/pods/p/log", 405, NOT_ALLOWED),
        ("GET", "/readyz/zz", 404, "404 page not found\n"),
        ("GET", "/healthz/ping", 200, "ok"),
    ]
    for method, target, status, message in cases:
        answer = await ask(method, target)
        assert (answer.status, answer.message) == (status, message), target
        if message in (NOT_ALLOWED, NOT_FOUND):
            assert answer.body["details"] == {}


async def test_paths_of_custom_kinds_that_lead_nowhere(ask: Ask) -> None:
    await ask.made(DEFINITIONS, definition())
    await ask.made(THINGS, thing("t"))
    unsupported = 'create is not supported on resources of kind "things.example.com"'
    assert (await ask("POST", f"{THINGS}/t/status", thing("t"))).message == unsupported
    assert (await ask("GET", f"{THINGS}/t/zz")).message == 'things.example.com "t" not found'
    assert (await ask("GET", "/apis/example.com/v2/namespaces/default/things")).message == "404 page not found\n"


async def test_selectors_that_are_refused(ask: Ask) -> None:
    only = '"x.y" is not a known field selector: only "metadata.name", "metadata.namespace"'
    cases = [
        (f"{MAPS}?fieldSelector=x.y=z", only),
        ("/apis/apps/v1/namespaces/default/deployments?fieldSelector=x.y=z", only),
        (f"{NAMESPACE}/pods?fieldSelector=x.y=z", "field label not supported: x.y"),
        (f"{NAMESPACE}/events?fieldSelector=x.y=z", "field label not supported: x.y"),
        ("/apis/batch/v1/namespaces/default/jobs?fieldSelector=x.y=z", 'field label "x.y" not supported for Job'),
        (f"{MAPS}?fieldSelector=abc", "invalid selector: 'abc'; can't understand 'abc'"),
        (f"{MAPS}?labelSelector=a%20in%20b", "unable to parse requirement: found 'b' expected: '('"),
        (f"{MAPS}?labelSelector=,", "found ',', expected: !, identifier, or 'end of string'"),
    ]
    for target, message in cases:
        for watch in ("", "&watch=1"):
            answer = await ask("GET", target + watch)
            assert (answer.status, answer.message) == (400, message)


async def test_versions_and_options_that_are_refused(ask: Ask) -> None:
    invalid, match = 'ListOptions.meta.k8s.io "" is invalid: ', "resourceVersionMatch"
    number = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    cases = [
        (f"{SECRETS}?resourceVersion=abc", 400, f"invalid resource version: {number}"),
        (f"{SECRETS}?watch=1&resourceVersion=abc", 400, number),
        (f"{SECRETS}?watch=1&timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (f"{SECRETS}?{match}=Foo&resourceVersion=1", 422,
         f'{invalid}{match}: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""'),
        (f"{SECRETS}?{match}=Exact", 422,
         f"{invalid}{match}: Forbidden: {match} is forbidden unless resourceVersion is provided"),
        (f"{SECRETS}?sendInitialEvents=true", 422,
         f"{invalid}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (f"{SECRETS}?watch=1&sendInitialEvents=true", 422,
         f"{invalid}{match}: Forbidden: sendInitialEvents requires setting {match} to NotOlderThan"),
    ]  # fmt: skip
    for target, status, message in cases:
        answer = await ask("GET", target)
        assert (answer.status, answer.message) == (status, message)
        if status == 422:
            assert answer.body["details"].keys() == {"group", "kind", "causes"}
    late = await ask("GET", f"{SECRETS}?resourceVersion=99999999")
    assert late.status == 504
    assert late.message.startswith("Timeout: Too large resource version: 99999999, current: ")
    assert late.headers["retry-after"] == "1"


async def test_watches_that_begin_with_what_is_there(ask: Ask) -> None:
    initial = f"{SECRETS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    marked = await ask("GET", f"{initial}&allowWatchBookmarks=true")
    assert '"k8s.io/initial-events-end":"true"' in str(marked.body).replace("'", '"').replace(": ", ":")
    unmarked: Any = await ask("GET", initial)
    assert unmarked.body == ""
    assert (await ask("GET", f"{SECRETS}/zz?watch=1")).message == 'secrets "zz" not found'


async def test_people_get_indented_answers(ask: Ask) -> None:
    async def text(target: str, **headers: str) -> bytes:
        call = Call(ask.server, "GET", NAMESPACE, Query(target), headers, b"", ADMIN)
        answer = await ask.server.handle(call)
        assert isinstance(answer, Response)
        return answer.body

    assert b"\n" not in await text("")
    assert b'\n  "kind"' in await text("pretty=true")
    assert b'\n  "kind"' in await text("", accept="*/*", **{"user-agent": "curl/8"})
    assert b"\n" not in await text("pretty=0", accept="*/*", **{"user-agent": "curl/8"})


async def test_long_answers_are_compressed_for_other_machines(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.server.authenticator, "authenticate", lambda *_: ADMIN)
    for number in range(3):
        obj = config_map(f"c{number}", a="x" * 100_000)
        await Ask(cluster).made(MAPS, obj)
    for host, compressed in (("192.0.2.7", True), ("127.0.0.1", False)):
        sent = await _over_http(cluster, MAPS, host)
        headers = dict(sent[0]["headers"])
        assert (headers.get(b"content-encoding") == b"gzip") is compressed
        body = b"".join(message["body"] for message in sent[1:])
        assert int(headers[b"content-length"]) == len(body)
        items = orjson.loads(gzip.decompress(body) if compressed else body)["items"]
        assert len(items) == 3


async def _over_http(cluster: Cluster, path: str, host: str) -> list[Any]:
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"accept-encoding", b"gzip")], "client": (host, 1), "state": {},
    }  # fmt: skip
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    await App(cluster.server)(scope, receive, send)
    return sent


async def test_refused_paths_say_so_with_empty_details(ask: Ask) -> None:
    nobody = User("system:anonymous", "", ("system:unauthenticated",))
    answer = await ask("GET", "/metrics", user=nobody)
    assert answer.message == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert answer.body["details"] == {}


async def test_a_watcher_that_left_before_the_first_line_is_forgotten(cluster: Cluster) -> None:
    """Else its queue would grow with every change."""
    call = Call(cluster.server, "GET", MAPS, Query("watch=1"), {}, b"", ADMIN)
    answer = await cluster.server.handle(call)
    assert isinstance(answer, StreamResponse)
    watchers = cluster.store.watch_cache.window("configmaps").watchers
    assert len(watchers) == 1

    async def gone(_message: Any) -> None:
        raise OSError("connection reset")

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    with pytest.raises(OSError, match="connection reset"):
        await _send_stream({}, receive, gone, answer)
    assert not watchers
