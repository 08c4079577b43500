from __future__ import annotations

from pathlib import Path

import pytest

from danlu.embedded.node.sandbox import devices
from danlu.embedded.node.sandbox.devices import DeviceError, Devices
from danlu.meta.kind import Object


def pod(uid: str, *asked: int) -> Object:
    containers = [
        {"name": f"c{n}", "resources": {"limits": {"nvidia.com/gpu": str(count)}} if count else {}}
        for n, count in enumerate(asked)
    ]
    return {"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}}


def seen(node: Devices, owner: Object, container: int = 0) -> str:
    return node.assign(owner, owner["spec"]["containers"][container]).env["NVIDIA_VISIBLE_DEVICES"]


def test_gpus_go_to_one_container_each_and_come_back(tmp_path: Path) -> None:
    node = Devices(str(tmp_path), devices.discover(fake=3))
    assert node.capacity == {"nvidia.com/gpu": "3"}
    one, two = pod("one", 1, 1), pod("two", 2)
    assert seen(node, one) == "GPU-fake-0"
    assert seen(node, one, 1) == "GPU-fake-1"
    assert seen(node, one) == "GPU-fake-0"
    with pytest.raises(DeviceError, match="Requested: 2, Available: 1"):
        seen(node, two)
    node.release("one")
    assert seen(node, two) == "GPU-fake-0,GPU-fake-1"


def test_who_asks_for_none_sees_none(tmp_path: Path) -> None:
    node = Devices(str(tmp_path), [])
    owner = pod("p", 0)
    assert node.assign(owner, owner["spec"]["containers"][0]).env["CUDA_VISIBLE_DEVICES"] == ""
    assert node.capacity == {}


def test_assignments_survive_a_restart(tmp_path: Path) -> None:
    owner = pod("p", 1)
    Devices(str(tmp_path), devices.discover(fake=2)).assign(owner, owner["spec"]["containers"][0])
    again = Devices(str(tmp_path), devices.discover(fake=2))
    again.restore(["p", "unknown"])
    assert seen(again, pod("q", 1)) == "GPU-fake-1"
    assert seen(again, owner) == "GPU-fake-0"


def test_nvidia_smi_output() -> None:
    text = "0, GPU-1a2b, NVIDIA H200, 143771\n1, GPU-3c4d, NVIDIA H200, [N/A]\n"
    assert [(g.index, g.uuid, g.product, g.memory_mib) for g in devices.parse_nvidia_smi(text)] == [
        (0, "GPU-1a2b", "NVIDIA H200", 143771),
        (1, "GPU-3c4d", "NVIDIA H200", 0),
    ]
