"""What tests of every level share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster import target
from tests.running import Danlu

# These take a minute or more, most of them with few tests. One that began last would be waited for by all other workers
# (scripts/test, which tells the slowest tests at its end). Those that train stand between those that mostly wait.
LONGEST = (
    "tests/browser/test_documents.py", "tests/e2e/test_kubernetes_suite.py", "tests/e2e/test_crash.py",
    "tests/e2e/test_tensorstack_examples.py", "tests/e2e/test_seed_001.py", "tests/e2e/test_example_06.py",
    "tests/kinds/test_served_embedded.py", "tests/e2e/test_ordinary_programs.py", "tests/browser/test_pages.py",
    "tests/e2e/test_example_03.py", "tests/kinds/test_idle_embedded.py", "tests/e2e/test_make_train.py",
    "tests/house/test_docs.py", "tests/e2e/test_example_05.py", "tests/kinds/test_jobs_embedded.py",
    "tests/kinds/test_tensorstack_jobs_embedded.py", "tests/e2e/test_ordinary_user.py", "tests/e2e/test_fuzz.py",
    "tests/attack/fuzz/test_seeds.py", "tests/attack/fuzz/test_rediscovery.py",
)  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return  # nobody waits for another
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.location[0], len(places)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", help="run tests/conformance on this cluster instead of on an embedded one")
    parser.addoption(
        "--real", action="store_true", help="run tests/conformance on a real control plane (scripts/conformance)"
    )
    parser.addoption(
        "--rewrite", action="store_true", help="write golden files (*.output.yaml) anew; then read the diff"
    )


@pytest.fixture(scope="session")
def need_kubectl() -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH; scripts/setup --dev builds it")


@pytest.fixture(scope="module")
def make_danlu(need_kubectl: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Danlu]]:
    """Starts as many as a test asks for; all are stopped at the end. scripts/test-cluster gives its cluster instead."""
    made: list[Danlu] = []
    others: list[Path] = []

    def make(
        *flags: str, user: int | None = None, start: bool = True, variables: dict[str, str] | None = None
    ) -> Danlu:
        if user is None:
            folder = tmp_path_factory.mktemp("danlu")
            if (place := target.place()) is not None:
                return target.OnCluster(place, folder)
        else:  # pytest keeps its own folders for itself, again with every session that starts
            folder = Path(tempfile.mkdtemp(prefix="danlu-test-"))
            folder.chmod(0o755)
            others.append(folder)
        danlu = Danlu(folder, *flags, user=user, variables=variables)
        made.append(danlu)
        if start:
            danlu.up()
        return danlu

    yield make
    for danlu in made:
        danlu.command("down", check=False)
    for folder in others:
        shutil.rmtree(folder, ignore_errors=True)
