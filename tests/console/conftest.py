"""One `danlu up` for the tests of a file: its process, its link, and as many browsers as a test opens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from tests.console.browsing import Browser
from tests.running import Danlu


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu()


@pytest.fixture(scope="module")
def link(danlu: Danlu) -> str:
    return str(json.loads(danlu.command("status", "--json").stdout)["console"])


@pytest.fixture(scope="module")
def console(link: str) -> str:
    return link.partition("/?")[0]


@pytest_asyncio.fixture
async def new_browser(console: str) -> AsyncIterator[Callable[[], Browser]]:
    made: list[Browser] = []

    def make() -> Browser:
        made.append(Browser(console))
        return made[-1]

    yield make
    for browser in made:
        await browser.__aexit__()


@pytest_asyncio.fixture
async def browser(new_browser: Callable[[], Browser], link: str) -> Browser:
    """Signed in with the link, as its owner."""
    found = new_browser()
    await found.sign_in(link)
    return found


@pytest.fixture(scope="module")
def token_for(danlu: Danlu) -> Callable[[str, str, str], str]:
    """A bearer token of a ServiceAccount with one ClusterRole in one namespace."""

    def make(name: str, namespace: str, role: str) -> str:
        danlu.kubectl("create", "namespace", namespace)
        danlu.kubectl("-n", namespace, "create", "serviceaccount", name)
        account = f"--serviceaccount={namespace}:{name}"
        danlu.kubectl("-n", namespace, "create", "rolebinding", name, f"--clusterrole={role}", account)
        return danlu.kubectl("-n", namespace, "create", "token", name).strip()

    return make
