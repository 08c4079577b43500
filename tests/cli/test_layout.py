"""Texts in columns: Chinese letters are two wide."""

from __future__ import annotations

import pytest

from danlu.cli import layout


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("ab", 2), ("丹炉", 4), ("a炉", 3), ("ａ", 2), ("é", 1), ("e\u0301", 1), ("…→", 2)]
)
def test_width(text: str, width: int) -> None:
    assert layout.width(text) == width


def test_lines_break_between_words_and_between_chinese_letters() -> None:
    assert layout.wrapped("one two three", 7) == ["one two", "three"]
    assert layout.wrapped("一二三四五", 6) == ["一二三", "四五"]
    assert layout.wrapped("用 Kubernetes 训练模型", 14) == ["用 Kubernetes", "训练模型"]


def test_no_line_begins_with_a_comma() -> None:
    assert layout.wrapped("一二三，四", 6) == ["一二三，", "四"]


def test_a_long_word_stays_whole() -> None:
    assert layout.wrapped("see https://example.com/a/very/long/address now", 12) == [
        "see",
        "https://example.com/a/very/long/address",
        "now",
    ]


def test_what_does_not_fit_is_cut() -> None:
    assert layout.shortened("abcdef", 6) == "abcdef"
    assert layout.shortened("abcdef", 5) == "abcd…"
    assert layout.shortened("一二三", 5) == "一二…"
    assert layout.width(layout.shortened("一二三四", 4)) <= 4


def test_definitions_stand_in_columns() -> None:
    rows = [("-h, --help", "show this help"), ("--a-very-long-option NAME", "one two"), ("名", "二")]
    assert [*layout.definitions(rows, 40)] == [
        "  -h, --help              show this help",
        "  --a-very-long-option NAME",
        "                          one two",
        "  名                      二",
    ]
