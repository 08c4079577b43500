"""The threat model against the attack suite: what is promised is tried, and both languages promise the same."""

from __future__ import annotations

import re

from tests.house.tree import LANGUAGES, ROOT

ATTACKS = ROOT / "tests/attack"
_ROW = re.compile(r"^\| (?P<promise>[^|]+) \| (?P<files>[^|]*`[^|]*) \|$", re.M)


def rows(language: str) -> list[list[str]]:
    """The files that each promise names, in the order of the page."""
    page = (ROOT / f"docs/{language}/security.md").read_text()
    return [re.findall(r"`((?:test_\w+\.py)|fuzz/)`", found["files"]) for found in _ROW.finditer(page)]


def test_every_promise_names_a_test_that_is_there() -> None:
    for language in LANGUAGES:
        found = rows(language)
        assert len(found) > 10
        assert all(found), f"docs/{language}/security.md has a promise that nothing tries"
        missing = {name for names in found for name in names if not (ATTACKS / name).exists()}
        assert not missing, f"docs/{language}/security.md names what is not in tests/attack: {sorted(missing)}"


def test_both_languages_promise_the_same() -> None:
    assert rows("en") == rows("zh")


def test_the_attack_suite_lists_its_files() -> None:
    listed = (ATTACKS / "README.md").read_text()
    unlisted = [path.name for path in sorted(ATTACKS.glob("test_*.py")) if f"`{path.name}`" not in listed]
    assert not unlisted, f"tests/attack/README.md does not say who tries these: {unlisted}"
