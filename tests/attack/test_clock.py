"""A machine whose clock is wrong at the first start, or is set while danlu runs: nothing stays useless for it."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import aiohttp
import pytest
import yaml
from cryptography import x509

from danlu.client.client import Client
from danlu.embedded import cluster as clusters
from danlu.embedded.apiserver.auth import certificateauthority, tokens
from danlu.embedded.apiserver.auth.certificateauthority import DAY, Certificates
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.agent import Agent
from danlu.embedded.node.pods import localpod, members, podworker, starter, termination
from danlu.embedded.node.pods.members import Member
from danlu.embedded.node.pods.podstatus import Ended
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.node.volumes import volumefiles
from danlu.embedded.settings import ClusterSettings, NodeShare
from danlu.errors import ApiError
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, NODE, POD, SECRET, SERVICE_ACCOUNT
from danlu.runtime import Controller, Outcome, Request

YEAR = 365 * DAY
# Seconds by which the clock was wrong: ahead or behind by years, at its very beginning, near the end of all dates.
WRONG = {
    "20 years ahead": 20 * YEAR,
    "2 days ahead": 2 * DAY,
    "20 years behind": -20 * YEAR,
    "11 months behind": -340 * DAY,
    "1970": 5 - time.time(),
    "9990": 253402300799 - 9 * YEAR - time.time(),
}
TIMEOUT_S = 30.0


class Clock:
    """The time of day as some modules see it; how time passes is left alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self.wrong_by = 0.0
        said = SimpleNamespace(**{name: getattr(time, name) for name in ("monotonic", "time_ns", "strftime", "gmtime")})
        said.time = lambda: time.time() + self.wrong_by
        for module in modules:
            monkeypatch.setattr(module, "time", said)


async def until(what: str, look: Callable[[], Awaitable[Any]]) -> Any:
    ends, problem = time.monotonic() + TIMEOUT_S, None
    while time.monotonic() < ends:
        try:
            if found := await look():
                return found
        except (ApiError, aiohttp.ClientError, ssl.SSLError, OSError) as error:
            problem = error
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}; {problem!r}")


async def ask(cluster: Cluster) -> int:
    """As kubectl would, with the kubeconfig as it is now: both sides check the other by the real clock."""
    config = yaml.safe_load(cluster.directory.kubeconfig.read_text())
    trusted = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=trusted)
    user = config["users"][0]["user"]
    pem = cluster.directory.root / "test-client.pem"
    pem.write_bytes(b"\n".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
    context.load_cert_chain(pem)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(f"{cluster.url}/api/v1/namespaces/kube-system/secrets") as answer,
    ):
        return answer.status


def dates(path: Path) -> tuple[float, float]:
    found = x509.load_pem_x509_certificate(path.read_bytes())
    return found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()


@pytest.mark.parametrize("wrong_by", WRONG.values(), ids=WRONG)
async def test_a_first_start_with_a_wrong_clock_is_mended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_by: float
) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False)
    clock = Clock(monkeypatch, certificateauthority)
    clock.wrong_by = wrong_by
    first = Cluster(settings)
    await first.start()
    await first.stop()
    authority_key = first.certificates.authority.key.read_bytes()
    clock.wrong_by = 0.0
    second = Cluster(settings)
    await second.start()
    try:
        assert await ask(second) == 200
        for path in (tmp_path / "danlu/pki").glob("*.crt"):
            begins, ends = dates(path)
            assert begins < time.time() < ends - certificateauthority.RENEW_BEFORE, path
        assert second.certificates.authority.key.read_bytes() == authority_key
    finally:
        await second.stop()


@pytest.mark.parametrize("wrong_by", WRONG.values(), ids=WRONG)
async def test_a_clock_that_is_set_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_by: float
) -> None:
    monkeypatch.setattr(clusters, "CERTIFICATES_EVERY_S", 0.05)
    clock = Clock(monkeypatch, certificateauthority)
    clock.wrong_by = wrong_by
    cluster = Cluster(ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_node=False))
    await cluster.start()
    try:
        before = cluster.certificates.authority_pem()
        clock.wrong_by = 0.0

        async def works() -> bool:
            return not cluster.certificates.outdated() and await ask(cluster) == 200

        async def published() -> bool:
            found = await cluster.client.get(CONFIG_MAP, "kube-root-ca.crt", "default")
            return bool(found["data"]["ca.crt"] == cluster.certificates.authority_pem())

        await until("the API to be reached again, without a restart", works)
        await until("pods to be told of the authority", published)
        if wrong_by != WRONG["11 months behind"]:  # that authority still held
            assert cluster.certificates.authority_pem() != before
    finally:
        await cluster.stop()


def test_a_clock_that_is_wrong_by_a_time_zone_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, certificateauthority)
    clock.wrong_by = 14 * 3600
    Certificates(tmp_path).ensure_server()
    made = (tmp_path / "server.crt").read_bytes()
    clock.wrong_by = 0.0
    Certificates(tmp_path).ensure_server()
    assert (tmp_path / "server.crt").read_bytes() == made


def test_an_index_that_knows_only_the_end_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Danlu 0.1.0 wrote it, on a machine whose clock was ahead."""
    clock = Clock(monkeypatch, certificateauthority)
    clock.wrong_by = 3 * YEAR
    Certificates(tmp_path).ensure_server()
    index = json.loads((tmp_path / "pki.json").read_text())
    for entry in index.values():
        del entry["begins"]
    (tmp_path / "pki.json").write_text(json.dumps(index))
    clock.wrong_by = 0.0
    Certificates(tmp_path).ensure_server()
    for name in ("ca", "server"):
        begins, ends = dates(tmp_path / f"{name}.crt")
        assert begins < time.time() < ends


def test_what_the_authority_signed_holds_when_it_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near its end: the key stays. What it signed is accepted, and the server by those who trust the old one."""
    pki = Certificates(tmp_path)
    server, person = pki.ensure_server(), pki.ensure_client("ada", "ada")
    old = (tmp_path / "old.crt", pki.authority_pem())
    old[0].write_text(old[1])
    signed = person.certificate.read_bytes()
    index = json.loads((tmp_path / "pki.json").read_text())
    index["ca"]["ends"] = int(time.time()) + DAY
    (tmp_path / "pki.json").write_text(json.dumps(index))
    again = Certificates(tmp_path)
    assert again.authority_pem() != old[1]
    again.ensure_client("ada", "ada")
    assert person.certificate.read_bytes() == signed
    shake(str(tmp_path / "ca.crt"), server, person)
    (tmp_path / "server.crt").unlink()
    shake(str(old[0]), Certificates(tmp_path).ensure_server(), person)


def shake(trusted: str, server: certificateauthority.KeyPair, person: certificateauthority.KeyPair) -> None:
    server_side, client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=trusted)
    server_side.load_cert_chain(server.certificate, server.key)
    server_side.load_verify_locations(server.certificate.with_name("ca.crt"))
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side.load_cert_chain(person.certificate, person.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client_side.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server_side.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert sides[1].getpeercert(True)


# -- tokens


@pytest.mark.parametrize("jump", [-20 * YEAR, -3600, 20 * YEAR, 3600], ids=str)
async def test_pods_get_another_token_when_the_clock_was_set(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    clock = Clock(monkeypatch, tokens, volumefiles)
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": "default"}})
    spec = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    pod = await client.create(POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, "default")
    held = volumefiles.PodTokens(pod, SimpleNamespace(client=client))
    accounts = cluster.server.authenticator.accounts
    first = await held.token("", 3600)
    assert await held.token("", 3600) == first
    clock.wrong_by = jump
    second = await held.token("", 3600)
    assert second != first
    accounts._verified.clear()  # as after a restart
    assert accounts.verify(second)[0].name == "system:serviceaccount:default:default"


async def test_a_secrets_token_of_the_future_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_node=False)
    clock = Clock(monkeypatch, tokens)
    clock.wrong_by = 20 * YEAR
    settings.run_controllers = False
    cluster = Cluster(settings)
    await cluster.start()
    account = await cluster.client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": "default"}})
    old = base64.b64encode(cluster.server.authenticator.accounts.issue(account, seconds=1 << 32).encode()).decode()
    notes = {"kubernetes.io/service-account.name": "default"}
    meta = {"name": "robot", "namespace": "default", "annotations": notes}
    secret = {"metadata": meta, "type": "kubernetes.io/service-account-token", "data": {"token": old}}
    await cluster.client.create(SECRET, secret)
    await cluster.stop()
    clock.wrong_by = 0.0
    settings.run_controllers = True
    cluster = Cluster(settings)
    await cluster.start()
    try:

        async def another() -> str:
            token = (await cluster.client.get(SECRET, "robot", "default"))["data"]["token"]
            return "" if token == old else base64.b64decode(token).decode()

        assert cluster.server.authenticator.accounts.verify(await until("another token", another))
    finally:
        await cluster.stop()


# -- what waits


@pytest.mark.parametrize("jump", [-20 * YEAR, 20 * YEAR], ids=["put back", "put forward"])
async def test_a_container_that_failed_is_started_again_in_time(monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    clock = Clock(monkeypatch, members)
    ended: Any = {"exit_code": 1, "reason": "Error", "started_at": time.time() - 5, "finished_at": time.time()}
    view: Any = SimpleNamespace(ended=Ended(ended, "id", ""))
    member = Member(view, False, None, None)  # type: ignore[arg-type]
    member.lengthen_backoff(NodeSettings())
    assert 9 < member.seconds_to_wait() <= 10
    clock.wrong_by = jump
    assert 0 <= member.seconds_to_wait() <= 10
    member.lengthen_backoff(NodeSettings())
    assert 0 < member.backoff <= 300


@pytest.mark.parametrize("jump", [-YEAR, YEAR], ids=["put back", "put forward"])
async def test_a_pods_deadline_counts_time_and_not_the_clock(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    clock = Clock(monkeypatch, podworker, localpod, starter, termination)
    agent = Agent(client, cluster.directory.root, shares=[NodeShare("n1")])
    await agent.start()
    try:
        for name, limit in (("patient", 600), ("short", 3)):
            await client.create(POD, sleeper(name, limit), "default")

        async def phases() -> dict[str, str]:
            listed = (await client.list(POD, "default")).items
            return {pod["metadata"]["name"]: pod["status"].get("phase", "") for pod in listed}

        async def both_run() -> bool:
            return set((await phases()).values()) == {"Running"}

        async def short_ended() -> bool:
            return (await phases())["short"] == "Failed"

        await until("both pods to run", both_run)
        clock.wrong_by = jump
        await until("the short one to end", short_ended)
        assert (await phases())["patient"] == "Running"
        assert (await client.get(NODE, "n1"))["metadata"]["name"] == "n1"
    finally:
        await agent.stop(kill_pods=True)


def sleeper(name: str, limit: int) -> Object:
    spec = {
        "nodeName": "n1", "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": limit, "containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1000"]}],
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_wait_of_years_is_looked_at_again_soon() -> None:
    """A time to live that was computed when the clock was behind."""

    async def reconcile(_: Request) -> Outcome:
        return Outcome(requeue_after=20.0 * YEAR)

    controller = Controller("test", reconcile)
    await controller.process(Request("ns", "a"))
    [timer] = controller.queue._timers.values()
    assert timer.when() - asyncio.get_running_loop().time() <= 600.0
    await controller.stop()
