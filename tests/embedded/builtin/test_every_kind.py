"""What holds for every built-in kind, whatever it is."""

from __future__ import annotations

import pytest

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin import BUILTINS
from danlu.meta import protobuf
from danlu.meta.kind import Object
from danlu.meta.objects import copy

STORED = [served for served in BUILTINS if served.answer is None]


def bare(served: ServedKind) -> Object:
    obj: Object = {"apiVersion": served.kind.api_version, "kind": served.kind.kind, "metadata": {"name": "x"}}
    obj["metadata"]["uid"] = "u"
    if served.kind.namespaced:
        obj["metadata"]["namespace"] = "default"
    return obj


@pytest.mark.parametrize("served", STORED, ids=lambda served: served.kind.resource)
class TestEveryKind:
    def test_an_object_with_nothing_in_it_breaks_no_hook(self, served: ServedKind) -> None:
        obj = bare(served)
        served.default(obj)
        served.prepare_create(obj)
        served.validate(obj)
        served.warnings(obj)
        new = copy(obj)
        served.default(new)
        served.prepare_update(new, obj)
        served.validate_update(new, obj)
        status = copy(obj)
        served.default(status)
        served.prepare_status(status, obj)
        served.validate_status(status, obj)

    def test_it_is_read_as_protobuf(self, served: ServedKind) -> None:
        """Go clients send nothing else for kinds that they know by heart."""
        if served.computed is not None:
            return  # nobody sends it
        texts = [text.encode() for text in (served.kind.api_version, served.kind.kind)]
        named = b"".join(bytes([number << 3 | 2, len(text)]) + text for number, text in enumerate(texts, 1))
        message = protobuf.MAGIC + bytes([1 << 3 | 2, len(named)]) + named
        assert protobuf.decode(message) == {"apiVersion": served.kind.api_version, "kind": served.kind.kind}

    def test_defaults_settle(self, served: ServedKind) -> None:
        once = bare(served)
        served.default(once)
        twice = copy(once)
        served.default(twice)
        assert twice == once

    def test_an_update_that_changes_nothing_keeps_the_generation(self, served: ServedKind) -> None:
        old = bare(served)
        served.default(old)
        served.prepare_create(old)
        new = copy(old)
        served.default(new)
        served.prepare_update(new, old)
        assert new["metadata"].get("generation") == old["metadata"].get("generation")

    def test_columns_and_selectable_fields_are_there_for_anything(self, served: ServedKind) -> None:
        for obj in ({}, bare(served)):
            for column in served.columns:
                column.value(obj)
            assert served.selectable_names <= served.selectable(obj).keys()

    def test_the_schema_knows_the_kind(self, served: ServedKind) -> None:
        root = served.schema().root
        if served.computed is not None:  # of an API that is not Kubernetes' own: its schema is written here
            assert root.fields
            return
        assert root.go_struct == served.kind.kind
        assert {"apiVersion", "kind", "metadata"} <= root.fields.keys()


def test_one_place_in_storage_has_one_storage_version() -> None:
    keys = [served.key for served in STORED if served.storage_version]
    assert len(keys) == len(set(keys))
