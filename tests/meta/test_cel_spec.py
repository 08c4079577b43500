"""CEL as its specification has it, in a table of our own, and against the published cases where Go can fetch them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from danlu.meta.cel.checker import DYN, CheckProblem, check
from danlu.meta.cel.costs import Budget
from danlu.meta.cel.evaluator import BUDGET, compile_tree
from danlu.meta.cel.parser import Uint
from danlu.meta.cel.values import CelError

ROOT = Path(__file__).parents[2]

VALUES: dict[str, Any] = {
    # bytes: escapes are single bytes, letters their UTF-8
    r"b'\xff\377\x41'": b"\xff\xffA",
    r"b'é\n\u00e9'": "é\né".encode(),
    r"rb'\xff'": rb"\xff",
    r"string(b'\xc3\xa9')": "é",
    r"bytes('ÿ') == b'\xff'": False,
    # unsigned numbers stay unsigned
    "7u - 2u": Uint(5),
    "3u * 4u": Uint(12),
    "9u / 2u": Uint(4),
    "9u % 4u": Uint(1),
    "type(9u % 4u) == uint": True,
    # the ends of int
    "-9223372036854775808": -(2**63),
    "int(-9223372036854774784.0)": -9223372036854774784,
    # maps have keys of any kind
    "{1: 'a', 2: 'b'}[2]": "b",
    "{true: 'yes'}[true]": "yes",
    "{5u: 1.5}[5u]": 1.5,
    "{1: 'a', 'b': 2}['b']": 2,
    "3 in {3: 0} && !(4 in {3: 0})": True,
    "'a' in {}": False,
    "{2: 'x', 9: 'y'}.filter(k, k % 2 == 0)": [2],
    "{'a': 1}.all(k, v, k == 'a' && v == 1)": True,
    # entries that are there or not
    "[1, ?optional.of(2), ?optional.none()]": [1, 2],
    "[?optional.none()]": [],
    "{?'a': optional.none(), ?'b': optional.of(1), 'c': 2}": {"b": 1, "c": 2},
    "{?'a': {'x': 1}.?x}": {"a": 1},
    # times
    "timestamp('2026-03-01T23:30:00Z').getDate('+02:00')": 2,
    "timestamp('2026-03-01T00:10:00Z').getHours('-00:30')": 23,
    "timestamp('2026-03-01T12:00:00Z').getHours('05:45')": 17,
    "duration('2562047h') > duration('0s')": True,
    # networks
    "string(ip('10.0.0.1')) + ' ' + string(cidr('10.0.0.0/8'))": "10.0.0.1 10.0.0.0/8",
    "ip('224.0.0.9').isLinkLocalMulticast() && ip('ff02::9').isLinkLocalMulticast()": True,
    "ip('224.0.1.9').isLinkLocalMulticast() || ip('169.254.0.1').isLinkLocalMulticast()": False,
    "ip('255.255.255.255').isGlobalUnicast()": False,
    # texts
    r"strings.quote('a\a\v')": r'"a\a\v"',
    "'%f %e %d'.format([double('NaN'), double('Infinity'), double('-Infinity')])": "NaN Infinity -Infinity",
    "'abcabc'.indexOf('c', 3)": 5,
    "'abc'.lastIndexOf('a', 3)": 0,
}
ERRORS = [
    "1u - 2u", "18446744073709551615u * 2u", "-(-9223372036854775808)", "int(-9223372036854775808.0)",
    "int(9223372036854775807.0)", "{'a': 1, 'a': 2}", "{1: 'a', 1u: 'b'}", "duration('9223372037s')",
    "duration('9000000000s') + duration('9000000000s')", "duration('-9000000000s') - duration('9000000000s')",
    "timestamp('9999-12-31T23:00:00Z') + duration('2h')", "timestamp('0001-01-01T01:00:00Z') - duration('2h')",
    "timestamp('9999-01-01T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')",
    "timestamp('2026-03-01T12:00:00Z').getHours('25:00')", "'abc'.indexOf('a', 4)", "'abc'.lastIndexOf('a', -1)",
    "[[1]].flatten(-1)", "lists.range(-1)", "cidr('fe80::1%eth0/64')", "cidr('::ffff:10.0.0.0/104')",
]  # fmt: skip
REFUSED = ["{1: 'a'}['b']", "{'a': 1}[1]", "'a' in {1: 2}", "[?1]", "{?'a': 1}", "{true: 1}.exists(k, k > 2)"]


def run(source: str) -> Any:
    tree, _ = check(source, {"x": DYN})
    return compile_tree(tree)({BUDGET: Budget()})


@pytest.mark.parametrize("source", VALUES)
def test_values(source: str) -> None:
    found = run(source)
    assert (found, type(found)) == (VALUES[source], type(VALUES[source]))


@pytest.mark.parametrize("source", ERRORS)
def test_errors(source: str) -> None:
    with pytest.raises(CelError):
        run(source)


@pytest.mark.parametrize("source", REFUSED)
def test_what_the_checker_refuses(source: str) -> None:
    with pytest.raises(CheckProblem):
        check(source, {})


@pytest.mark.slow
def test_the_published_cases() -> None:
    done = subprocess.run([ROOT / "scripts/cel-conformance", "--check"], capture_output=True, text=True)
    if done.returncode == 75:
        pytest.skip("Go or the module with the cases is missing")
    assert done.returncode == 0, done.stderr
