"""Messages and annotations that a person fills: refusals quote what was refused, and both are read on the loop."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.diagnose.objects import running, unplaced

from danlu import errors
from danlu.diagnose import explain, tables
from danlu.diagnose.contract import LONGEST, NESTED_MESSAGES
from danlu.diagnose.reading import in_chinese, recognise
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, tail_of
from danlu.meta.schema.formats import checker

MEGABYTE = 1024 * 1024
SIGNS = [(sign.code, sign.pattern) for sign in tables.signs()]
SENTENCES = [(words, pattern) for pattern, words in tables.sentences()]
# What patterns try again and again: beginnings, separators, and what fits into their groups.
PIECES = (
    *("x", "1", "x.", ", ", ": ", '"', '": "', "[", "1 x, ", "exceeded quota: x, requested: ", ", used: "),
    *('exec: "x": ', "stat ", "nodes are available: ", "Pod: x", "Invalid value: ", "0/1 nodes are available: "),
)


@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_takes_longer_than_its_text(piece: str) -> None:
    """A backtracking engine takes days for some of these: the time-out of every test is what notices."""
    for beginning in ("", "Error creating: ", "exceeded quota: q, requested: cpu=1, used: cpu=1"):
        text = beginning + piece * (MEGABYTE // len(piece))
        for _, pattern in SIGNS + SENTENCES:
            pattern.search(text)


@pytest.mark.parametrize("text", ["[DL-A a=", " [DL-A a=b", "[DL-A", "[DL-A a=b a=b"])
def test_the_end_of_a_message_is_found_in_one_go(text: str) -> None:
    assert tail_of(text * (MEGABYTE // len(text))) is None
    assert tail_of(text * 1000 + " [DL-ROOM pod=x]") == ("DL-ROOM", {"pod": "x"})


def test_of_a_message_so_much_is_read() -> None:
    known = 'persistentvolumeclaim "mnist" not found'
    room = "x" * (LONGEST - len(known))
    assert recognise(room + known) == ("DL-CLAIM-MISSING", {"claim": "mnist"})
    assert recognise(f"{room}x{known}") is None
    assert in_chinese(f"Error: {room}") is not None
    assert in_chinese(f"Error: {'x' * LONGEST}") is None


def test_messages_within_messages_are_said_so_far() -> None:
    words = in_chinese("Error: " * 500)
    assert words is not None
    assert words.count("错误") == NESTED_MESSAGES + 1


def test_programs_read_a_servers_words_only_so_far() -> None:
    """They go into logs, events and conditions, with every attempt."""
    refused = errors.from_status(422, {"reason": "Invalid", "message": "x" * MEGABYTE})
    assert refused.message == "x" * errors.LONGEST_MESSAGE


@pytest.mark.parametrize("text", ["1" * MEGABYTE, "1." * MEGABYTE, "1h" * MEGABYTE + "!", ".1" * MEGABYTE])
def test_durations_in_a_schema_are_read_in_one_go(text: str) -> None:
    is_duration = checker("duration")
    assert is_duration is not None
    assert not is_duration(text)


def nested(depth: int, code: str, name: str) -> Object:
    """A cause whose sentence has its parameter twice, as deep as that: 2^depth sentences."""
    others = dict.fromkeys(tables.templates()[code].names - {tables.MORE}, "1")
    inner: Any = "x"
    for _ in range(depth):
        inner = {"code": code, "params": others | {name: inner}}
    return dict(inner)


@pytest.mark.parametrize(
    ("code", "name"), [("DL-QUEUE-UNSTATED", "resource"), ("DL-GROUP-NO-ROOM", "group"), ("DL-CREATE", "why")]
)
@pytest.mark.parametrize("language", tables.LANGUAGES)
def test_causes_within_causes_are_said_so_far(code: str, name: str, language: str) -> None:
    """Pods take annotations from the template of their owner, and every look at that one reads them."""
    deep = nested(300, code, name)
    image = {"code": "DL-IMAGE-UNKNOWN", "params": {"image": deep, "environment": "x"}}
    pods = running("p"), unplaced("0/1 nodes are available")
    for pod in pods:
        pod["metadata"]["annotations"] = {ANNOTATION: json.dumps([deep, image])}
        found = explain(pod)
        assert found
        assert all(len(cause.text(language)) < 20_000 for cause in found)
