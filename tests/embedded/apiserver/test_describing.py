"""Discovery, OpenAPI and Tables: what the server says about itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from danlu.embedded.apiserver import discovery, representations
from danlu.embedded.apiserver.negotiation import Wanted
from danlu.embedded.apiserver.openapi import definitions, documents
from danlu.embedded.apiserver.openapi.protobuf import encode_v2
from danlu.embedded.apiserver.registry import Registry
from danlu.embedded.apiserver.served import Column, ServedKind
from danlu.embedded.builtin import BUILTINS
from danlu.errors import BadRequest
from danlu.meta.kind import Kind
from danlu.meta.schema import structural
from danlu.meta.wellknown import POD

CUSTOM = ServedKind(
    Kind("stable.example.com", "v1", "CronTab", "crontabs", True, ("ct",), ("all",)),
    lambda: structural({"type": "object", "properties": {"spec": {"type": "object", "nullable": True}}}),
    lambda _name, _prefix: [],
    has_status=True,
)


@pytest.fixture
def registry() -> Registry:
    return Registry([*BUILTINS, CUSTOM])


def test_groups_come_in_kubernetes_order_and_custom_ones_last(registry: Registry) -> None:
    groups = [one["name"] for one in (discovery.documents(registry).document("/apis", "h") or {})["groups"]]
    assert groups[:2] == ["apps", "events.k8s.io"]
    assert groups[-1] == "stable.example.com"


def test_versions_are_ranked() -> None:
    given = ["v1beta1", "v10", "foo", "v1", "v2alpha1", "v2", "v1beta2"]
    assert sorted(given, key=discovery.version_rank) == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "foo"]


def test_resources_list_their_subresources(registry: Registry) -> None:
    listed = (discovery.documents(registry).document("/api/v1", "h") or {})["resources"]
    by_name = {one["name"]: one for one in listed}
    assert by_name["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="  # as a real server has it
    assert by_name["pods"]["shortNames"] == ["po"]
    assert by_name["pods/status"]["verbs"] == ["get", "patch", "update"]
    scale = (discovery.documents(registry).document("/apis/apps/v1", "h") or {})["resources"]
    entry = next(one for one in scale if one["name"] == "deployments/scale")
    assert (entry["group"], entry["version"], entry["kind"]) == ("autoscaling", "v1", "Scale")


def test_unknown_documents(registry: Registry) -> None:
    current = discovery.documents(registry)
    assert current.document("/apis/nope", "h") is None
    assert current.document("/apis/apps/v9", "h") is None
    assert current.document("/api/v1/pods", "h") is None


def test_documents_follow_the_registry(registry: Registry) -> None:
    before, tag = discovery.documents(registry).aggregated(core=False, version="v2")
    assert discovery.documents(registry).aggregated(core=False, version="v2") == (before, tag)
    registry.remove("stable.example.com", "v1", "crontabs")
    after, other = discovery.documents(registry).aggregated(core=False, version="v2")
    assert b"crontabs" in before
    assert b"crontabs" not in after
    assert tag != other


def test_every_reference_in_openapi_leads_somewhere(registry: Registry) -> None:
    current = documents.documents(registry)
    for path in current.kinds:
        document = current.v3(path)
        known = document["components"]["schemas"]
        assert {name for name in definitions.references(document) if name not in known} == set(), path
    swagger = current.v2()
    assert {name for name in definitions.references(swagger) if name not in swagger["definitions"]} == set()


def test_definitions_have_their_published_form(registry: Registry) -> None:
    current = documents.documents(registry)
    v3 = current.v3("api/v1")["components"]["schemas"]
    v2 = current.v2()["definitions"]
    quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity"
    assert v2[quantity]["type"] == "string"
    assert v3[quantity]["oneOf"] == [{"type": "string"}, {"type": "number"}]
    pod = v3["io.k8s.api.core.v1.Pod"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert "enum" not in pod["properties"]["kind"]
    assert b'"null"' not in orjson.dumps(v3)


def test_operations_say_what_kubectl_looks_for(registry: Registry) -> None:
    current = documents.documents(registry)
    patch = current.v3("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert {"fieldValidation", "fieldManager", "dryRun", "force"} <= {one["name"] for one in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    custom = current.v3("apis/stable.example.com/v1")
    patch = custom["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "com.example.stable.v1.CronTab" in custom["components"]["schemas"]


def test_operation_names_are_unique(registry: Registry) -> None:
    operations: list[str] = []
    for item in documents.documents(registry).v2()["paths"].values():
        operations += [operation["operationId"] for key, operation in item.items() if key != "parameters"]
    assert len(operations) == len(set(operations))


def test_hashes_change_with_the_schema(registry: Registry) -> None:
    before = documents.documents(registry).index()["paths"]
    changed = structural({"type": "object", "properties": {"spec": {"type": "object"}, "more": {"type": "string"}}})
    registry.add(ServedKind(CUSTOM.kind, lambda: changed, CUSTOM.name_errors, has_status=True))
    after = documents.documents(registry).index()["paths"]
    assert before["apis/stable.example.com/v1"] != after["apis/stable.example.com/v1"]
    assert before["api/v1"] == after["api/v1"]


def fields_of(data: bytes) -> dict[int, list[Any]]:
    """A protobuf message, one level deep: enough to look inside what was written."""
    found: dict[int, list[Any]] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            found.setdefault(key >> 3, []).append(data[position : position + size])
            position += size
        elif key & 7 == 1:
            position += 8
        else:
            found.setdefault(key >> 3, []).append(varint())
    return found


def test_openapi_v2_as_protobuf(registry: Registry) -> None:
    swagger = documents.documents(registry).v2()
    document = fields_of(encode_v2(swagger))
    assert document[1] == [b"2.0"]
    named = [fields_of(one) for one in fields_of(document[9][0])[1]]
    assert [one[1][0].decode() for one in named] == list(swagger["definitions"])
    assert len(fields_of(document[8][0])[2]) == len(swagger["paths"])


COLUMNS = ServedKind(
    POD,
    lambda: structural({"type": "object"}),
    lambda _name, _prefix: [],
    columns=(Column("Name", lambda obj: obj["metadata"]["name"], format="name"), Column("N", lambda _: 3, "integer")),
)
THING = {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"x": 1}}


@pytest.mark.parametrize(
    ("include", "carried"),
    [
        ("", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": THING["metadata"]}),
        ("Object", THING),
        ("None", None),
    ],
)
def test_tables(include: str, carried: Any) -> None:
    answer = orjson.loads(representations.render_many(Wanted("table", "v1"), COLUMNS, [THING], {}, include).body)
    assert [one["name"] for one in answer["columnDefinitions"]] == ["Name", "N"]
    assert answer["rows"] == [{"cells": ["a", 3], "object": carried}]


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(BadRequest):
        representations.render_one(Wanted("table", "v1"), COLUMNS, THING, "Everything")


def test_bookmarks_in_tables_have_a_row() -> None:
    bookmark = {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}
    answer = representations.convert_bookmark(Wanted("table", "v1"), COLUMNS, bookmark)
    assert answer["rows"][0]["object"]["metadata"] == {"resourceVersion": "9"}
    assert len(answer["rows"][0]["cells"]) == 2
