"""Rights in one namespace are rights in that one."""

from __future__ import annotations

from tests.attack.conftest import NewPerson


async def test_rights_in_one_namespace_end_there(new_person: NewPerson) -> None:
    mallory = await new_person()
    assert (await mallory.request("GET", "/api/v1/namespaces/a/secrets"))[0] == 200
    for path in ("/api/v1/namespaces/default/secrets", "/api/v1/secrets", "/api/v1/namespaces", "/api/v1/nodes"):
        assert (await mallory.request("GET", path))[0] == 403, path
