"""The three documents that are told through the console (seeds 000, 002 and 004), click by click, to a trained model.

The words in quotes are those of the documents. Fewer pictures than a user takes; everything else is real.
"""

from __future__ import annotations

import re

import pytest
import yaml
from playwright.sync_api import expect
from tests.browser.jupyterlab import JupyterLab
from tests.browser.person import Person
from tests.e2e.expecting import EXAMPLES, need, need_mnist, shortened
from tests.running import Danlu

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

TRAINING_MS = 400_000
FEW = {"PICTURES": "2000", "EPOCHS": "1"}
NOTEBOOK_IMAGE = "t9kpublic/torch-2.1.0-notebook:1.77.1"


@pytest.fixture(scope="module", autouse=True)
def ready(danlu: Danlu) -> None:
    need("torch")
    need_mnist(danlu)
    for language in ("zh", "en"):
        danlu.kubectl("create", "namespace", f"demo-{language}")


def enter(person: Person) -> None:
    """首页 > 模型构建, and the project at the top right."""
    person.page.goto(person.console)
    person.page.get_by_role("link").filter(has_text=person.word("build")).first.click()
    expect(person.page.get_by_role("heading", name=person.word("overview"), exact=True)).to_be_visible()
    project = f"demo-{person.language}"
    switch = person.page.get_by_role("button", name=re.compile("切换项目|Switch project"))
    switch.click()
    person.page.locator(".ant-popover, .ant-dropdown").get_by_text(project, exact=True).click()
    expect(switch).to_contain_text(project)


def create_by_yaml(person: Person, kind: str, manifest: str) -> None:
    """创建 Job > KIND, 预览 YAML, paste, 创建."""
    person.menu("jobs")
    person.page.get_by_role("button", name=person.word("create job")).click()
    person.page.get_by_role("menuitem").filter(has_text=kind).first.click()
    person.click("preview")
    person.paste(manifest)
    dialog = person.page.get_by_role("dialog")
    create = dialog.get_by_role("button", name=person.word("create"), exact=True)
    expect(create).to_be_enabled()
    person.picture(f"job-yaml-{kind.lower()}")
    create.click()
    expect(dialog).to_be_hidden()


def follow(person: Person, name: str) -> None:
    """From the list to the job: running workers, their logs, its TensorBoard, and Done."""
    row = person.row(name)
    expect(row).to_contain_text("Running", timeout=TRAINING_MS)
    person.picture("jobs")
    person.page.get_by_role("link", name=name, exact=True).click()
    expect(person.page.get_by_text(re.compile(r"worker: 4"))).to_be_visible()
    board = person.page.get_by_role("button", name="Running")
    expect(board).to_be_visible(timeout=TRAINING_MS)
    person.picture("job")
    tab = person.new_tab(board)
    expect(tab).to_have_title(re.compile("TensorBoard"), timeout=120_000)
    assert not tab.url.startswith(person.console), "it has an origin of its own"
    tab.close()
    person.page.get_by_role("tab", name=person.word("replicas"), exact=True).click()
    logs = person.page.get_by_role("button", name=re.compile(rf"^{person.word('logs')} .*-0$"))
    logs.first.click()
    expect(person.page.get_by_role("dialog")).to_contain_text(re.compile("loss|accuracy|Epoch"), timeout=TRAINING_MS)
    person.picture("job-logs")
    person.page.keyboard.press("Escape")
    expect(person.page.get_by_text("Done", exact=True).first).to_be_visible(timeout=TRAINING_MS)


def open_notebook(person: Person) -> JupyterLab:
    person.menu("notebooks")
    row = person.row("mnist")
    button = row.get_by_role("button", name=f"{person.word('open')} mnist", exact=True)
    expect(button).to_be_enabled(timeout=180_000)
    return JupyterLab(person.new_tab(button))


def test_seed_000_the_first_model(person: Person) -> None:
    person.picture("landing")
    enter(person)
    for tab in ("events", "quota"):
        person.page.get_by_role("tab", name=person.word(tab), exact=True).click()
    person.picture("overview")
    # 存储 > 持久卷, 创建 PVC
    person.menu("volumes")
    person.click("create volume")
    person.fill("name", "mnist")
    person.page.get_by_label(re.compile("^(大小|存储|Size)$")).fill("1Gi")
    person.picture("volume-new")
    person.click("create")
    expect(person.row("mnist")).to_be_visible()
    person.click("refresh")
    expect(person.row("mnist")).to_contain_text("Bound")
    # 构建 > Notebook, 创建 Notebook
    person.menu("notebooks")
    person.click("create notebook")
    person.fill("name", "mnist")
    person.choose("image", NOTEBOOK_IMAGE)
    person.choose("volume", "mnist")
    person.choose("template", "large")
    person.picture("notebook-new")
    person.click("create")
    expect(person.row("mnist")).to_be_visible()
    lab = open_notebook(person)
    said = lab.run_in_a_cell(shortened(EXAMPLES / "01-first-notebook/torch_mnist.py", **FEW), "accuracy=")
    found = re.search(r"accuracy=(0\.\d+)", said)
    assert found is not None, said
    assert float(found[1]) > 0.7
    lab.move_away("first-model")


def test_seed_002_parallel_training(person: Person) -> None:
    enter(person)
    lab = open_notebook(person)
    folder = EXAMPLES / "02-parallel-training"
    lab.write_a_file("torch_mnist_trainingjob.py", shortened(folder / "torch_mnist_trainingjob.py", **FEW))
    create_by_yaml(person, "PyTorch", (folder / "job.yaml").read_text())
    follow(person, yaml.safe_load((folder / "job.yaml").read_text())["metadata"]["name"])
    lab.move_away("parallel-training")


def test_seed_004_training_with_tensorflow(person: Person) -> None:
    need("tensorflow")
    enter(person)
    lab = open_notebook(person)
    folder = EXAMPLES / "04-tensorflow-job"
    lab.write_a_file("keras_mnist_trainingjob.py", shortened(folder / "keras_mnist_trainingjob.py", **FEW))
    create_by_yaml(person, "TensorFlow", (folder / "job.yaml").read_text())
    follow(person, "mnist")


def test_pictures_of_the_other_pages(person: Person) -> None:
    """What the documents above have left behind, for docs/; `pytest --rewrite` keeps them."""
    enter(person)
    for key in ("volumes", "notebooks", "tensorboards", "pods", "secrets", "configmaps", "nodes", "queues"):
        person.menu(key)
        expect(person.page.get_by_role("table").first).to_be_visible()
        person.picture(key)
