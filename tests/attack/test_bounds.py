"""What one person can make the server hold, send, wait for or think about: all of it has an end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.attack.conftest import NewPerson, Person

from danlu.embedded.apiserver import warnings

CONFIG_MAPS = "/api/v1/namespaces/a/configmaps"
JSON_PATCH = "application/json-patch+json"


def config_map(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def answered(person: Person, method: str, path: str, body: bytes, **headers: str) -> tuple[int, list[str]]:
    """(status, Warning headers)"""
    sent = {"authorization": f"Bearer {person.token}", "content-type": "application/json", **headers}
    async with person.session.request(method, person.url + path, data=body, headers=sent) as answer:
        await answer.read()
        return answer.status, answer.headers.getall("warning", [])


# -- headers


@pytest.mark.parametrize("code", [0x00, 0x01, 0x07, 0x0A, 0x0D, 0x1B, 0x7F, 0x85, 0x2028])
async def test_a_control_character_in_an_unknown_field_costs_no_answer(code: int, new_person: NewPerson) -> None:
    mallory = await new_person()
    field = f"a\\u{code:04x}b".encode()
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"' + field + b'":1}'
    status, said = await answered(mallory, "POST", CONFIG_MAPS, body)
    assert status == 201
    assert len(said) == 1
    assert said[0].startswith('299 - "unknown field ')
    assert said[0].isprintable()
    assert (await mallory.request("GET", f"{CONFIG_MAPS}/c"))[0] == 200


async def test_warnings_cannot_make_new_headers(new_person: NewPerson) -> None:
    mallory = await new_person()
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"a\\r\\nset-cookie: x=y\\r\\n\\r\\n":1}'
    sent = {"authorization": f"Bearer {mallory.token}", "content-type": "application/json"}
    async with mallory.session.post(mallory.url + CONFIG_MAPS, data=body, headers=sent) as answer:
        assert answer.status == 201
        assert "set-cookie" not in answer.headers


async def test_warnings_are_as_long_as_in_kubernetes_at_the_most(new_person: NewPerson) -> None:
    mallory = await new_person()
    unknown = {f"{'x' * 2000}{n}": 1 for n in range(90)}
    import orjson

    status, said = await answered(mallory, "POST", CONFIG_MAPS, orjson.dumps(config_map() | unknown))
    assert status == 201
    assert 4 * 1024 <= len(", ".join(said)) < 6 * 1024


def test_the_warning_header() -> None:
    assert warnings.header([]) == ""
    assert warnings.header(['say "hi"\\', "b", "b"]) == r'299 - "say \"hi\"\\", 299 - "b"'
    assert warnings.header(["a\nb\x00\u2028é丹"]) == r'299 - "a\\nb\\x00\\u2028é丹"'
