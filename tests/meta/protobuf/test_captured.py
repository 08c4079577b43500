"""What a real kubectl v1.36 sends is read as what it meant; what nobody sends is refused, never misread."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from danlu.meta import protobuf

CAPTURED = json.loads(Path(__file__).with_name("captured.json").read_text())


def without_empties(value: Any) -> Any:
    """kubectl prints `status: {}` and the like, which mean nothing."""
    if isinstance(value, dict):
        found = {key: without_empties(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item != {} and item is not None}
    return [without_empties(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("entry", CAPTURED, ids=lambda entry: entry["command"])
def test_what_kubectl_sends_is_what_it_meant(entry: dict[str, Any]) -> None:
    found = protobuf.decode(base64.b64decode(entry["body"]))
    meant = entry.get("object") or {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    # An empty value in a map is a value: data of a ConfigMap.
    assert found is not None
    assert without_empties(found) == without_empties(meant)


def test_an_empty_value_of_a_map_is_kept() -> None:
    entry = next(entry for entry in CAPTURED if entry["command"].startswith("configmap"))
    found = protobuf.decode(base64.b64decode(entry["body"]))
    assert found is not None
    assert found["data"] == {"rate": "0.1", "empty": ""}


def test_json_is_not_taken_for_protobuf() -> None:
    with pytest.raises(protobuf.ProtobufError, match="expected prefix 'k8s'"):
        protobuf.decode(b'{"kind": "Pod"}')


def test_unknown_kinds_are_left_to_the_caller() -> None:
    type_meta = b"\x0a\x02v9\x12\x05Thing"
    assert protobuf.decode(b"k8s\0\x0a" + bytes([len(type_meta)]) + type_meta) is None


@pytest.mark.parametrize("entry", CAPTURED, ids=lambda entry: entry["command"])
def test_torn_and_damaged_messages_are_refused_or_read_never_worse(entry: dict[str, Any]) -> None:
    body = base64.b64decode(entry["body"])
    chance = random.Random(entry["command"])
    damaged = [body[:cut] for cut in range(4, len(body), 7)]
    for _ in range(100):
        changed = bytearray(body)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(4, len(changed))] = chance.randrange(256)
        damaged.append(bytes(changed))
    for data in damaged:
        with contextlib.suppress(protobuf.ProtobufError):
            found = protobuf.decode(data)
            assert found is None or isinstance(found["kind"], str)
