"""Numbers in text, however long somebody makes them."""

from __future__ import annotations

import pytest

from danlu.meta.integers import LARGEST, decimal


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("9" * 19, LARGEST),
        ("9" * 5000, LARGEST),
        ("-" + "9" * 5000, -LARGEST),
        ("0" * 5000 + "12", 12),
        ("0" * 5000, 0),
        (str(LARGEST), LARGEST),
    ],
)
def test_decimal(text: str, number: int) -> None:
    assert decimal(text) == number


@pytest.mark.parametrize("text", ["", "-", "x", "9" * 5000 + "x", "+-" + "1" * 30, "١" * 30])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError):
        decimal(text)
