"""A real Chromium before a real `danlu up`; in scripts/test-cluster, before the console that runs in its cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.browser.chromium import launched
from tests.browser.person import LOCALES, Person
from tests.cluster.target import OnCluster
from tests.console.browsing import need_pages
from tests.running import Danlu


@pytest.fixture(scope="session")
def pages() -> None:
    need_pages()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Not for the session: while Playwright lives, its event loop is in the way of every asynchronous test."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu], pages: None) -> Danlu:
    """Seed 004's workers ask for two cores each: a node may promise more than the machine has."""
    return make_danlu("--nodes", "big:cpu=16,memory=24Gi")


@pytest.fixture(scope="module")
def link(danlu: Danlu) -> Iterator[str]:
    """The console and a token for it. On a cluster people type theirs, and are no administrators of the cluster."""
    if isinstance(danlu, OnCluster):
        with danlu.console() as address:
            yield f"{address}/?token={danlu.token('admin')}"
    else:
        yield str(json.loads(danlu.command("status", "--json").stdout)["console"])


@pytest.fixture
def new_person(
    chromium: Any, danlu: Danlu, link: str, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Person]]:
    keep_pictures = bool(request.config.getoption("--rewrite"))
    types_token = isinstance(danlu, OnCluster)
    made: list[Person] = []

    def make(language: str) -> Person:
        context = chromium.new_context(
            locale=LOCALES[language],
            viewport={"width": 1280, "height": 800},
            permissions=["clipboard-read", "clipboard-write"],
            # On a busy machine a panel may still grow between the pressing of a button and its release: no click.
            reduced_motion="reduce",
        )
        made.append(Person(context, language, link, keep_pictures, types_token))
        return made[-1]

    yield make
    for person in made:
        person.context.close()
        assert not person.problems, person.problems


@pytest.fixture
def person(new_person: Callable[[str], Person], language: str) -> Person:
    found = new_person(language)
    found.sign_in()
    return found


@pytest.fixture(params=["zh", "en"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)
