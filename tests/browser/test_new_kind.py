"""A kind is one folder: a copy of the repository with two more (`new_kind`: a kiln that serves a page, and a job with a
launcher, each of an API group of its own) generates its manifests and reference pages, builds its console, serves the
kinds and shows them, and no other file is edited."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Locator, expect
from tests.browser.person import Person
from tests.running import ROOT, Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDERS = {path.name: path for path in (Path(__file__).parent / "new_kind").iterdir() if (path / "kind.py").exists()}
KINDS = "src/danlu/kinds"
GENERATED = ("deploy/", "docs/en/reference/kinds.md", "docs/zh/reference/kinds.md")
WORDS = {
    "zh": {
        "menu": "窑", "create": "创建窑", "heat": "温度", "cores": "核数", "cool": "冷却", "logs": "日志",
        "job": "启动器作业", "role": "添加角色", "command": "运行命令", "request": "CPU 请求值", "count": "副本数量",
    },
    "en": {
        "menu": "Kilns", "create": "Create kiln", "heat": "Heat", "cores": "Cores", "cool": "Cool down", "logs": "Logs",
        "job": "Launcher job", "role": "Add a role", "command": "Command", "request": "CPU request",
        "count": "Replicas",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git knows of the repository, and the new folders: built as people build it."""
    if not (ROOT / "web/node_modules").exists():
        pytest.skip("what the console is built with is not installed: scripts/build")
    tree = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    (tree / "web/node_modules").symlink_to(ROOT / "web/node_modules")
    if (ROOT / "build/node").exists():  # Node as a Python wheel, where PATH has none
        (tree / "build").mkdir()
        (tree / "build/node").symlink_to(ROOT / "build/node")
    for name, folder in FOLDERS.items():
        shutil.copytree(folder, tree / KINDS / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = digests(tree)
    for script in ("generate-deploy", "generate-docs"):
        run(tree, sys.executable, f"scripts/{script}")
    run(tree, "scripts/build")
    changed = {name for name, digest in digests(tree).items() if before.get(name) != digest}
    assert {name for name in changed if not name.startswith((*GENERATED, "src/danlu/console/static/"))} == set()
    return tree


def digests(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder, _, names in os.walk(tree)
        for path in (Path(folder) / name for name in names)
        if not {"node_modules", "__pycache__", "node"} & set(path.parts) and path.is_file()
    }


def run(tree: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=tree, env=environment(tree), capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def danlu(tree: Path, make_danlu: Callable[..., Danlu]) -> Danlu:
    return make_danlu("--nodes", "big:cpu=16,memory=24Gi", variables={"PYTHONPATH": str(tree / "src")})


@pytest.mark.parametrize(("group", "kind"), [("pottery.example.dev", "Kiln"), ("throwaway.example.org", "LauncherJob")])
def test_it_can_be_installed(tree: Path, group: str, kind: str) -> None:
    plural = f"{kind.lower()}s"
    (definition,) = yaml.safe_load_all((tree / f"deploy/crds/{group}_{plural}.yaml").read_text())
    assert definition["metadata"]["name"] == f"{plural}.{group}"
    assert f"{group}_{plural}.yaml" in (tree / "deploy/crds/Kustomization").read_text()
    roles = {
        role["metadata"]["name"]: role for role in yaml.safe_load_all((tree / "deploy/rbac/roles.yaml").read_text())
    }
    for name in ("danlu-operator", "danlu-view", "danlu-edit"):
        assert any(plural in rule["resources"] for rule in roles[name]["rules"]), name
    assert yaml.safe_load((tree / "deploy/chart/values.yaml").read_text())["kinds"][kind] is True
    assert kind in (tree / "deploy/operator/operator.yaml").read_text()


@pytest.mark.parametrize(
    ("kind", "language", "said"),
    [
        ("Kiln", "en", "Fires what is put into it."),
        ("Kiln", "zh", "烧制放入其中的东西。"),
        ("LauncherJob", "en", "A launcher, and the workers that it starts programs on."),
        ("LauncherJob", "zh", "一个启动器，以及由它启动程序的工作副本。"),
    ],
)
def test_it_is_documented_in_both_languages(tree: Path, kind: str, language: str, said: str) -> None:
    page = (tree / f"docs/{language}/reference/kinds.md").read_text()
    assert f"\n## {kind}\n" in page
    assert said in page


def test_it_keeps_the_borders_between_kinds(tree: Path) -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    run(tree, str(linter), "--no-cache")
    path = tree / KINDS / "kiln/kind.py"
    text = path.read_text()
    path.write_text(f"{text}\nimport danlu.kinds.notebook.kind  # noqa\n")
    try:
        done = subprocess.run([linter, "--no-cache"], cwd=tree, env=environment(tree), capture_output=True, text=True)
        assert done.returncode != 0, "contracts do not see a new folder"
    finally:
        path.write_text(text)


def test_it_is_served_and_looked_after(danlu: Danlu) -> None:
    danlu.kubectl("apply", "-f", str(FOLDERS["kiln"] / "example.yaml"))
    danlu.kubectl("wait", "kiln", "glaze", "--for=jsonpath={.status.phase}=Firing", "--timeout=60s")
    assert "glaze-kiln" in danlu.kubectl("get", "pods", "-o", "name")


def test_a_job_is_served_and_looked_after(danlu: Danlu) -> None:
    danlu.kubectl("apply", "-f", str(FOLDERS["launcherjob"] / "example.yaml"))
    danlu.kubectl("wait", "launcherjob", "sum", "--for=condition=Succeeded", "--timeout=60s")
    assert danlu.kubectl("logs", "sum-launcher-0") == "starts on sum-worker-0\nstarts on sum-worker-1\n"


def test_a_queue_ends_it_in_its_own_way(danlu: Danlu) -> None:
    """Nobody has told the queue how: were its pod deleted, it would make another."""
    for obj in (
        {
            "apiVersion": "scheduler.tensorstack.dev/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "short", "namespace": "t9k-system"},
            "spec": {"maxDuration": "1s", "namespaceSelector": {}},
        },
        {
            "apiVersion": "pottery.example.dev/v1",
            "kind": "Kiln",
            "metadata": {"name": "raku"},
            "spec": {"queue": "short"},
        },
    ):
        danlu.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
    danlu.kubectl("wait", "kiln", "raku", "--for=jsonpath={.status.phase}=Cold", "--timeout=60s")
    assert danlu.kubectl("get", "kiln", "raku", "-o", "jsonpath={.spec.cold}") == "true"
    assert "MaxDurationExceeded" in danlu.kubectl("events", "--for", "kiln/raku")


def test_people_use_it_in_the_console(person: Person) -> None:
    words, page, name = WORDS[person.language], person.page, f"pots-{person.language}"
    page.goto(f"{person.console}/build/default/overview")
    expect(page.locator(".overview-cards").get_by_text("Kilns")).to_be_visible()
    page.get_by_role("menuitem", name=words["menu"], exact=True).click()
    # The form, with its defaults.
    page.get_by_role("button", name=words["create"], exact=True).click()
    expect(page.get_by_role("spinbutton", name=words["heat"], exact=True)).to_have_value("1000")
    person.fill("name", name)
    page.get_by_role("spinbutton", name=words["heat"], exact=True).fill("1300")
    person.click("create")
    # The list, live, with a state of its own.
    row = person.row(name)
    expect(row).to_contain_text("1300")
    expect(row).to_contain_text("Firing")
    expect(row.locator(".ant-tag-processing")).to_be_visible()
    # The page: summary, pods, log, YAML.
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_role("link", name=f"{name}-kiln").first).to_be_visible()
    expect(page.locator(".why")).to_have_count(0)
    page.get_by_role("tab", name=words["logs"], exact=True).click()
    expect(page.locator(".log")).to_contain_text("firing at 1300")
    page.get_by_role("tab", name="YAML", exact=True).click()
    expect(page.locator(".cm-content")).to_contain_text("pottery.example.dev/v1")
    # The page that it serves, on an origin of its own.
    with person.context.expect_page() as opening:
        page.get_by_role("button", name=f"{person.word('open')} {name}").click()
    opened = opening.value
    expect(opened.locator("body")).to_contain_text("firing at 1300")
    assert f"/t9k/kilns/projects/default/name/{name}/" in opened.url
    assert opened.url.partition("/t9k/")[0] != person.console
    # So does its address, typed by whoever is signed in.
    typed = person.watch(person.context.new_page())
    typed.goto(f"{person.console}/t9k/kilns/projects/default/name/{name}/")
    expect(typed.locator("body")).to_contain_text("firing at 1300")
    typed.close()
    # What can be done with it.
    page.get_by_role("button", name=words["cool"], exact=True).click()
    expect(page.locator(".page-head")).to_contain_text("Cold")
    expect(page.get_by_role("button", name=f"{person.word('open')} {name}")).to_have_count(0)
    opened.goto(opened.url)
    expect(opened.get_by_role("heading", level=1)).to_contain_text(f"Kiln {name}")
    opened.close()
    # Ctrl-K finds it.
    page.keyboard.press("Control+K")
    page.get_by_role("combobox").fill(name)
    expect(page.get_by_role("option").filter(has_text=name).first).to_be_visible()
    page.keyboard.press("Escape")


def test_the_console_says_why_it_waits(person: Person) -> None:
    words, page, name = WORDS[person.language], person.page, f"huge-{person.language}"
    page.goto(f"{person.console}/build/default/kilns/new")
    person.fill("name", name)
    page.get_by_role("spinbutton", name=words["cores"], exact=True).fill("500")
    person.click("create")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator(".page-head")).to_contain_text("Pending")
    expect(page.locator(".why")).to_contain_text(re.compile("cpu|CPU"))
    expect(page.locator(".why")).to_contain_text(re.compile("下一步|Next step"))


def test_people_use_a_job_in_the_console(person: Person) -> None:
    words, page, name = WORDS[person.language], person.page, f"adds-{person.language}"
    page.goto(f"{person.console}/build/default/overview")
    person.menu("jobs")
    # Its entry among those of all jobs, and its form: the first role is there.
    page.get_by_role("button", name=person.word("create job")).click()
    page.get_by_role("menuitem", name=words["job"], exact=True).click()
    person.fill("name", name)
    fill(role(person, "Launcher"), words["command"], "sh\n-c\necho launched; exec sleep 600")
    page.get_by_role("button", name=words["role"]).click()
    page.get_by_role("menuitem", name="Worker", exact=True).click()
    fill(role(person, "Worker"), words["command"], "sh\n-c\necho serves $LAUNCHED_BY; exec sleep 600")
    role(person, "Worker").get_by_role("spinbutton", name=words["count"], exact=True).fill("2")
    person.click("create")
    # The list of all jobs, live, with its states.
    expect(person.row(name)).to_contain_text("Running")
    expect(person.row(name)).to_contain_text("LauncherJob")
    # The page: replicas by role, what each writes, YAML.
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_text("Worker: 2", exact=True)).to_be_visible()
    expect(page.locator(".why")).to_have_count(0)
    page.get_by_role("tab", name=person.word("replicas"), exact=True).click()
    expect(page.get_by_role("row").filter(has_text=f"{name}-launcher-0")).to_contain_text("Running")
    page.get_by_role("tab", name=words["logs"], exact=True).click()
    expect(page.locator(".log")).to_contain_text("launched")
    expect(page.locator(".log")).to_contain_text(f"serves {name}")
    page.get_by_role("tab", name="YAML", exact=True).click()
    expect(page.locator(".cm-content")).to_contain_text("throwaway.example.org/v1")
    # What can be done with it.
    page.get_by_role("button", name=re.compile("^(暂停|Pause)")).click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^(暂停|Pause)")).click()
    expect(page.locator(".page-head")).to_contain_text("Suspended")
    # Ctrl-K finds it.
    page.keyboard.press("Control+K")
    page.get_by_role("combobox").fill(name)
    expect(page.get_by_role("option").filter(has_text=name).first).to_be_visible()
    page.keyboard.press("Escape")


def test_the_console_says_why_a_job_waits(person: Person) -> None:
    words, page, name = WORDS[person.language], person.page, f"wide-{person.language}"
    page.goto(f"{person.console}/build/default/jobs/new/launcherjobs")
    person.fill("name", name)
    fill(role(person, "Launcher"), words["command"], "sleep\n600")
    fill(role(person, "Launcher"), words["request"], "500")
    person.click("create")
    expect(person.row(name)).to_contain_text("500")  # in the list already
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator(".why")).to_contain_text("500")
    expect(page.locator(".why")).to_contain_text(re.compile("下一步|Next step"))


def role(person: Person, name: str) -> Locator:
    """Its part of the form."""
    remove = person.page.get_by_role("button", name=re.compile(f"{name}$"))
    return person.page.locator("fieldset").filter(has=remove)


def fill(within: Locator, label: str, text: str) -> None:
    within.get_by_label(label, exact=True).fill(text)
