"""Quantities against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.meta import quantity
from danlu.meta.quantity import NANO, QuantityError, canonical, parse

PROPERTIES = settings(derandomize=True, deadline=None, database=None, max_examples=100)
FACTORS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50),
    "Ei": Fraction(2**60), "e3": Fraction(1000), "E-3": Fraction(1, 1000), "e0": Fraction(1),
}  # fmt: skip
numbers = st.tuples(st.sampled_from(["", "-", "+"]), st.integers(0, 10**9), st.integers(0, 10**6), st.integers(0, 6))


def text_of(number: tuple[str, int, int, int], suffix: str) -> tuple[str, Fraction]:
    sign, whole, part, digits = number
    fraction = f"{part % 10**digits:0{digits}d}" if digits else ""
    text = f"{sign}{whole}{'.' + fraction if digits else ''}{suffix}"
    exact = (Fraction(whole) + (Fraction(int(fraction), 10**digits) if digits else 0)) * FACTORS[suffix]
    return text, -exact if sign == "-" else exact


def away_from_zero(value: Fraction) -> int:
    return ceil(value) if value >= 0 else floor(value)


@PROPERTIES
@given(numbers, st.sampled_from(sorted(FACTORS)))
def test_a_quantity_is_exact_to_a_nano_and_rounded_away_from_zero(
    number: tuple[str, int, int, int], suffix: str
) -> None:
    text, exact = text_of(number, suffix)
    largest = Fraction(2**63 - 1)
    if suffix.endswith("i"):  # as Kubernetes: binary ones end with 64 bits
        exact = max(min(exact, largest), -largest)
    found = parse(text)
    assert found.nano == away_from_zero(exact * NANO)
    assert found.value() == max(-(2**63 - 1), min(2**63 - 1, away_from_zero(Fraction(found.nano, NANO))))


@PROPERTIES
@given(numbers, st.sampled_from(sorted(FACTORS)))
def test_what_is_written_back_means_the_same_and_stays_as_it_is(number: tuple[str, int, int, int], suffix: str) -> None:
    text, _ = text_of(number, suffix)
    written = canonical(text)
    assert parse(written) == parse(text)
    assert canonical(written) == written


@PROPERTIES
@given(numbers, numbers, numbers, st.sampled_from(sorted(FACTORS)), st.sampled_from(sorted(FACTORS)))
def test_quantities_are_numbers(one: object, two: object, three: object, suffix: str, other: str) -> None:
    a, b, c = (parse(text_of(number, unit)[0]) for number, unit in ((one, suffix), (two, other), (three, suffix)))  # type: ignore[arg-type]
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a - a == quantity.ZERO
    assert (a < b) == (a.nano < b.nano) == (b > a)
    assert quantity.ZERO - (-a) == a
    assert a * 3 == a + a + a


@PROPERTIES
@given(st.text(alphabet="0123456789.eEinumkKMGTP+-_ ٣", max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        found = parse(text)
    except QuantityError:
        return
    assert text.isascii()
    assert "_" not in text
    assert parse(str(found)) == found
