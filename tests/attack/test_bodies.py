"""What is sent to be parsed: deep, long, self-repeating. Refused in Kubernetes' words, and the server goes on."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from tests.attack.conftest import NewPerson
from tests.running import Api, Danlu

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.meta import protobuf, yamlreader
from danlu.meta.jsonpath import JsonPath, JsonPathError
from danlu.meta.kind import Kind
from danlu.meta.labels import SelectorError, parse_selector
from danlu.meta.nesting import MOST_DEPTH

YAML, APPLY = "application/yaml", "application/apply-patch+yaml"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
CONFIG_MAPS = "/api/v1/namespaces/a/configmaps"
DEEP = 100_000
DEEP_YAML = {
    "flow lists": "[" * DEEP,
    "flow maps": "{a: " * DEEP,
    "lists on one line": "- " * DEEP + "x",
    "keys of keys": "? " * DEEP + "x",
    "indented": "\n".join(" " * level + "a:" for level in range(2000)),
    "lists in maps": "\n".join(" " * level + "a:\n" + " " * level + "-" for level in range(1000)),
    "aliases": "k0: &k0 [x]\n" + "".join(f"k{n}: &k{n} [*k{n - 1}]\n" for n in range(1, 20_000)),
    "merged": "k0: &k0 {a: b}\n" + "".join(f"k{n}: &k{n} {{<<: *k{n - 1}}}\n" for n in range(1, 20_000)),
}
PARSE = "import sys; from danlu.meta import yamlreader; yamlreader.load(sys.stdin.buffer.read())"


# -- YAML


@pytest.mark.parametrize("shape", DEEP_YAML)
def test_deep_yaml_does_not_end_the_process(shape: str) -> None:
    """In a process of its own, which a fault of the parser would kill."""
    done = subprocess.run([sys.executable, "-c", PARSE], input=DEEP_YAML[shape].encode(), capture_output=True)
    assert done.returncode == 1, f"ended with {done.returncode}"
    assert b"yaml: exceeded max depth" in done.stderr


@pytest.mark.e2e
def test_deep_yaml_is_refused_by_a_whole_server(make_danlu: Callable[..., Danlu]) -> None:
    api = Api(make_danlu("--no-console").kubeconfig)
    path = "/api/v1/namespaces/default/configmaps"
    for shape in ("flow lists", "lists on one line", "keys of keys"):
        body = DEEP_YAML[shape].encode()
        for method, where, content in (("POST", path, YAML), ("PATCH", f"{path}/x?fieldManager=m", APPLY)):
            status, said = api.request(method, where, body, {"Content-Type": content})
            assert status == 400, said
            assert "exceeded max depth" in said["message"]
    assert api.request("GET", "/readyz") == (200, "ok")


def test_aliases_do_not_blow_up() -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    laughs += "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(yamlreader.YamlError, match="yaml: document contains excessive aliasing"):
        yamlreader.load(laughs)
    with pytest.raises(yamlreader.YamlError, match="yaml: document contains excessive aliasing"):
        yamlreader.load("a: &a " + "x" * 100_000 + "\nb: [" + "*a," * 40_000 + "]")
    with pytest.raises(yamlreader.YamlError, match="more than 100000 values"):
        yamlreader.load("- a\n" * 200_000)


# -- JSON and patches


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def config_map(name: str = "c") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}}


FREE = Kind("attack.example", "v1", "Free", "frees")


async def define_free(client: Client) -> str:
    """A kind that takes any data; the path of its objects in namespace `a`."""
    schema = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
    assert (await define(client, FREE, schema))[0] == 201
    return "/apis/attack.example/v1/namespaces/a/frees"


async def define(client: Client, kind: Kind, schema: dict[str, Any]) -> tuple[int, str]:
    """(status, what was said)"""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": {"kind": kind.kind, "plural": kind.plural},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }  # fmt: skip
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await client.transport.request("POST", path, [], {"content-type": "application/json"}, orjson.dumps(crd))
    assert isinstance(answer.body, bytes)
    return answer.status, orjson.loads(answer.body).get("message", "")


def free(spec: Any, name: str = "x") -> dict[str, Any]:
    return {"apiVersion": "attack.example/v1", "kind": "Free", "metadata": {"name": name}, "spec": spec}


async def test_deep_json_is_refused_on_every_way_in(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    path = await define_free(client)
    assert (await mallory.request("POST", path, free({})))[0] == 201
    for depth in (MOST_DEPTH + 5, 900, 100_000):
        deep = b'{"apiVersion":"attack.example/v1","kind":"Free","metadata":{"name":"x"},"spec":' + (
            b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        )
        for method, where, content in (
            ("POST", path, "application/json"), ("PUT", f"{path}/x", "application/json"),
            ("PATCH", f"{path}/x", MERGE_PATCH), ("PATCH", f"{path}/x?fieldManager=m", APPLY),
            ("DELETE", f"{path}/x", "application/json"), ("POST", path, YAML),
        ):  # fmt: skip
            status, said = await mallory.request(method, where, deep, content)
            assert status == 400, (method, content, depth, said)
            assert "exceeded max depth" in said["message"]


async def test_what_is_as_deep_as_allowed_works_everywhere(client: Client, new_person: NewPerson) -> None:
    """Nothing behind the parser stops earlier: field ownership, patches, lists, watches, tables."""
    mallory = await new_person()
    path = await define_free(client)
    spec = nested(MOST_DEPTH - 1)
    assert (await mallory.request("POST", path, free(spec)))[0] == 201
    assert (await mallory.request("PATCH", f"{path}/x", {"spec": spec | {"b": 1}}, MERGE_PATCH))[0] == 200
    assert (await mallory.request("PATCH", f"{path}/x?fieldManager=m&force=true", free(spec), APPLY))[0] == 200
    assert (await mallory.request("GET", path))[0] == 200
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert (await mallory.request("GET", path, accept=table))[0] == 200
    assert (await mallory.request("GET", f"{path}?watch=1&timeoutSeconds=1&resourceVersion=0"))[0] == 200
    assert (await mallory.request("DELETE", f"{path}/x"))[0] == 200


async def test_patches_cannot_nest_what_was_not_deep(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    path = await define_free(client)
    assert (await mallory.request("POST", path, free({"a": {}})))[0] == 201
    half = nested(MOST_DEPTH // 2)
    here = "/spec" + "/a" * (MOST_DEPTH // 2)
    for patch in (
        [{"op": "copy", "from": "/spec", "path": "/spec/b"}] * 2000,
        [{"op": "copy", "from": "/spec", "path": "/spec/a"}] * 300,
        [{"op": "add", "path": "/spec", "value": half}, {"op": "copy", "from": "/spec", "path": f"{here}"}] * 1
        + [{"op": "copy", "from": "/spec", "path": f"{here}/b"}],
        [{"op": "add", "path": f"/spec{'/a' * level}", "value": {}} for level in range(400)],
    ):
        status, said = await mallory.request("PATCH", f"{path}/x", patch, JSON_PATCH)
        assert status == 422, said
        assert "exceeded max depth" in said["message"]


# -- protobuf


def field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(kind: str, api_version: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)


def _deep_schema(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = field(28, inner)  # JSONSchemaProps.not
    return inner


PROTOBUF = {
    "schemas in schemas": message(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        field(2, field(7, field(4, field(1, _deep_schema(5000))))),
    ),
    "empty items": message("Pod", "v1", field(2, b"\x12\x00" * 1_000_000)),
    "a length beyond the end": b"k8s\0" + b"\x12" + _varint(1 << 62) + b"x",
    "a group": b"k8s\0" + b"\x0b" * 1000,
    "endless varint": b"k8s\0" + b"\xff" * 1000,
    "JSON that is deep": message("ControllerRevision", "apps/v1", field(2, field(1, b"[" * 500 + b"]" * 500))),
}  # fmt: skip


PROTOBUF_WORDS = {
    "schemas in schemas": "exceeded max depth", "empty items": "more than 100000 fields",
    "a length beyond the end": "unexpected EOF", "a group": "illegal wireType 3", "endless varint": "integer overflow",
    "JSON that is deep": "an embedded object is not JSON",
}  # fmt: skip


@pytest.mark.parametrize("name", PROTOBUF)
def test_protobuf_is_bounded(name: str) -> None:
    with pytest.raises(protobuf.ProtobufError, match=PROTOBUF_WORDS[name]):
        protobuf.decode(PROTOBUF[name])


# -- what is parsed besides bodies


async def test_tokens_that_are_deep_json_are_no_tokens(cluster: Cluster, new_person: NewPerson) -> None:
    mallory = await new_person()
    deep, fine = (
        base64.urlsafe_b64encode(text).decode().rstrip("=") for text in (b"[" * 20_000 + b"]" * 20_000, b"{}")
    )
    for head, claims in ((deep, deep), (fine, deep), (deep, fine)):
        mallory.token = f"{head}.{claims}.{'A' * 86}"
        assert (await mallory.request("GET", CONFIG_MAPS))[0] == 401


async def test_a_secret_that_is_deep_json_is_refused(new_person: NewPerson) -> None:
    mallory = await new_person()
    data = base64.b64encode(b'{"a":' * 900 + b"1" + b"}" * 900).decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "kubernetes.io/dockerconfigjson"}
    status, said = await mallory.request(
        "POST", "/api/v1/namespaces/a/secrets", secret | {"data": {".dockerconfigjson": data}}
    )
    assert (status, "exceeded max depth" in said["message"]) == (422, True)


async def test_last_applied_that_is_deep_is_passed_over(new_person: NewPerson) -> None:
    mallory = await new_person()
    deep = '{"apiVersion":"v1","data":' + '{"a":' * 900 + "1" + "}" * 901
    obj = config_map()
    obj["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": deep}
    assert (await mallory.request("POST", CONFIG_MAPS, obj))[0] == 201
    status, said = await mallory.request(
        "PATCH", f"{CONFIG_MAPS}/c?fieldManager=kubectl", config_map() | {"data": {"k": "w"}}, APPLY
    )
    assert status == 409, said


async def test_queries_and_selectors_are_bounded(new_person: NewPerson) -> None:
    mallory = await new_person()
    status, said = await mallory.request("GET", f"{CONFIG_MAPS}?{'a&' * 20_000}")
    assert (status, said["message"]) == (400, "number of URL query parameters exceeded limit")
    terms = ",".join(f"!k{n}" for n in range(1000))
    for query in (f"labelSelector={terms}", "fieldSelector=" + ",".join(["metadata.name!=x"] * 1000)):
        status, said = await mallory.request("GET", f"{CONFIG_MAPS}?{query}")
        assert (status, said["message"]) == (400, "a selector may have at most 256 requirements")
    with pytest.raises(SelectorError):
        parse_selector(terms)


@pytest.mark.parametrize("path", ["[*,*]" * 40, "..a" * 60, "[0:1,0:1,0:1]" * 50, "[?(@..a)]" * 60])
def test_a_column_cannot_look_at_exponentially_much(path: str) -> None:
    """Each step doubles what the next one goes through; without a bound none of these ends."""
    data: Any = {"a": 1}
    for _ in range(60):
        data = {"a": [data, data]} if len(orjson.dumps(data)) < 1000 else {"a": data}
    assert JsonPath(path).find([data, data]) == []


@pytest.mark.parametrize("path", ["a" * 5000, "[?(@" * 100 + ")]" * 100, "[::0]", "[" + "9" * 5000 + "]"])
def test_paths_that_cannot_be_run_are_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


# -- CEL


EXPENSIVE = {
    "loops in loops": "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, true))))",
    "a list out of nothing": "lists.range(1000000000000).size() > 0",
    "text that grows": "'a'" + ".replace('a', 'aaaaaaaaaa')" * 30 + ".size() > 0",
    "text that grows at once": "self.t.replace('a', self.t).size() > 0",
    "lists that double": "[1]" + ".map(x, [x, x])" * 40 + ".flatten(50).size() > 0",
    "lists that are added": "[self.l]" + ".map(x, x + x + x + x)" * 20 + ".size() > 0",
    "text that is formatted": "'%s'.format([[1]" + ".map(x, [x, x])" * 40 + "]).size() > 0",
    "all compared with all": "self.l.all(x, self.l == self.l)",
    "hidden from ||": "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, true)))) || true",
    "in an optional": "optional.of(self.l).optMap(y, y.all(a, y.all(b, y.all(c, y.all(d, true))))).hasValue()",
}


@pytest.mark.parametrize("name", EXPENSIVE)
async def test_rules_have_a_cost_limit(name: str, client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    kind = Kind("cost.example", "v1", "Cost", "costs")
    spec: dict[str, Any] = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}}
    spec["properties"]["t"] = {"type": "string"}
    spec["x-kubernetes-validations"] = [{"rule": EXPENSIVE[name]}]
    assert (await define(client, kind, {"type": "object", "properties": {"spec": spec}}))[0] == 201
    obj = {"apiVersion": "cost.example/v1", "kind": "Cost", "metadata": {"name": "x"}}
    obj |= {"spec": {"l": [*range(2000)], "t": "a" * 300_000}}
    status, said = await mallory.request("POST", "/apis/cost.example/v1/namespaces/a/costs", obj)
    assert status == 422
    assert "operation cancelled: actual cost limit exceeded" in said["message"]


DEEP_RULES = {
    "brackets": "(" * 300 + "true" + ")" * 300,
    "not": "!" * 2000 + "true",
    "lists": "[" * 300 + "]" * 300 + " == []",
    "a sum": "1" + " + 1" * 3000 + " > 0",
    "fields": "self" + ".a" * 3000 + " == 1",
    "choices": "true ? true : " * 300 + "true",
    "methods": "''" + ".trim()" * 3000 + " == ''",
    "long": "true" + " && true" * 20_000,
    "a number": "9" * 5000 + " > 0",
    "half a character": "'\\ud800' == 'a'",
}


@pytest.mark.parametrize("name", DEEP_RULES)
async def test_rules_that_are_too_deep_are_refused_with_the_definition(name: str, client: Client) -> None:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {"type": "object", "properties": {"spec": {**spec, "x-kubernetes-validations": [{"rule": DEEP_RULES[name]}]}}}
    status, said = await define(client, Kind("deep.example", "v1", "Deep", "deeps"), crd)
    assert status == 422
    assert "compilation failed" in said


async def test_long_chains_of_conditions_still_work(client: Client) -> None:
    rule = " && ".join(["size(self) < 100"] * 600)
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}},
    }
    assert (await define(client, Kind("long.example", "v1", "Long", "longs"), schema))[0] == 201


# -- a CRD whose schema is deep or huge


@pytest.mark.parametrize("levels", [60, 98, 150, 5000])
async def test_deep_schemas_are_taken_or_refused_never_failed_on(
    levels: int, client: Client, new_person: NewPerson
) -> None:
    mallory = await new_person(rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    schema = b'{"type":"object","properties":{"a":' * levels + b'{"type":"string"}' + b"}}" * levels
    crd = (
        b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ds.d.example"},'
        b'"spec":{"group":"d.example","scope":"Namespaced","names":{"kind":"D","plural":"ds"},"versions":[{"name":"v1",'
        b'"served":true,"storage":true,"schema":{"openAPIV3Schema":' + schema + b"}}]}}"
    )
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await client.transport.request("POST", path, [], {"content-type": "application/json"}, crd)
    assert answer.status == (201 if levels < 98 else 400), answer.body
    if answer.status == 201:
        obj = {"apiVersion": "d.example/v1", "kind": "D", "metadata": {"name": "x"}, **nested(levels)}
        assert (await mallory.request("POST", "/apis/d.example/v1/namespaces/a/ds", obj))[0] == 201
        assert (await client.transport.request("GET", "/openapi/v2", [], {}, b"")).status == 200
