"""What of the attack suite applies where the API server is not ours: the installed console, and the bounds of kinds."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import Space
from tests.console.browsing import PROOF, Browser

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def console(space: Space) -> Iterator[str]:
    with space.danlu.console() as address:
        yield address


async def test_a_cookie_of_the_console_opens_nothing_without_its_proof(space: Space, console: str) -> None:
    space.danlu.kubectl("create", "serviceaccount", "mallory")
    space.danlu.kubectl(
        "create", "rolebinding", "mallory", "--clusterrole=admin", f"--serviceaccount={space.name}:mallory"
    )
    token = space.danlu.kubectl("create", "token", "mallory").strip()
    own = f"/k8s/api/v1/namespaces/{space.name}/configmaps"
    async with Browser(console) as browser:
        assert (await browser.ask("POST", "/console/sign-in", {"token": token}))[0] == 200
        assert (await browser.ask("GET", own))[0] == 200
        for wrong in ("", secrets.token_urlsafe(32)):
            assert (await browser.ask("GET", own, headers={PROOF: wrong}))[0] == 401
        assert (await browser.ask("GET", own, headers={"origin": "http://elsewhere.example"}))[0] == 403
        # Nobody gets farther through the console than with the same token at the API.
        for path in (
            "kube-system/secrets", f"{space.name}/namespaces/kube-system", f"{space.name}/%2e%2e/kube-system/secrets",
        ):  # fmt: skip
            status, _ = await browser.ask("GET", f"/k8s/api/v1/namespaces/{path}")
            assert status >= 400, path


@pytest.mark.parametrize(
    ("version", "kind", "field"),
    [("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs"), ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs")],
)
def test_a_billion_replicas_are_refused(space: Space, version: str, kind: str, field: str) -> None:
    container = {"name": "main", "image": "python"}
    worker = {"replicas": 1_000_000_000, "template": {"spec": {"containers": [container]}}}
    poison = {
        "apiVersion": version, "kind": kind, "metadata": {"name": "poison"}, "spec": {field: {"Worker": worker}},
    }  # fmt: skip
    refused = space.danlu.fails("-n", space.name, "apply", "-f", "-", stdin=json.dumps(poison))
    assert "replicas" in refused
    assert "should be less than or equal to" in refused
