"""Long texts where short ones are meant: read in one go, and not remembered."""

from __future__ import annotations

import tracemalloc

import pytest
from tests.attack.conftest import NewPerson

from danlu.meta import names, quantity
from danlu.meta.cel.values import CelError, parse_duration
from danlu.meta.labels import SelectorError, parse_selector

LONG = 200_000


@pytest.mark.parametrize(
    "text", ["1" * LONG + "!", "0" * LONG + "!", "0" * LONG + "1" * LONG + "e" * LONG + "!", "1." * LONG]
)
def test_quantities_are_read_in_one_go(text: str) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(text)


@pytest.mark.parametrize("text", ["1" * LONG, "1" * LONG + "!", "1h" * LONG + "!", "." * LONG])
def test_durations_are_read_in_one_go(text: str) -> None:
    with pytest.raises(CelError):
        parse_duration(text)


async def test_a_pod_with_a_long_quantity_is_refused_at_once(new_person: NewPerson) -> None:
    mallory = await new_person()
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1" * LONG + "!"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    status, said = await mallory.request("POST", "/api/v1/namespaces/a/pods", pod)
    assert (status, "quantities must match the regular expression" in said["message"]) == (400, True)


def test_long_texts_are_not_remembered() -> None:
    """A thousand labels of a hundred kilobytes, each another one."""
    tracemalloc.start()
    try:
        for number in range(1000):
            text = f"{number}{'x' * 100_000}"
            assert names.qualified_name(text)
            assert names.label_value(text)
            assert names.dns_subdomain(text)
            with pytest.raises(quantity.QuantityError):
                quantity.parse(text)
            with pytest.raises(SelectorError):
                parse_selector(f"a={text}")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 10_000_000
