"""Images from a registry: what is asked of it, what a pod's events and status say of it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.embedded.node.test_images import of_image
from tests.embedded.node.test_podworker import (
    codes,
    in_phase,
    make_agent,
    reach,
    reasons,
    run,
    state,
    text_of,
    waits_for,
)
from tests.ociimages import ARCHITECTURE, LayerTar, MadeImage, small_system
from tests.registry import TestRegistry

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.agent import Agent
from danlu.embedded.node.images import credentials, reference, registrysettings
from danlu.embedded.node.images.credentials import Credentials, RegistryKeyring
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.images.puller import Puller, PullError
from danlu.embedded.node.images.registrysettings import RegistrySettings
from danlu.meta.kind import Object
from danlu.meta.wellknown import SECRET

ME = Credentials("me", "secret", source="a test")


@pytest.fixture(autouse=True)
def _pulls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DANLU_PULL")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as made:
        yield made


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[Agent]:
    made = make_agent(cluster, strict_images=True)
    await made.start()
    if made.capabilities.mode == "none":
        pytest.skip("this machine allows no namespaces, and an image needs them")
    yield made
    await made.stop(kill_pods=True)


def little(text: bytes = b"x", **config: object) -> MadeImage:
    return MadeImage(dict(config), [LayerTar().add("a", text).data(), LayerTar().add("b", bytes(3 << 20)).data()])


async def pulled(tmp_path: Path, name: str, keyring: RegistryKeyring | None = None) -> ImageStore:
    store = ImageStore(tmp_path)
    wanted = reference.parse(name)
    digest = await Puller(store, RegistrySettings(tmp_path)).pull(wanted, keyring or RegistryKeyring())
    store.name(str(wanted), digest, by_hand=False)
    return store


# -- the protocol


async def test_the_manifest_of_this_machine_is_chosen(tmp_path: Path, registry: TestRegistry) -> None:
    other, own = little(b"other").build(), little(b"own").build()
    name = registry.offer_index("team/tool", "1", {"s390x": other, ARCHITECTURE: own})
    store = await pulled(tmp_path, name)
    assert store.names()[name].digest == own.digest
    lone = registry.offer_index("team/lone", "1", {"s390x": other})
    with pytest.raises(Exception, match="only for linux/s390x"):
        await pulled(tmp_path, lone)


@pytest.mark.parametrize("auth", ["basic", "bearer"])
async def test_who_asks(tmp_path: Path, auth: str) -> None:
    with TestRegistry(auth=auth) as registry:
        name = registry.offer("team/tool", "1", little().build())
        with pytest.raises(PullError, match=r"UNAUTHORIZED|401"):
            await pulled(tmp_path, name)
        wrong = RegistryKeyring([(registry.host, Credentials("me", "wrong"))])
        with pytest.raises(PullError):
            await pulled(tmp_path, name, wrong)
        right = wrong + RegistryKeyring([(f"{registry.host}/team", ME)])
        assert name in (await pulled(tmp_path, name, right)).names()


async def test_a_download_that_was_cut_goes_on(tmp_path: Path, registry: TestRegistry) -> None:
    image = little().build(packed=False)
    large = str(image.manifest["layers"][1]["digest"])
    registry.cut_after[large] = 1 << 20
    name = registry.offer("team/tool", "1", image)
    store = await pulled(tmp_path, name)
    ranges = [one[2] for one in registry.asked(large)]
    assert ranges[0] == ""
    assert ranges[1].startswith("bytes=")
    assert int(ranges[1][6:-1]) > 0
    assert store.read(image.digest) == image.blobs[image.digest]


async def test_a_broken_layer_is_fetched_again_and_then_refused(tmp_path: Path, registry: TestRegistry) -> None:
    image = little().build()
    layer = str(image.manifest["layers"][0]["digest"])
    name = registry.offer("team/tool", "1", image)
    registry.broken[layer] = 1
    store = await pulled(tmp_path, name)
    assert store.blob(layer).read_bytes() == image.blobs[layer]
    assert len(registry.asked(layer)) == 2
    worse = little(b"worse").build()
    layer = str(worse.manifest["layers"][0]["digest"])
    name = registry.offer("team/worse", "1", worse)
    registry.broken[layer] = 100
    with pytest.raises(PullError, match=f"for {layer}.*refused"):
        await pulled(tmp_path, name)
    assert not store.has(layer)


async def test_a_manifest_that_is_not_its_digest_is_refused(tmp_path: Path, registry: TestRegistry) -> None:
    image = little().build()
    registry.offer("team/tool", "1", image)
    registry.manifests["team/tool", image.digest] += b" "
    with pytest.raises(PullError, match="refused"):
        await pulled(tmp_path, f"{registry.host}/team/tool@{image.digest}")


async def test_mirrors_are_asked_first_and_the_registry_after_them(tmp_path: Path, registry: TestRegistry) -> None:
    with TestRegistry() as mirror:
        (tmp_path / registrysettings.FILE).write_text(
            f"registries:\n  {json.dumps(registry.host)}: {{mirrors: ['http://{mirror.host}']}}\n"
        )
        image = little().build()
        name = registry.offer("team/tool", "1", image)
        mirror.offer("team/tool", "1", image)
        layer = str(image.manifest["layers"][0]["digest"])
        await pulled(tmp_path, name)
        assert len(mirror.asked(layer)) == 1
        assert registry.requests == []
        only = registry.offer("team/other", "1", little(b"other").build())
        assert only in (await pulled(tmp_path, only)).names()


async def test_layers_that_are_there_are_not_fetched_again(tmp_path: Path, registry: TestRegistry) -> None:
    first, second = little().build(), little().build(history=[{"comment": "another"}])
    await pulled(tmp_path, registry.offer("team/tool", "1", first))
    registry.requests.clear()
    await pulled(tmp_path, registry.offer("team/tool", "2", second))
    assert [one for one in registry.asked("/blobs/") if first.manifest["config"]["digest"] not in one[1]] == [
        ("GET", f"/v2/team/tool/blobs/{second.manifest['config']['digest']}", "")
    ]


@pytest.mark.parametrize(
    ("key", "name", "fits"),
    [
        ("https://index.docker.io/v1/", "redis", True),
        ("registry.example.com", "registry.example.com/a/b", True),
        ("registry.example.com/a", "registry.example.com/a/b", True),
        ("registry.example.com/a", "registry.example.com/ab/c", False),
        ("*.example.com", "registry.example.com/a", True),
        ("*.example.com", "example.com/a", False),
        ("registry.example.com", "registry.example.com:5000/a", False),
    ],
)
def test_which_credentials_fit(key: str, name: str, fits: bool) -> None:
    assert bool(RegistryKeyring([(key, ME)]).matching(reference.parse(name))) is fits


# -- pods


async def test_events_of_a_pull(agent: Agent, client: Client, registry: TestRegistry) -> None:
    name = registry.offer("team/tool", "1", small_system(Entrypoint=["sh", "-c", "echo pulled"]).build(packed=False))
    found = await run(client, of_image("p", name), in_phase("Succeeded", "Failed"))
    assert text_of(agent, found) == "pulled\n"
    told = await reasons(client, "p")
    assert [reason for reason, _ in told] == ["Pulling", "Pulled", "Created", "Started"]
    assert dict(told)["Pulled"].startswith(f'Successfully pulled image "{name}" in ')
    assert dict(told)["Pulled"].endswith(" bytes.")
    asked = len(registry.requests)
    await run(client, of_image("q", name), in_phase("Succeeded", "Failed"))
    assert dict(await reasons(client, "q"))["Pulled"].endswith(
        "already present on machine and can be accessed by the pod"
    )
    assert len(registry.requests) == asked


async def test_an_image_that_is_not_there(agent: Agent, client: Client, registry: TestRegistry) -> None:
    name = f"{registry.host}/team/none:1"
    found = await run(client, of_image("p", name), waits_for("ErrImagePull"))
    assert codes(found) == ["DL-PULL-NOT-FOUND"]
    assert "MANIFEST_UNKNOWN: manifest unknown" in state(found)["waiting"]["message"]
    await reach(client, "p", waits_for("ImagePullBackOff"))
    told = await reasons(client, "p")
    assert ("BackOff", f'Back-off pulling image "{name}"') in told
    assert ("Failed", "Error: ImagePullBackOff") in told


async def test_policies(agent: Agent, client: Client, registry: TestRegistry) -> None:
    first = small_system(Cmd=["sh", "-c", "echo first"]).build(packed=False)
    name = registry.offer("team/tool", "1", first)
    found = await run(client, of_image("p", name, imagePullPolicy="Never"), waits_for("ErrImageNeverPull"))
    assert "is not present with pull policy of Never" in state(found)["waiting"]["message"]
    assert registry.requests == []
    await run(client, of_image("q", name), in_phase("Succeeded"))
    registry.offer("team/tool", "1", small_system(Cmd=["sh", "-c", "echo second"]).build(packed=False))
    found = await run(client, of_image("r", name), in_phase("Succeeded"))
    assert text_of(agent, found) == "first\n"
    found = await run(client, of_image("s", name, imagePullPolicy="Always"), in_phase("Succeeded"))
    assert text_of(agent, found) == "second\n"


async def test_a_name_that_is_none(agent: Agent, client: Client) -> None:
    found = await run(client, of_image("p", "Not/A:Name!"), waits_for("InvalidImageName"))
    assert "invalid reference format" in state(found)["waiting"]["message"]


async def test_secrets_of_the_pod(agent: Agent, client: Client) -> None:
    with TestRegistry(auth="bearer") as registry:
        name = registry.offer("team/tool", "1", small_system(Cmd=["true"]).build(packed=False))
        made = of_image("p", name)
        found = await run(client, made, waits_for("ErrImagePull"))
        assert codes(found) == ["DL-PULL-DENIED"]
        login = json.dumps({"auths": {registry.host: {"username": "me", "password": "secret"}}})
        secret: Object = {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(login.encode()).decode()},
        }  # fmt: skip
        await client.create(SECRET, secret, "default")
        made = of_image("q", name)
        made["spec"]["imagePullSecrets"] = [{"name": "login"}, {"name": "missing"}]
        await run(client, made, in_phase("Succeeded"))
        told = dict(await reasons(client, "q"))
        assert "(missing)" in told["FailedToRetrieveImagePullSecret"]


def test_a_login_of_this_account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    auth = base64.b64encode(b"me:secret").decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"registry.example.com": {"auth": auth}}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    [found] = credentials.of_account().matching(reference.parse("registry.example.com/a"))
    assert (found.user, found.password) == ("me", "secret")


async def test_what_was_pulled_runs_when_the_registry_has_gone(cluster: Cluster, client: Client) -> None:
    """Not the environment that stands in for names that nobody knows, also where it is to be asked for anew."""
    lenient = make_agent(cluster)
    await lenient.start()
    if lenient.capabilities.mode == "none":
        pytest.skip("this machine allows no namespaces, and an image needs them")
    with TestRegistry() as registry:
        name = registry.offer("team/tool", "latest", small_system(Cmd=["sh", "-c", "echo itself"]).build(packed=False))
        await run(client, of_image("p", name), in_phase("Succeeded"))
    found = await run(client, of_image("q", name, imagePullPolicy="Always"), in_phase("Succeeded"))
    assert text_of(lenient, found) == "itself\n"
    found = await run(client, of_image("r", f"{registry.host}/team/none:1", command=["true"]), in_phase("Succeeded"))
    assert codes(found) == ["DL-IMAGE-UNKNOWN"]
    assert "could not be pulled" in dict(await reasons(client, "r"))["ImageSubstituted"]
    await lenient.stop(kill_pods=True)
