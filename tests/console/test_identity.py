"""Sign-in with an identity provider before a real kube-apiserver, which knows people by that provider's tokens."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.servers import RealControlPlane
from tests.console.browsing import Browser, until
from tests.console.provider import Provider
from tests.console.starting import danlu_console
from tests.operator.install.conftest import programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PERSON = "sso:li@example.com"
MAPS, SECRETS = "/k8s/api/v1/namespaces/default/configmaps", "/k8s/api/v1/namespaces/default/secrets"
CLIENT = "danlu console"  # with a space: it has to be written as a form's field in the header


class ApiServer(RealControlPlane):
    def launch(self) -> None:
        self.launch_api()


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    made = Provider(CLIENT, client_secret="a secret: 1+1%2")
    made.start(tmp_path_factory.mktemp("provider") / "provider.pem")
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def person(provider: Provider) -> None:
    provider.claims = {"sub": "1", "email": "li@example.com", "email_verified": True, "groups": ["students"]}
    provider.life_s, provider.refreshes, provider.renewed = 600, False, 0


@pytest.fixture(scope="module")
def real(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    plane = ApiServer(tmp_path_factory.mktemp("real"), programs("kubernetes", "etcd"))
    authority = next(tmp_path_factory.getbasetemp().glob("provider*/provider.pem"))
    plane.apiserver_flags = (
        *("--oidc-issuer-url", provider.issuer, "--oidc-client-id", CLIENT, "--oidc-ca-file", authority),
        *("--oidc-username-claim", "email", "--oidc-username-prefix", "sso:"),
        *("--oidc-groups-claim", "groups", "--oidc-groups-prefix", "sso:"),
    )
    try:
        plane.start()
        maps = "--resource=configmaps"
        plane.run("create", "role", "reader", "--verb=get,list,watch", maps)
        plane.run("create", "role", "writer", "--verb=create", maps)
        plane.run("create", "rolebinding", "li", "--role=reader", f"--user={PERSON}")
        plane.run("create", "rolebinding", "teachers", "--role=writer", "--group=sso:teachers")
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="module")
def console(real: RealControlPlane, provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Told of the provider as in a cluster, by the files of a Secret; its own kubeconfig is an administrator's."""
    folder = tmp_path_factory.mktemp("oidc")
    authority = next(tmp_path_factory.getbasetemp().glob("provider*/provider.pem"))
    files = {"issuer": provider.issuer, "client-id": CLIENT, "client-secret": f"{provider.client_secret}\n"}
    for name, text in {**files, "ca.crt": authority.read_text()}.items():
        (folder / name).write_text(text)
    with danlu_console(real.kubeconfig, "--oidc-folder", str(folder), environment=os.environ, folder=folder) as address:
        yield address


async def signed_in(browser: Browser) -> list[str]:
    """The groups that the API server sees."""

    async def try_it() -> bool:
        # The API server asks for the provider's keys by itself, ten seconds apart, and refuses everyone until then.
        return await browser.sign_in_with_provider("/build/jobs") == (200, {"next": "/build/jobs"})

    await until("the API server to know the provider", try_it)
    told = await browser.session()
    assert told["user"]["name"] == PERSON
    return [group for group in told["user"]["groups"] if group.startswith("sso:")]


async def test_requests_carry_the_persons_own_identity(console: str) -> None:
    async with Browser(console) as browser:
        assert await signed_in(browser) == ["sso:students"]
        assert (await browser.ask("GET", MAPS))[0] == 200
        for method, path, what in (("GET", SECRETS, "list resource"), ("POST", MAPS, "create resource")):
            status, said = await browser.ask(method, path, {"metadata": {"name": "a"}} if method == "POST" else None)
            assert (status, said["reason"]) == (403, "Forbidden")
            assert f'User "{PERSON}" cannot {what}' in said["message"]
        open_it = {"namespace": "default", "kind": "service", "name": "kubernetes:443"}
        status, said = await browser.ask("POST", "/console/apps/open", open_it)
        assert (status, said["message"]) == (
            403, "opening service kubernetes needs the right to get services/proxy in default",
        )  # fmt: skip


async def test_a_sign_in_outlives_its_tokens(console: str, provider: Provider) -> None:
    provider.refreshes, provider.life_s = True, 4
    async with Browser(console) as browser:
        await signed_in(browser)
        assert provider.renewed == 0
        version = (await browser.json("GET", MAPS))["metadata"]["resourceVersion"]
        watch = {"path": f"{MAPS}?watch=1&resourceVersion={version}"}
        async with browser.socket("/console/watch") as channel:
            await channel.send_str(json.dumps({"open": 1, **watch}))
            await asyncio.sleep(4)  # the token's whole life
            # What the API server says of the person from now on comes from the next token.
            provider.claims["groups"], provider.life_s = ["teachers"], 600
            answers = await asyncio.gather(*(browser.ask("GET", MAPS) for _ in range(8)))
            assert {status for status, _ in answers} == {200}
            assert provider.renewed == 1, "a refresh token is good once: all of a page's requests share what it brought"
            assert "sso:teachers" in (await browser.session())["user"]["groups"]
            await channel.send_str(json.dumps({"open": 2, **watch}))  # by the cookie of before
            assert (await browser.ask("POST", MAPS, {"metadata": {"name": "allowed-now"}}))[0] == 201
            seen: set[str] = set()
            while {"1", "2"} - seen:
                text = await channel.receive_str(timeout=20)
                assert "!" not in text.partition("\n")[0], text
                seen.add(text.partition("\n")[0])
        assert provider.renewed == 1


async def test_a_sign_in_that_is_not_renewed_ends_and_leads_back(console: str, provider: Provider) -> None:
    provider.refreshes, provider.life_s = True, 3
    async with Browser(console) as browser:
        await signed_in(browser)
        provider.revoke()
        await asyncio.sleep(3)
        status, said = await browser.ask("GET", MAPS)
        assert (status, said["signIn"]) == (401, ["token", "oidc"])
        assert "the sign-in has ended: the identity provider refused: this refresh token is not good" in said["message"]
        # Without a refresh token it ends with the token.
        provider.refreshes = False
        assert (await browser.sign_in_with_provider("/build/pods?a=b"))[1] == {"next": "/build/pods?a=b"}
        assert (await browser.ask("GET", "/console/session"))[0] == 200
        await asyncio.sleep(3)
        assert (await browser.ask("GET", "/console/session"))[0] == 401
        assert provider.renewed == 0


async def test_a_provider_that_is_given_later_is_taken_up(
    real: RealControlPlane, provider: Provider, tmp_path: Path
) -> None:
    """A Secret reaches the pod's folder by itself."""
    with danlu_console(real.kubeconfig, "--oidc-folder", str(tmp_path), environment=os.environ, folder=tmp_path) as at:
        async with Browser(at) as browser:
            assert (await browser.ask("GET", "/console/session"))[1]["signIn"] == ["token"]
            (tmp_path / "issuer").write_text(provider.issuer)
            (tmp_path / "client-id").write_text(CLIENT)

            async def is_offered() -> bool:
                return "oidc" in (await browser.ask("GET", "/console/session"))[1]["signIn"]

            await until("it to be offered", is_offered)
