"""Somebody at a real Chromium who reads the console in one language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Locator, Page, expect

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
AXE = Path(__file__).parent.parent.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"
LOCALES = {"zh": "zh-CN", "en": "en-US"}
WAIT_S = 60
# Requests that were refused, and a server that is away or just ending.
EXPECTED = re.compile(r"Failed to load resource|net::ERR_(CONNECTION|SOCKET)_|Connection closed before receiving")
# What has focus: its name, and whether a line around it or around its frame tells so.
FOCUSED = """() => {
  const at = document.activeElement
  const own = at.getAttribute('aria-label') || at.labels?.[0]?.innerText || at.innerText || at.placeholder || ''
  const lined = (each) => {
    const style = getComputedStyle(each)
    return (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none'
  }
  const frames = [at, at.parentElement, at.parentElement?.parentElement, at.parentElement?.parentElement?.parentElement]
  const page = at === document.body
  return { name: page ? '' : own.trim(), seen: !page && frames.some((each) => each && lined(each)) }
}"""
# What stands on the console's buttons and in its menus; the Chinese words are the documents'.
WORDS: dict[str, dict[str, str]] = {
    "build": {"zh": "模型构建", "en": "Model building"},
    "overview": {"zh": "总览", "en": "Overview"},
    "events": {"zh": "事件", "en": "Events"},
    "quota": {"zh": "配额", "en": "Quota"},
    "volumes": {"zh": "持久卷", "en": "Volumes"},
    "create volume": {"zh": "创建 PVC", "en": "Create PVC"},
    "notebooks": {"zh": "Notebook", "en": "Notebooks"},
    "create notebook": {"zh": "创建 Notebook", "en": "Create Notebook"},
    "jobs": {"zh": "Job", "en": "Jobs"},
    "create job": {"zh": "创建 Job", "en": "Create Job"},
    "tensorboards": {"zh": "TensorBoard", "en": "TensorBoards"},
    "pods": {"zh": "Pod", "en": "Pods"},
    "secrets": {"zh": "Secret", "en": "Secrets"},
    "configmaps": {"zh": "ConfigMap", "en": "ConfigMaps"},
    "nodes": {"zh": "节点", "en": "Nodes"},
    "queues": {"zh": "队列", "en": "Queues"},
    "name": {"zh": "名称", "en": "Name"},
    "image": {"zh": "镜像", "en": "Image"},
    "volume": {"zh": "存储卷", "en": "Volume"},
    "template": {"zh": "模板", "en": "Template"},
    "create": {"zh": "创建", "en": "Create"},
    "open": {"zh": "打开", "en": "Open"},
    "preview": {"zh": "预览 YAML", "en": "Preview YAML"},
    "replicas": {"zh": "副本", "en": "Replicas"},
    "logs": {"zh": "日志", "en": "Logs"},
    "refresh": {"zh": "刷新", "en": "Refresh"},
    "language": {"zh": "语言", "en": "Language"},
    "sign in": {"zh": "登录", "en": "Sign in"},
    "token": {"zh": "令牌", "en": "Token"},
}


class Person:
    def __init__(
        self, context: BrowserContext, language: str, link: str, keep_pictures: bool, types_token: bool = False
    ) -> None:
        self.context = context
        self.language = language
        self.link = link
        self.console = link.partition("/?")[0]
        self.problems: list[str] = []
        self._keep_pictures = keep_pictures
        self._types_token = types_token
        context.set_default_timeout(WAIT_S * 1000)
        expect.set_options(timeout=WAIT_S * 1000)
        self.page = self.watch(context.new_page())

    def word(self, key: str) -> str:
        return WORDS[key][self.language]

    def watch(self, page: Page) -> Page:
        """What goes wrong inside a page of the console, which a person would only see in its developer tools."""
        page.on("pageerror", lambda error: self._heard(page, "error", str(error)))
        page.on("console", lambda said: self._heard(page, said.type, said.text))
        return page

    def _heard(self, page: Page, kind: str, text: str) -> None:
        # Some of it is part of what is tested; the browser reports each.
        if kind == "error" and page.url.startswith(self.console) and not EXPECTED.search(text):
            self.problems.append(f"{page.url}: {text}")

    def sign_in(self) -> None:
        if self._types_token:
            self.page.goto(self.console)
            self.fill("token", self.link.rpartition("=")[2])
            self.click("sign in")
        else:
            self.page.goto(self.link)
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        expect(self.page.get_by_label(self.word("token"), exact=True)).to_be_hidden()
        assert "token" not in self.page.url

    # -- moving about

    def menu(self, key: str) -> None:
        self.page.get_by_role("menuitem", name=self.word(key), exact=True).click()

    def click(self, key: str, *, within: Locator | None = None) -> None:
        (within or self.page).get_by_role("button", name=self.word(key), exact=True).click()

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(self.word(label), exact=True).fill(text)

    def choose(self, label: str, option: str) -> None:
        """In a list that opens below its field."""
        # The words in an empty field lie over what is to be clicked.
        self.page.get_by_label(self.word(label), exact=True).click(force=True)
        self.page.locator(".ant-select-dropdown:visible .ant-select-item-option").filter(has_text=option).first.click()

    def row(self, name: str) -> Locator:
        return self.page.get_by_role("row").filter(has=self.page.get_by_role("link", name=name, exact=True))

    def paste(self, text: str) -> None:
        """Into the YAML editor, in place of what is there."""
        editor = self.page.get_by_role("dialog").locator(".cm-content")
        editor.click()
        self.page.keyboard.press("Control+A")
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+V")

    def new_tab(self, button: Locator) -> Page:
        with self.context.expect_page() as opened:
            button.click()
        return self.watch(opened.value)

    # -- what is kept of a page

    def picture(self, name: str) -> None:
        """Of the page as it is now; into docs/images with `pytest --rewrite`."""
        if self._keep_pictures:
            IMAGES.mkdir(exist_ok=True)
            # A dialog that is still on its way has no opacity yet, and none in the picture.
            expect(self.page.locator(".ant-zoom-appear, .ant-zoom-enter")).to_have_count(0)
            self.page.screenshot(
                path=IMAGES / f"console-{name}.{self.language}.png", animations="disabled", scale="css"
            )

    # -- without a mouse

    def reach(self, name: str | re.Pattern[str], key: str = "Tab", most: int = 80) -> None:
        """Presses a key until what has focus has that name; it must be seen that it has."""
        seen: list[str] = []
        for _ in range(most):
            if self._has_focus(name, seen):
                return
            self.page.keyboard.press(key)
            self.page.wait_for_timeout(20)  # a menu moves focus in the next frame
        raise AssertionError(f"{key} does not lead to {name}; it leads to {seen}")

    def arrives(self, name: str) -> None:
        """Focus comes there by itself: to what has opened, or back from it."""
        seen: list[str] = []
        for _ in range(WAIT_S * 20):
            if self._has_focus(name, seen):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"focus does not come to {name}; it is at {seen[-1]}")

    def _has_focus(self, name: str | re.Pattern[str], seen: list[str]) -> bool:
        """What has it instead is added to `seen`."""
        found = self.page.evaluate(FOCUSED)
        wanted = re.compile(f"^{re.escape(name)}$") if isinstance(name, str) else name
        if wanted.search(found["name"]):
            assert found["seen"], f"{found['name']} has focus, and nobody can see it"
            return True
        seen.append(found["name"])
        return False

    def accessible(self, what: str) -> None:
        """axe finds nothing serious."""
        self.page.evaluate(AXE.read_text())  # not as a script of the page, which its policy refuses
        found: dict[str, Any] = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        serious = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
        shown = [(one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]]) for one in serious]
        assert not serious, f"{what}: {json.dumps(shown, indent=1, ensure_ascii=False)}"


def has(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))
