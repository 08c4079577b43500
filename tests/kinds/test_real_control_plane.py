"""The platform on a real Kubernetes: its CRDs are accepted, and the generated role is all that the controllers need.

No node: the test itself plays the kubelet. The binaries are those that scripts/real-kubernetes builds; without them the
tests are skipped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import yaml
from benchmarks.servers import RealControlPlane
from tests.kinds.jobs import job, role
from tests.running import ROOT

from danlu.client.client import Client
from danlu.client.config import load
from danlu.client.http import HttpTransport
from danlu.kinds import registry
from danlu.kinds.platform import PlatformSettings
from danlu.kinds.platformroles import OPERATOR
from danlu.kinds.pytorchjob.reconcile import PYTORCHJOB
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import POD, SERVICE_ACCOUNT
from danlu.runtime.manager import Manager

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CACHE = Path(os.environ.get("DANLU_CACHE") or Path("~/.cache/danlu").expanduser()) / "go-binaries"
CONTAINER = {"name": "pytorch", "image": "a", "imageID": "", "ready": False, "restartCount": 0}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    folders = [*CACHE.glob("kubernetes-*"), *CACHE.glob("etcd-*")]
    if len(folders) < 2:
        pytest.skip("no real Kubernetes on this machine; scripts/real-kubernetes builds one")
    path = ":".join([*map(str, folders), os.environ["PATH"]])
    plane = RealControlPlane(tmp_path_factory.mktemp("real"), path)
    plane.start()
    for folder in ("crds", "rbac"):
        done = plane.run("apply", "--server-side", "-f", str(ROOT / "deploy" / folder), check=False)
        assert done.returncode == 0, done.stderr.decode()
    yield plane
    plane.stop()


@pytest.fixture
async def admin(real: RealControlPlane) -> AsyncIterator[Client]:
    client = Client(HttpTransport(load(real.kubeconfig)))
    yield client
    await client.close()


@pytest.fixture
async def operator(real: RealControlPlane, admin: Client, tmp_path: Path) -> AsyncIterator[Manager]:
    """All controllers, as an account that has the generated role and nothing else."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OPERATOR, "namespace": "default"}}
    await admin.create(SERVICE_ACCOUNT, account)
    who = f"--serviceaccount=default:{OPERATOR}"
    real.run("create", "clusterrolebinding", OPERATOR, f"--clusterrole={OPERATOR}", who)
    token = real.run("create", "token", OPERATOR).stdout.decode().strip()
    config = yaml.safe_load(real.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    client = Client(HttpTransport(load(path)))
    manager = Manager(client)
    registry.add_controllers(manager, PlatformSettings())
    async with asyncio.timeout(120):
        await manager.start()  # every cache is filled: all of it may be listed and watched
    yield manager
    await manager.stop()
    await client.close()


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1000):
        if await look():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"waited in vain: {look!r}")


async def objects(client: Client, kind: Kind) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in (await client.list(kind, "default")).items}


async def test_the_life_of_a_job(admin: Client, operator: Manager) -> None:
    roles = {
        "Master": role("PyTorchJob", "", restart="ExitCode"),
        "Worker": role("PyTorchJob", "", 2, restart="ExitCode"),
    }
    wanted = job("PyTorchJob", "real", roles, runPolicy={"ttlSecondsAfterFinished": 2, "cleanPodPolicy": "Running"})
    await admin.create(PYTORCHJOB, wanted, "default")

    async def pods() -> dict[str, Object]:
        return await objects(admin, POD)

    async def all_pods() -> bool:
        return len(await pods()) == 3

    async def state() -> str:
        conditions = ((await objects(admin, PYTORCHJOB))["real"].get("status") or {}).get("conditions") or [{}]
        return str(conditions[-1].get("type"))

    async def is_running() -> bool:
        return await state() == "Running"

    await until(all_pods)
    for name in await pods():
        await admin.patch(POD, name, "default", {"status": {"phase": "Running"}}, subresource="status")
    await until(is_running)

    before = (await pods())["real-worker-1"]["metadata"]["uid"]
    ended = {**CONTAINER, "state": {"terminated": {"exitCode": 137, "finishedAt": "2026-01-02T03:04:05Z"}}}
    failed = {"status": {"phase": "Failed", "containerStatuses": [ended]}}
    await admin.patch(POD, "real-worker-1", "default", failed, subresource="status")

    async def made_again() -> bool:
        found = (await pods()).get("real-worker-1")
        return found is not None and found["metadata"]["uid"] != before

    await until(made_again)
    await admin.patch(POD, "real-master-0", "default", {"status": {"phase": "Succeeded"}}, subresource="status")

    async def job_is_gone() -> bool:
        return "real" not in await objects(admin, PYTORCHJOB)

    await until(job_is_gone)
