from __future__ import annotations

import pytest

from danlu.meta.quantity import QuantityError, canonical, parse


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (0.5, "500m"),
        (2, "2"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1500Mi", "1500Mi"),
        ("100Mi", "100Mi"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("1.2e3", "1200"),
        ("12e6", "12e6"),
        ("100n", "100n"),
        ("0.1n", "1n"),
        ("1.234", "1.234"),
        ("0.100", "100m"),
        ("-1000m", "-1"),
        ("512", "512"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("100Ei", "9223372036854775807"),
        ("00", "0"),
    ],
)
def test_written_as_kubernetes_writes_it(text: str | int | float, shown: str) -> None:
    assert canonical(text) == shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "quantities must match"),
        ("abc", "quantities must match"),
        ("1 Gi", "quantities must match"),
        ("1.5.2", "quantities must match"),
        ("1GB", "quantities must match"),
        ("1ki", "suffix"),
        ("1e", "suffix"),
        ("1e999999999", "suffix"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(QuantityError, match=words):
        parse(text)


def test_arithmetic_is_exact_and_rounds_up() -> None:
    assert parse("0.1") + parse("200m") == parse("300m")
    assert parse("1Gi") > parse("1G")
    assert parse("1500m").value() == 2
    assert parse("1u").milli() == 1
    assert str(parse("1Gi") - parse("512Mi")) == "512Mi"
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("2Gi") + parse("2Gi")) == "4Gi"
