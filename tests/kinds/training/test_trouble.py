"""The last words of a replica that died."""

from __future__ import annotations

from danlu.kinds._training import trouble


def test_only_the_end_of_a_log() -> None:
    assert trouble.tail("\n".join(map(str, range(100)))) == "\n".join(map(str, range(90, 100)))
    assert trouble.tail("a\n\n\nb  \n") == "a\nb"
    assert len(trouble.tail("x" * 10000)) == trouble.CHARACTERS
    assert trouble.tail("") == ""
