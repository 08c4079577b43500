"""Every list of the console in both languages: it opens, says nothing wrong, axe finds nothing serious. And the paths
that nobody hopes for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from tests.browser.person import AXE, Person
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LISTS = ("volumes", "notebooks", "jobs", "tensorboards", "pods", "secrets", "configmaps", "nodes", "queues")
WRONG = re.compile(r"\[object Object\]|undefined|NaN|TypeError|at .*\.js:\d+")


@pytest.fixture(scope="module", autouse=True)
def axe() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: scripts/build")


def test_every_list(person: Person) -> None:
    person.page.goto(f"{person.console}/build/default/overview")
    for key in LISTS:
        person.menu(key)
        expect(person.page.get_by_role("table").or_(person.page.locator(".ant-empty")).first).to_be_visible()
        expect(person.page.locator("main")).not_to_contain_text(WRONG)
        person.accessible(key)
        assert hidden_width(person) == 0, f"{key} is wider than a screen of 1280"
        person.page.set_viewport_size({"width": 400, "height": 800})
        assert hidden_width(person) == 0, f"{key} is wider than a screen of 400"
        person.accessible(f"{key} at 400")
        person.page.set_viewport_size({"width": 1280, "height": 800})


def hidden_width(person: Person) -> int:
    """Pixels of the page or of a table that only scrolling sideways would show."""
    return int(
        person.page.evaluate(
            """() => Math.max(...[document.documentElement, ...document.querySelectorAll('.ant-table-content')]
                .map((each) => each.scrollWidth - each.clientWidth))"""
        )
    )


def test_values_of_a_secret_are_shown_only_when_asked_for(person: Person, danlu: Danlu) -> None:
    name, value = f"hidden-{person.language}", "bm9ib2R5cy1idXNpbmVzcw=="
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": value}}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(secret))  # kubectl keeps a copy of the value in an annotation
    person.page.goto(f"{person.console}/build/default/secrets/{name}?tab=yaml")
    editor = person.page.locator(".cm-content")
    expect(editor).to_contain_text("••••••••")
    expect(editor).not_to_contain_text(value)
    person.accessible("a secret's YAML")
    person.page.get_by_role("button", name=re.compile("显示值|Show values")).click()
    expect(editor).to_contain_text(value)


def test_landing_and_sign_in_are_accessible(new_person: Callable[[str], Person], language: str) -> None:
    person = new_person(language)
    person.page.goto(person.console)
    expect(person.page.get_by_label(person.word("token"), exact=True)).to_be_visible()
    person.accessible("sign-in")
    person.picture("sign-in")
    person.fill("token", "wrong")
    person.click("sign in")
    expect(person.page.get_by_role("alert").or_(person.page.locator(".ant-form-item-explain")).first).to_be_visible()
    person.sign_in()
    person.accessible("landing")
    person.page.set_viewport_size({"width": 400, "height": 800})
    wide = person.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 400, f"{wide} px wide on a screen of 400"


def test_a_lost_sign_in_leads_back_to_the_same_page(person: Person, danlu: Danlu) -> None:
    page = f"{person.console}/build/default/configmaps"
    person.page.goto(page)
    expect(person.row("kube-root-ca.crt")).to_be_visible()
    person.context.clear_cookies()
    person.page.reload()
    person.fill("token", person.link.rpartition("=")[2])
    person.click("sign in")
    expect(person.row("kube-root-ca.crt")).to_be_visible()
    assert person.page.url == page


def test_a_server_that_restarts_is_caught_up_with(person: Person, danlu: Danlu) -> None:
    """A quiet word while it is away; afterwards the list is right without a reload."""
    person.page.goto(f"{person.console}/build/default/configmaps")
    expect(person.row("kube-root-ca.crt")).to_be_visible()
    person.page.evaluate("() => { window.stillHere = true }")
    danlu.down()
    expect(person.page.get_by_text(re.compile("连接已断开|connection to the server is lost"))).to_be_visible()
    danlu.up()
    name = f"after-{person.language}"
    danlu.kubectl("create", "configmap", name)
    expect(person.row(name)).to_be_visible(timeout=120_000)
    assert person.page.evaluate("() => window.stillHere")


def test_what_the_server_refuses_is_said_beside_its_field(person: Person) -> None:
    person.page.goto(f"{person.console}/build/default/volumes/new")
    person.fill("name", "Wrong Name")
    person.page.get_by_label(re.compile("^(大小|存储|Size)$")).fill("much")
    person.click("create")
    expect(person.page.locator(".ant-form-item-has-error").first).to_be_visible()
    expect(person.page.locator("main")).not_to_contain_text(WRONG)


def test_a_mistake_in_yaml_points_at_its_line(person: Person) -> None:
    person.page.goto(f"{person.console}/build/default/overview")
    person.page.get_by_role("button", name=re.compile("从 YAML 创建|Create from YAML")).first.click()
    person.paste("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\ndata: {}\n")
    expect(person.page.get_by_role("dialog")).to_contain_text(re.compile(r"第 [34] 行|Line [34]"))


def test_a_change_is_on_screen_without_asking(person: Person, danlu: Danlu) -> None:
    person.page.goto(f"{person.console}/build/default/configmaps")
    expect(person.row("kube-root-ca.crt")).to_be_visible()
    name = f"live-{person.language}"
    danlu.kubectl("create", "configmap", name)
    expect(person.row(name)).to_be_visible(timeout=10_000)
    danlu.kubectl("delete", "configmap", name)
    expect(person.row(name)).to_be_hidden(timeout=10_000)
