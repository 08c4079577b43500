"""Links are followed as from a root of their own, and lead out of it nowhere."""

from __future__ import annotations

import pytest

from danlu.embedded.node.sandbox import symlinks

LINKS = {"abs": "/a/b", "rel": "../c", "a/up": "../../../d", "chain": "abs/x", "round": "there", "there": "round"}


def followed(path: str) -> str:
    return "/".join(symlinks.follow(path, lambda parts: LINKS.get("/".join(parts))))


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("/etc//./passwd", "etc/passwd"),
        ("../../etc", "etc"),
        ("abs/file", "a/b/file"),
        ("x/../rel/y", "c/y"),
        ("a/up/e", "d/e"),
        ("chain/..", "a/b"),
        ("a/missing/file", "a/missing/file"),
        ("", ""),
    ],
)
def test_where_a_path_leads(path: str, leads: str) -> None:
    assert followed(path) == leads


def test_a_circle_ends() -> None:
    with pytest.raises(symlinks.TooManyLinks):
        followed("round/x")
