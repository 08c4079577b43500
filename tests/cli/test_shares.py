"""`--nodes`, good and bad."""

from __future__ import annotations

import pytest

from danlu.cli.local.shares import parse_nodes
from danlu.embedded.settings import NodeShare


def test_a_number_is_that_many_equal_nodes() -> None:
    assert parse_nodes("1") == []  # one node, the whole machine, under the machine's name
    assert [share.name for share in parse_nodes("3")] == ["node-0", "node-1", "node-2"]
    assert len(parse_nodes("500")) == 500


def test_descriptions() -> None:
    assert parse_nodes("a") == [NodeShare("a")]
    assert parse_nodes("a:cpu=1500m,memory=4Gi,gpu=2; b.c-1:cpu=4 ;") == [
        NodeShare("a", 1.5, 4 << 30, 2),
        NodeShare("b.c-1", 4.0),
    ]
    assert parse_nodes("a:gpu=0") == [NodeShare("a", gpus=0)]
    assert parse_nodes("a:cpu=1, memory=1G") == [NodeShare("a", 1.0, 10**9)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "0 nodes; choose 1 to 500"),
        ("501", "501 nodes; choose 1 to 500"),
        ("", "no node is named"),
        (";;", "no node is named"),
        ("a;b;a", "two nodes have the same name"),
        ("-1", "'-1' is not a name for a node"),
        ("A", "'A' is not a name for a node"),
        ("a..", "'a..' is not a name for a node"),
        ("x" * 300, "is not a name for a node"),
        (":cpu=1", "'' is not a name for a node"),
        ("a:cpu", "'' is not an amount of cpu"),
        ("a:cpu=", "'' is not an amount of cpu"),
        ("a:cpu=many", "'many' is not an amount of cpu; write for instance cpu=2 or cpu=500m"),
        ("a:memory=4GB", "'4GB' is not an amount of memory"),
        ("a:cpu=0", "cpu=0: a node needs more than that"),
        ("a:memory=-1Gi", "memory=-1Gi: a node needs more than that"),
        ("a:gpu=1.5", "gpu=1.5: GPUs come whole"),
        ("a:gpu=-1", "gpu=-1: GPUs come whole"),
        ("a:disk=1", "'disk' is not known; a node has cpu, memory and gpu"),
        ("a:cpu=1,cpu=2", "cpu is said twice"),
    ],
)
def test_bad_descriptions_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueError) as problem:
        parse_nodes(text)
    assert said in str(problem.value)
