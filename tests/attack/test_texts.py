"""Long texts where short ones are meant: read in one go, and not remembered."""

from __future__ import annotations

import tracemalloc

import orjson
import pytest
from tests.attack.conftest import NewPerson
from tests.attack.test_bodies import define

from danlu.client.client import Client
from danlu.meta import names, quantity
from danlu.meta.cel.values import CelError, parse_duration
from danlu.meta.kind import Kind
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


async def test_what_differs_is_not_looked_for_without_end(new_person: NewPerson) -> None:
    """A pod of two thousand containers, and an update that may not be: what differs is told, and found at once."""
    mallory = await new_person()
    pods = "/api/v1/namespaces/a/pods"
    many = [{"name": f"c{number}", "image": "x"} for number in range(2000)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": many}}
    assert (await mallory.request("POST", pods, pod))[0] == 201
    status, made = await mallory.request("GET", f"{pods}/p")
    for container in made["spec"]["containers"]:
        container["command"] = ["x"]
    status, said = await mallory.request("PUT", f"{pods}/p", made)
    assert status == 422
    assert "pod updates may not change fields other than" in said["message"]
    assert '+    "x"' in said["message"]


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


async def test_errors_are_told_as_far_as_there_is_room(client: Client, new_person: NewPerson) -> None:
    """All that is allowed is listed with each of fifty thousand items that are not; a key above them is long, too."""
    mallory = await new_person()
    item = {"type": "string", "enum": [f"allowed-{number}" for number in range(5000)]}
    spec = {"type": "object", "additionalProperties": {"type": "array", "items": item}}
    schema = {"type": "object", "properties": {"spec": spec}}
    assert (await define(client, Kind("told.example", "v1", "Told", "tolds"), schema))[0] == 201
    for key in ("a", "k" * 500_000):
        obj = {
            "apiVersion": "told.example/v1",
            "kind": "Told",
            "metadata": {"name": "x"},
            "spec": {key: ["b"] * 50_000},
        }
        status, said = await mallory.request("POST", "/apis/told.example/v1/namespaces/a/tolds", obj)
        assert status == 422
        assert said["message"].endswith(" more")
        assert len(orjson.dumps(said)) < 4_000_000


@pytest.mark.parametrize("field", ["onExitCodes", "topologySpreadConstraints"])
async def test_what_stands_twice_is_found_without_comparing_all_with_all(field: str, new_person: NewPerson) -> None:
    mallory = await new_person()
    numbers = range(100_000 if field == "onExitCodes" else 15_000)
    spread = [{"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "x"} for n in numbers]
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    pod |= {"topologySpreadConstraints": spread} if field == "topologySpreadConstraints" else {}
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [*numbers]}}
    spec = {"template": {"spec": pod}} | ({"podFailurePolicy": {"rules": [rule]}} if field == "onExitCodes" else {})
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    status, _ = await mallory.request("POST", "/apis/batch/v1/namespaces/a/jobs", job)
    assert status == 422
