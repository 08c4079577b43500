"""Resource quantities (`500m`, `2Gi`, `1e3`), exact.

Kubernetes keeps nothing finer than a nano and rounds finer input away from zero; so one integer of nanos holds every
quantity, and adding and comparing are integer operations.
"""

from __future__ import annotations

import re
from functools import total_ordering

from danlu.meta.textcache import cached

NANO = 10**9
_LARGEST_INT64 = 2**63 - 1
_LARGEST_BINARY = _LARGEST_INT64 * NANO
_LARGEST_EXPONENT = 300  # beyond this a number is an attack on memory, not a resource
_LARGEST = 10**_LARGEST_EXPONENT * NANO  # so that every sum of some is still a float
_MOST_DIGITS = 400

# Nothing is given back (`*+`): three runs of digits that may share one run would be tried in all its divisions.
_SHAPE = re.compile(r"([+-]?)0*+([0-9]*+)(\.([0-9]*+))?([eEinumkKMGTP]*+[-+]?[0-9]*+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL.items()}
_BINARY_NAMES = {power // 10: name for name, power in _BINARY.items()}

FORMAT_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NUMBER_TEXT = "unable to parse numeric part of quantity"
SUFFIX_TEXT = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is Kubernetes' own."""


@total_ordering
class Quantity:
    """Immutable. `form` is the family its suffix came from: DecimalSI, BinarySI or DecimalExponent."""

    __slots__ = ("_text", "form", "nano")

    def __init__(self, nano: int, form: str = "DecimalSI", text: str = "") -> None:
        self.nano = nano
        self.form = form
        self._text = text

    def value(self) -> int:
        """In whole units, rounded away from zero; held within 64 bits, which is all that anybody can write down."""
        return _held(_divide_up(self.nano, NANO))

    def milli(self) -> int:
        return _held(_divide_up(self.nano, 10**6))

    def __float__(self) -> float:
        return self.nano / NANO

    def __bool__(self) -> bool:
        return self.nano != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.form if self.nano else other.form)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.form if self.nano else other.form)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.form)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nano * factor, self.form)

    def __str__(self) -> str:
        if not self._text:
            self._text = _canonical(self.nano, self.form)
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


ZERO = Quantity(0, "DecimalSI", "0")


def parse(text: str | int | float) -> Quantity:
    """Raises QuantityError. JSON numbers are accepted, as Kubernetes does."""
    return _parse(text if isinstance(text, str) else str(text))


def of(value: int, form: str = "DecimalSI") -> Quantity:
    return Quantity(value * NANO, form)


def of_milli(value: int) -> Quantity:
    return Quantity(value * 10**6)


def canonical(text: str | int | float) -> str:
    """As Kubernetes writes it back: `1000m` → `1`, `1024Mi` → `1Gi`."""
    return str(parse(text))


@cached(4096)
def _parse(text: str) -> Quantity:
    if not text:
        raise QuantityError(FORMAT_TEXT)
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise QuantityError(FORMAT_TEXT)
    sign, whole, _, fraction, suffix = match.groups()
    whole, fraction = whole or "0", fraction or ""
    form, base, exponent = _suffix(suffix)
    digits = whole + fraction
    if len(digits) > _MOST_DIGITS:
        raise QuantityError(NUMBER_TEXT)
    number = int(digits)
    if base == 2:
        nano = _divide_up((number << exponent) * NANO, 10 ** len(fraction))
        if nano > _LARGEST_BINARY:
            nano = _LARGEST_BINARY
        if 0 < nano < NANO:
            form = "DecimalSI"
    else:
        power = exponent - len(fraction) + 9
        nano = number * 10**power if power >= 0 else _divide_up(number, 10**-power)
        if nano > _LARGEST:
            raise QuantityError(NUMBER_TEXT)
    return Quantity(-nano if sign == "-" else nano, form, _kept(text, digits, len(fraction), number, base, exponent))


def _suffix(suffix: str) -> tuple[str, int, int]:
    if suffix in _DECIMAL:
        return "DecimalSI", 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return "BinarySI", 2, _BINARY[suffix]
    if len(suffix) > 1 and suffix[0] in "eE":
        try:
            exponent = int(suffix[1:])
        except ValueError:
            raise QuantityError(SUFFIX_TEXT) from None
        if abs(exponent) <= _LARGEST_EXPONENT:
            return "DecimalExponent", 10, exponent
    raise QuantityError(SUFFIX_TEXT)


def _kept(text: str, digits: str, decimals: int, number: int, base: int, exponent: int) -> str:
    """Kubernetes keeps the user's spelling where a quick look says that it is canonical; "" otherwise."""
    if text == "0":
        return text
    if base == 2:
        quick = not decimals and 15 - len(digits) - int(exponent * 3 / 10) - 1 >= 0
        return text if quick and number & 7 and number << exponent < 2**63 else ""
    scale = exponent - decimals
    quick = len(digits) <= 18 and scale >= -9
    return text if quick and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0" else ""


def _canonical(nano: int, form: str) -> str:
    if nano == 0:
        return "0"
    if form == "BinarySI" and (abs(nano) < 1024 * NANO or nano % NANO):
        form = "DecimalSI"
    if form == "BinarySI":
        number, power = nano // NANO, 0
        while number % 1024 == 0 and power < 6:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY_NAMES.get(power, '')}"
    number, power = nano, -9
    largest = 18 if form == "DecimalSI" else _LARGEST_EXPONENT
    while number % 1000 == 0 and power < largest:
        number, power = number // 1000, power + 3
    if form == "DecimalSI":
        return f"{number}{_DECIMAL_NAMES[power]}"
    return f"{number}e{power}" if power else str(number)


def _held(number: int) -> int:
    return (
        number if -_LARGEST_INT64 <= number <= _LARGEST_INT64 else (_LARGEST_INT64 if number > 0 else -_LARGEST_INT64)
    )


def _divide_up(number: int, by: int) -> int:
    return -(-number // by) if number >= 0 else number // by
