"""The tree of an image, as root, as an ordinary user, and where the kernel has no overlay."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.embedded.node.test_sandbox import MODES, bind, box, enter_and, folder, in_child, volume
from tests.ociimages import LayerTar

from danlu.embedded.node.images import unpacking
from danlu.embedded.node.sandbox import kernel

__all__ = ["folder"]
pytestmark = pytest.mark.skipif(not MODES, reason="no namespaces on this machine")
WAYS = ("overlay", "copied")


def lower() -> bytes:
    layer = LayerTar().folder("data").add("data/old", b"1").add("data/kept", b"2").folder("logs").add("logs/a", b"3")
    layer.folder("closed", 0o700).add("closed/inner", b"4").add("was-a-file", b"5").link("run", "/var/elsewhere")
    return layer.folder("var").folder("var/elsewhere").data()


def upper() -> bytes:
    layer = LayerTar().add("data/.wh.old").folder("logs").add("logs/.wh..wh..opq").add("logs/b", b"6")
    layer.add("odd", b"7", uid=1234, gid=70_000, mode=0o4755).hard_link("same", "odd").folder("was-a-file")
    return layer.add("was-a-file/inner", b"8").add(".wh.never-there").data()


def unpacked(folder: Path, mode: str) -> list[str]:
    """By whoever will run it; the topmost first."""

    def work() -> list[str]:
        found: list[str] = []
        for number, data in enumerate((lower(), upper())):
            blob, made = folder / f"{number}.tar", folder / f"layer-{number}"
            blob.write_bytes(data)
            made.mkdir()
            unpacking.unpack(str(blob), str(made), unpacking.Bounds(1 << 20, 100, 0))
            found.append(str(made))
        return found

    found = in_child(work, as_nobody=mode == "user" and os.geteuid() == 0)
    assert "error" not in found, found
    return [str(path) for path in reversed(found)]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "copied":
        mount = kernel.mount

        def without_overlay(source: str | None, target: str, kind: str | None, *more: Any) -> None:
            if kind == "overlay":
                raise OSError(22, "no overlay")
            mount(source, target, kind, *more)

        monkeypatch.setattr(kernel, "mount", without_overlay)
    return str(request.param)


@pytest.mark.parametrize("mode", MODES)
def test_layers_whiteouts_and_what_is_written(mode: str, way: str, folder: Path) -> None:
    layers = unpacked(folder, mode)

    def inside() -> Any:
        Path("/data/kept").write_text("changed")
        Path("/data/new").write_text("new")
        os.unlink("/logs/b")
        return [
            sorted(os.listdir("/data")), os.listdir("/logs"), Path("/data/kept").read_text(),
            Path("/closed/inner").read_text(), Path("/was-a-file/inner").read_text(), Path("/same").read_text(),
            os.stat("/same").st_ino == os.stat("/odd").st_ino, stat.S_IMODE(os.stat("/odd").st_mode),
            os.stat("/odd").st_uid,
        ]  # fmt: skip

    said = enter_and(mode, box(mode, folder, [], layers=layers), inside)
    owner = 1234 if mode == "root" else 0  # where there is one user, all is root's
    assert said == [["kept", "new"], [], "changed", "4", "8", "7", True, 0o4755, owner]
    assert (folder / "layer-0/tree/data/kept").read_text() == "2", "the image is as it was"
    assert (folder / "layer-1/tree/logs/b").exists()


@pytest.mark.parametrize("mode", MODES)
def test_volumes_lie_where_links_of_the_image_lead(mode: str, way: str, folder: Path) -> None:
    layers, source = unpacked(folder, mode), volume(folder)
    mounts = [bind(source, "/run/secrets/a"), bind(source / "file", "/etc/one")]

    def inside() -> Any:
        return [Path(path).read_text() for path in ("/run/secrets/a/file", "/var/elsewhere/secrets/a/file", "/etc/one")]

    assert enter_and(mode, box(mode, folder, mounts, layers=layers), inside) == ["volume"] * 3


@pytest.mark.parametrize("mode", MODES)
def test_the_machines_own_folders_are_not_in_it(mode: str, way: str, folder: Path) -> None:
    layers = unpacked(folder, mode)

    def inside() -> Any:
        return [sorted(set(os.listdir("/")) & {"usr", "home", "opt", "lib"}), sorted(os.listdir("/dev"))[:3]]

    names, devices = enter_and(mode, box(mode, folder, [], layers=layers), inside)
    assert names == []
    assert devices, "/dev is made fresh"


@pytest.mark.parametrize("mode", MODES)
def test_a_user_of_the_image(mode: str, folder: Path) -> None:
    layers = unpacked(folder, mode)

    def inside() -> Any:
        return [os.getuid(), os.getgid()]

    made = box(mode, folder, [], layers=layers, uid=1234, gid=2345)
    assert enter_and(mode, made, inside) == [1234, 2345]
