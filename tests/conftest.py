"""What tests of every level share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import target
from tests.running import Danlu

# Those that take half a minute or more, the longest first: one that began last would be waited for by all other workers
# (scripts/test tells the slowest tests at its end). Those that compute stand between those that mostly wait.
LONGEST = (
    "tests/browser/test_documents.py", "tests/e2e/test_crash.py",
    "tests/e2e/test_tensorstack_examples.py", "tests/conformance/test_workloads.py",
    "tests/browser/test_pages.py", "tests/attack/test_poison.py",
    "tests/e2e/test_example_06.py", "tests/attack/test_damage.py",
    "tests/browser/test_new_kind.py", "tests/conformance/test_scheduling.py",
    "tests/e2e/test_example_03.py", "tests/kinds/test_idle_embedded.py",
    "tests/attack/test_sessions.py", "tests/attack/test_disk_full.py",
    "tests/attack/fuzz/test_seeds.py", "tests/console/test_apps.py",
    "tests/operator/install/test_install.py", "tests/conformance/test_objects.py",
    "tests/attack/test_addresses.py", "tests/kinds/queue/test_queue_embedded.py",
    "tests/e2e/test_make_train.py", "tests/operator/install/test_trouble.py",
    "tests/e2e/test_seed_001.py", "tests/operator/test_on_kubernetes.py",
    "tests/e2e/test_example_05.py", "tests/conformance/test_kubectl.py",
    "tests/operator/install/test_other_ways.py", "tests/attack/test_datagrams.py",
    "tests/kinds/test_served_embedded.py", "tests/conformance/test_jobs.py",
    "tests/e2e/test_cli.py", "tests/conformance/test_pods.py",
    "tests/kinds/test_jobs_embedded.py", "tests/console/test_cluster.py",
    "tests/e2e/test_kubernetes_suite.py", "tests/e2e/test_ordinary_programs.py",
    "tests/attack/test_bounds.py", "tests/e2e/test_ordinary_user.py",
)  # fmt: skip


os.environ["DANLU_LANG"] = "en"  # whatever whoever runs the tests speaks
os.environ["DANLU_PULL"] = "never"  # no test asks a registry of the world; those about pulling have one of their own


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
    # Each waits for its pods to end: all at once, or a module with ten of them would wait ten times.
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda danlu: danlu.command("down", check=False), made))
    for folder in others:
        shutil.rmtree(folder, ignore_errors=True)
