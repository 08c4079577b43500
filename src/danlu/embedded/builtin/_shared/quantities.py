"""Quantities inside resource lists: written back canonically and rounded up to thousandths, as Kubernetes stores them.

`cpu: 0.5` is stored as `500m`, `memory: 1024Mi` as `1Gi`. What does not parse is left as it was sent: validation
answers for it.
"""

from __future__ import annotations

from typing import Any

from danlu.meta import quantity
from danlu.meta.fields import FieldError, invalid
from danlu.meta.quantity import Quantity
from danlu.meta.textcache import cached

_MILLI = 10**6  # in nanos


@cached(8192)
def parsed(text: str | int | float) -> Quantity | None:
    """The quantity, or None where the text is none."""
    try:
        return quantity.parse(text)
    except quantity.QuantityError:
        return None


@cached(8192)
def canonical(text: str | int | float) -> str | int | float:
    value = parsed(text)
    if value is None:
        return text
    if value.nano % _MILLI:
        value = Quantity(value.milli() * _MILLI, value.form)
    return str(value)


def canonicalise(resources: dict[str, Any] | None) -> None:
    """Rewrite a resource list (`{"cpu": "0.5"}`) in place."""
    if resources:
        for name, value in resources.items():
            if isinstance(value, str | int | float):
                resources[name] = canonical(value)


def canonicalise_field(holder: dict[str, Any], name: str) -> None:
    value = holder.get(name)
    if isinstance(value, str | int | float):
        holder[name] = canonical(value)


def not_a_quantity(field: str, value: object) -> FieldError:
    try:
        quantity.parse(str(value))
    except quantity.QuantityError as error:
        return invalid(field, value, str(error))
    return invalid(field, value, quantity.FORMAT_TEXT)
