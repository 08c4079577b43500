from __future__ import annotations

from typing import Any

from danlu.meta.metadata import validate_metadata, validate_metadata_update
from danlu.meta.names import as_dns_subdomain


def messages(meta: dict[str, Any], namespaced: bool = True) -> list[str]:
    return [error.message() for error in validate_metadata(meta, namespaced, as_dns_subdomain)]


def test_create() -> None:
    assert messages({"name": "a", "namespace": "b", "labels": {"x": "y"}, "annotations": {"X/y": "any thing"}}) == []
    assert messages({"namespace": "b"}) == ["metadata.name: Required value: name or generateName is required"]
    assert messages({"name": "a"}) == ["metadata.namespace: Required value"]
    assert messages({"name": "a", "namespace": "b"}, False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]
    big: dict[str, Any] = {"name": "a", "namespace": "b", "annotations": {"a": "x" * 300_000}}
    assert messages(big) == ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    two = [{"apiVersion": "v1", "kind": "K", "name": name, "uid": "u", "controller": True} for name in "ab"]
    assert (
        'Found "true" in references for K/a and K/b'
        in messages({"name": "a", "namespace": "b", "ownerReferences": two})[0]
    )


def test_update() -> None:
    old = {"name": "a", "uid": "u", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": []}
    new = {**old, "uid": "v", "finalizers": ["x/y"]}
    assert [error.message() for error in validate_metadata_update(new, old)] == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"x/y"}',
        'metadata.uid: Invalid value: "v": field is immutable',
    ]
    assert validate_metadata_update(old, old) == []


def test_finalizers_of_built_in_kinds_are_qualified() -> None:
    meta = {"name": "a", "namespace": "b", "finalizers": ["x", "orphan", "a.b/c"]}
    assert validate_metadata(meta, True, as_dns_subdomain) == []
    (error,) = validate_metadata(meta, True, as_dns_subdomain, native=True)
    assert error.field == "metadata.finalizers[0]"
    assert error.body() == 'Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified'
