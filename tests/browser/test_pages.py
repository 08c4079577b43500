"""Every page of the console: it opens, says nothing wrong, axe finds nothing serious; a user's path without a mouse;
and the paths that nobody hopes for. What each page says in which state, in both languages, is tested without a browser:
web/src/**/*.test.tsx."""

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
POD = "by-keyboard"
FORMS = ("volumes/new", "notebooks/new", "jobs/new/pytorchtrainingjobs", "secrets/new", "projects/new")
OBJECTS = (f"pods/{POD}", f"pods/{POD}?tab=yaml", "configmaps/kube-root-ca.crt", "overview?tab=quota", "no-such-page")
# Of a server, a cookie or kubectl there is nothing to say twice.
ONE_LANGUAGE = pytest.mark.parametrize("language", ["zh"])
WRONG = re.compile(r"\[object Object\]|undefined|NaN|TypeError|at .*\.js:\d+")


@pytest.fixture(scope="module", autouse=True)
def axe() -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: scripts/build")


@pytest.fixture
def pod(danlu: Danlu) -> str:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": {"containers": [container]}}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    danlu.kubectl("wait", "pod", POD, "--for=condition=Ready", "--timeout=60s")
    return POD


@pytest.fixture
def theme(person: Person) -> None:
    """Dark in one language and light in the other: contrast is the same in both, and axe takes its time."""
    person.page.emulate_media(color_scheme="dark" if person.language == "zh" else "light")


def test_every_list(person: Person, theme: None) -> None:
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


@ONE_LANGUAGE
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


@ONE_LANGUAGE
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


@ONE_LANGUAGE
def test_a_server_that_restarts_is_caught_up_with(person: Person, danlu: Danlu) -> None:
    """A quiet word while it is away; afterwards the list is right without a reload."""
    person.page.goto(f"{person.console}/build/default/configmaps")
    expect(person.row("kube-root-ca.crt")).to_be_visible()
    danlu.kubectl("create", "configmap", "before")
    expect(person.row("before")).to_be_visible(timeout=10_000)
    person.page.evaluate("() => { window.stillHere = true }")
    danlu.down()
    expect(person.page.get_by_text(re.compile("连接已断开|connection to the server is lost"))).to_be_visible()
    danlu.up()
    name = f"after-{person.language}"
    danlu.kubectl("create", "configmap", name)
    expect(person.row(name)).to_be_visible(timeout=120_000)
    assert person.page.evaluate("() => window.stillHere")


def test_a_log_is_read_on_from_one_start_to_the_next(new_person: Callable[[str], Person], danlu: Danlu) -> None:
    """Without a node a log is empty and ends at once; a failed container has one log for each of its starts."""
    person = new_person("zh")
    person.sign_in()
    label, name = "danlu.test/there", "thrice"
    program = """echo >> /kept/starts; case $(wc -l < /kept/starts) in
      1) echo first words; sleep 5; exit 3;;  # the next start comes at once
      2) exit 3;;  # and then none for ten seconds
      *) echo last words; exec sleep 1000;;
    esac"""
    mounted = [{"name": "kept", "mountPath": "/kept"}]
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", program], "volumeMounts": mounted}
    spec = {"nodeSelector": {label: "yes"}, "containers": [container], "volumes": [{"name": "kept", "emptyDir": {}}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    danlu.kubectl("wait", "pod", name, "--for=condition=PodScheduled=false", "--timeout=60s")
    person.page.goto(f"{person.console}/build/default/pods/{name}?tab=logs")
    told = person.page.locator(".log")
    expect(told).to_contain_text(re.compile("尚未启动（.*节点"))
    danlu.kubectl("label", "nodes", "--all", f"{label}=yes")
    expect(told).to_contain_text("first words")
    expect(told).to_contain_text("将再次启动")
    expect(told).to_contain_text("last words")
    expect(told).to_contain_text("实时")
    assert told.inner_text().count("first words") == 1
    danlu.kubectl("delete", "pod", name, "--now")


def test_a_new_user_without_a_mouse(new_person: Callable[[str], Person], pod: str) -> None:
    person = new_person("zh")
    page, press = person.page, person.page.keyboard.press
    page.goto(person.console)
    expect(page.get_by_label("令牌", exact=True)).to_be_visible()
    person.reach("令牌")
    page.keyboard.type(person.link.rpartition("=")[2])
    press("Enter")
    # Language and theme: a menu takes focus and gives it back to its button.
    expect(page.get_by_role("heading", level=1)).to_have_text("控制台")
    choose(person, re.compile("^语言"), "English")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    choose(person, re.compile("^Language"), "中文")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    choose(person, "主题", "深色")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    person.reach(re.compile("^模型构建"))
    press("Enter")
    # From the menu to a form, which has focus in its first field; Ctrl Enter creates.
    expect(page).to_have_title(re.compile("^总览"))
    person.reach("持久卷")
    press("Enter")
    expect(page).to_have_title(re.compile("^持久卷"))
    person.reach("创建 PVC")
    press("Enter")
    expect(page.get_by_label("名称", exact=True)).to_be_focused()
    page.keyboard.type(POD)
    person.reach("大小")
    press("Control+A")
    page.keyboard.type("1Gi")
    press("Control+Enter")
    expect(person.row(POD)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text(POD)  # read aloud
    # A panel and a dialog: focus moves in, stays in, and goes back.
    person.reach("显示列")
    press("Enter")
    expect(page.get_by_role("checkbox", name="大小")).to_be_visible()
    person.reach("大小")
    press("Escape")
    person.arrives("显示列")
    choose(person, f"更多: {POD}", "YAML", back=False)
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".cm-content")).to_be_visible()
    person.reach("编辑")
    press("Enter")
    editor = dialog.locator(".cm-content")
    expect(editor).to_have_attribute("contenteditable", "true")
    expect(dialog).to_contain_text("先按 Esc，再按 Tab")
    editor.focus()
    press("Tab")
    expect(editor).to_be_focused()  # Tab indents
    press("Escape")
    press("Tab")
    expect(editor).not_to_be_focused()
    person.reach("关闭")
    press("Escape")
    expect(dialog).to_be_hidden()
    person.arrives(f"更多: {POD}")
    choose(person, f"更多: {POD}", "删除", back=False)
    person.arrives("取消")  # what destroys is not what Enter does
    person.reach("删除")
    press("Enter")
    expect(person.row(POD)).to_be_hidden()
    # Anything by its name, and a terminal that lets go of the keyboard.
    person.reach(re.compile("^搜索 Ctrl K"))
    press("Control+K")
    person.arrives("搜索")
    page.keyboard.type(POD)
    expect(page.get_by_role("option")).to_have_count(1)
    press("Enter")
    expect(page).to_have_title(re.compile(f"^{POD} · Pod"))
    expect(page.locator("#content")).to_be_focused()
    # Before its tabs are there, the next of that name is the menu's.
    expect(page.get_by_role("tab", name="Pod", exact=True)).to_be_visible()
    person.reach("Pod")
    person.reach("终端", key="ArrowRight")
    press("Enter")
    terminal = page.locator(".terminal textarea")
    expect(page.locator(".xterm-rows")).to_contain_text(re.compile("[#$]"))
    expect(terminal).to_be_focused()
    press("Tab")
    expect(terminal).to_be_focused()  # Tab completes
    press("Escape")
    press("Tab")
    expect(terminal).not_to_be_focused()


def choose(person: Person, button: str | re.Pattern[str], entry: str, *, back: bool = True) -> None:
    person.reach(button)
    person.page.keyboard.press("Enter")
    expect(person.page.get_by_role("menuitem", name=entry, exact=True)).to_be_visible()
    person.reach(entry, key="ArrowDown", most=12)
    person.page.keyboard.press("Enter")
    if back:
        expect(person.page.locator("button:focus")).to_have_count(1)


def test_forms_objects_and_dialogs(person: Person, theme: None, pod: str) -> None:
    page = person.page
    for path in (*FORMS, *OBJECTS):
        page.goto(f"{person.console}/build/default/{path}")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        person.accessible(path)
    more = page.get_by_role("button", name=re.compile(f"(更多|More): {POD}"))
    for entry in ("YAML", {"zh": "删除", "en": "Delete"}[person.language]):
        page.goto(f"{person.console}/build/default/pods")
        more.click()
        page.get_by_role("menuitem", name=entry, exact=True).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        person.accessible(entry)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    for button in ("显示列|Columns", "排序器|Sort:", "^(切换项目|Switch project)", "^(搜索|Search) Ctrl"):
        page.get_by_role("button", name=re.compile(button)).click()
        person.accessible(button)
        page.keyboard.press("Escape")
