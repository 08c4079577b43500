"""Real images on a node: loaded from an archive, run as pods."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.node.test_podworker import in_phase, make_agent, pod, run, state, text_of, waits_for
from tests.ociimages import LayerTar, MadeImage, small_system

from danlu.client.client import Client
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.agent import Agent
from danlu.embedded.node.images import archive
from danlu.meta.kind import Object


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[Agent]:
    made = make_agent(cluster)
    await made.start()
    if made.capabilities.mode == "none":
        pytest.skip("this machine allows no namespaces, and an image needs them")
    yield made
    await made.stop(kill_pods=True)


def load(agent: Agent, image: MadeImage, name: str = "example.com/tools:1") -> None:
    archive.load(agent.images.store, io.BytesIO(image.build(packed=False).docker_archive(name)))


def of_image(name: str, image: str = "example.com/tools:1", **container: Any) -> Object:
    made = pod(name, restartPolicy="Never")
    made["spec"]["containers"] = [{"name": "c", "image": image, **container}]
    return made


async def test_an_image_runs_in_its_own_tree(agent: Agent, client: Client) -> None:
    load(agent, small_system(Entrypoint=["/bin/sh", "-c"], Cmd=["cat /etc/made-by; echo $FROM_IMAGE; ls /; pwd"]))
    found = await run(client, of_image("p"), in_phase("Succeeded", "Failed"))
    said = text_of(agent, found).split()
    assert said[:3] == ["a", "test", "yes"]
    assert {"bin", "etc", "proc", "sys", "dev", "tmp"} <= {*said}
    assert "opt" not in said, "the machine's own folders are not in it"
    assert found["status"]["containerStatuses"][0]["imageID"].startswith("example.com/tools@sha256:")


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({}, "entry cmd\n"),
        ({"args": ["other"]}, "entry other\n"),
        ({"command": ["sh", "-c", "echo own"]}, "own\n"),
    ],
)
async def test_command_and_args(agent: Agent, client: Client, container: Object, said: str) -> None:
    load(agent, small_system(Entrypoint=["sh", "-c", 'echo entry "$0"'], Cmd=["cmd"]))
    found = await run(client, of_image("p", **container), in_phase("Succeeded", "Failed"))
    assert text_of(agent, found) == said


async def test_an_image_without_a_command_is_an_error(agent: Agent, client: Client) -> None:
    load(agent, small_system(Cmd=[]))
    found = await run(client, of_image("p"), waits_for("CreateContainerError"))
    assert "no command specified" in state(found)["waiting"]["message"]


async def test_users_by_name_folder_and_variables(agent: Agent, client: Client) -> None:
    load(agent, small_system(User="worker", WorkingDir="/srv/work", Env=["PATH=/bin", "A=image", "B=image"]))
    script = "id -u; id -g; echo $HOME $A $B; pwd"
    made = of_image("p", command=["sh", "-c", script], env=[{"name": "B", "value": "pod"}])
    found = await run(client, made, in_phase("Succeeded", "Failed"))
    assert text_of(agent, found).split() == ["1234", "2345", "/home/worker", "image", "pod", "/srv/work"]
    named = of_image("q", securityContext={"runAsNonRoot": True})
    found = await run(client, named, waits_for("CreateContainerConfigError"))
    assert "has non-numeric user (worker), cannot verify user is non-root" in state(found)["waiting"]["message"]
    load(agent, small_system(User="nobody-knows"), "example.com/stranger:1")
    found = await run(client, of_image("r", "example.com/stranger:1"), waits_for("CreateContainerError"))
    assert state(found)["waiting"]["message"] == "unable to find user nobody-knows: no matching entries in passwd file"


async def test_the_root_is_writable_and_goes_with_the_container(agent: Agent, client: Client) -> None:
    load(agent, small_system())
    script = (
        "cat /etc/added || echo fresh; mkdir -p /opt; echo x > /opt/new; echo z > /etc/made-by; echo y > /etc/added"
    )
    made = of_image("p", command=["sh", "-c", f"{script}; exit 1"])
    made["spec"]["restartPolicy"] = "OnFailure"

    def ended_twice(pod: Object) -> bool:
        told = pod["status"].get("containerStatuses", [{}])[0]
        return told.get("restartCount", 0) > 0 and "running" not in told["state"]

    found = await run(client, made, ended_twice)
    assert "fresh" in text_of(agent, found, 1), "the second run sees nothing of the first"
    tree = agent.images.store.root / "layers"
    assert [path.read_text() for path in tree.glob("*/tree/etc/made-by")] == ["a test\n"]


def layered() -> MadeImage:
    """Whiteouts, a folder made anew, odd owners, a hard link."""
    image = small_system()
    lower = LayerTar().folder("data").add("data/old", b"1").add("data/kept", b"2").folder("logs").add("logs/a", b"3")
    upper = LayerTar().add("data/.wh.old").folder("logs").add("logs/.wh..wh..opq").add("logs/b", b"4")
    upper.add("odd", b"5", uid=4_000_000_000, gid=70_000, mode=0o600).hard_link("same", "odd")
    image.layers += [lower.data(), upper.data()]
    return image


async def test_layers_lie_over_each_other(agent: Agent, client: Client) -> None:
    load(agent, layered())
    script = "ls /data; ls /logs; cat /odd; cat /same; stat -c %h /same"
    found = await run(client, of_image("p", command=["sh", "-c", script]), in_phase("Succeeded", "Failed"))
    assert text_of(agent, found).split() == ["kept", "b", "552"]


async def test_volumes_lie_in_the_image_where_its_links_lead(agent: Agent, client: Client) -> None:
    load(agent, small_system())
    made = of_image(
        "p",
        command=["sh", "-c", "echo x > /var/run/deep/er/file; ls /run/deep/er; cat /etc/hostname"],
        volumeMounts=[{"name": "v", "mountPath": "/var/run/deep/er"}],
    )
    made["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    found = await run(client, made, in_phase("Succeeded", "Failed"))
    assert text_of(agent, found).split() == ["file", "p"]


@pytest.mark.parametrize("folder", ["proc", "sys", "dev", "etc"])
async def test_links_in_place_of_the_kernels_folders(agent: Agent, client: Client, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    image = small_system()
    image.layers.append(LayerTar().link(folder, str(outside)).data())
    load(agent, image)
    await run(client, of_image("p", command=["true"]), in_phase("Succeeded", "Failed"))
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("target", ["/proc/1/root{outside}", "/proc/self/cwd", "/dev/.danlu-host{outside}"])
async def test_mount_points_behind_hostile_links(agent: Agent, client: Client, tmp_path: Path, target: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    image = small_system()
    image.layers.append(LayerTar().link("door", target.format(outside=outside)).data())
    load(agent, image)
    made = of_image("p", command=["true"], volumeMounts=[{"name": "v", "mountPath": "/door/made"}])
    made["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    found = await run(client, made, in_phase("Succeeded", "Failed"))
    assert state(found)["terminated"]["reason"] == "StartError"
    assert "where nothing may be put" in state(found)["terminated"]["message"]
    image = small_system(WorkingDir=f"/proc/1/root{outside}/made")
    load(agent, image, "example.com/hostile:1")
    found = await run(client, of_image("q", "example.com/hostile:1", command=["true"]), in_phase("Failed", "Succeeded"))
    assert state(found)["terminated"]["reason"] == "StartError"
    assert list(outside.iterdir()) == []
