"""Hostile images: whatever a layer says, nothing lands outside the folder that it is unpacked into."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ociimages import LayerTar, MadeImage, digest_of

from danlu.embedded.node.images import archive, unionview, unpacking
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.imagesource import ImageError

BOUNDS = unpacking.Bounds(bytes=64 << 20, entries=1000, kept_free=0)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder beside the layer's, with a file that nobody may change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "victim").write_text("untouched")
    yield folder
    assert (folder / "victim").read_text() == "untouched"
    assert os.listdir(folder) == ["victim"]


def unpacked(tmp_path: Path, data: bytes, bounds: unpacking.Bounds = BOUNDS) -> tuple[Path, unpacking.Layer]:
    blob, folder = tmp_path / "blob", tmp_path / "layer"
    blob.write_bytes(data)
    folder.mkdir()
    return folder / unpacking.TREE, unpacking.unpack(str(blob), str(folder), bounds)


@pytest.mark.parametrize(
    "name", ["../outside/victim", "/../outside/victim", "a/../../outside/victim", "./../outside/victim", ".."]
)
def test_names_that_lead_out_are_refused(tmp_path: Path, outside: Path, name: str) -> None:
    with pytest.raises(unpacking.BadLayer, match="leads out of the image"):
        unpacked(tmp_path, LayerTar().add(name, b"changed").data())


def test_absolute_names_lie_below_the_root(tmp_path: Path, outside: Path) -> None:
    tree, _ = unpacked(tmp_path, LayerTar().add(f"{outside}/victim", b"changed").data())
    assert (tree / str(outside / "victim").lstrip("/")).read_text() == "changed"


@pytest.mark.parametrize("target", ["{outside}", "../outside", "../../../../../../../../..{outside}"])
def test_links_out_of_the_root_are_not_followed(tmp_path: Path, outside: Path, target: str) -> None:
    layer = LayerTar().link("door", target.format(outside=outside)).add("door/victim", b"changed")
    tree, _ = unpacked(tmp_path, layer.add("door/new", b"made").data())
    assert os.readlink(tree / "door") == target.format(outside=outside)
    assert list(tree.rglob("victim")), "it lies where the link leads inside the image"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(unpacking.BadLayer, match="too many links"):
        unpacked(tmp_path, LayerTar().link("a", "b").link("b", "a").add("a/x").data())


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path, outside: Path) -> None:
    layer = LayerTar().link("victim", str(outside / "victim")).add("victim", b"its own")
    tree, _ = unpacked(tmp_path, layer.data())
    assert (tree / "victim").read_text() == "its own"


def test_folders_over_links_do_not_change_what_those_lead_to(tmp_path: Path, outside: Path) -> None:
    mode = stat.S_IMODE(outside.stat().st_mode)
    tree, _ = unpacked(tmp_path, LayerTar().link("door", str(outside)).folder("door", 0o777).add("door/x").data())
    assert (tree / "door").is_dir()
    assert not (tree / "door").is_symlink()
    assert stat.S_IMODE(outside.stat().st_mode) == mode


@pytest.mark.parametrize("target", ["../outside/victim", "{outside}/victim"])
def test_hard_links_reach_nothing_outside(tmp_path: Path, outside: Path, target: str) -> None:
    with pytest.raises(unpacking.BadLayer, match=r"hard link|leads out"):
        unpacked(tmp_path, LayerTar().hard_link("mine", target.format(outside=outside)).data())


def test_a_hard_link_through_a_link_reaches_nothing_outside(tmp_path: Path, outside: Path) -> None:
    with pytest.raises(unpacking.BadLayer, match="hard link"):
        unpacked(tmp_path, LayerTar().link("door", str(outside)).hard_link("mine", "door/victim").data())


def test_device_files_are_left_out(tmp_path: Path) -> None:
    layer = LayerTar().add("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0)
    tree, told = unpacked(tmp_path, layer.add("mem", type=tarfile.CHRTYPE, devmajor=1, devminor=1).data())
    assert os.listdir(tree) == []
    assert told.left_out == ["disk", "mem"]


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "a/.wh..."])
def test_whiteouts_of_nothing_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(unpacking.BadLayer, match="hides nothing"):
        unpacked(tmp_path, LayerTar().folder("a").add(name).data())


def test_attributes_that_steer_an_overlay_are_not_taken(tmp_path: Path) -> None:
    steering = {f"SCHILY.xattr.{space}.overlay.redirect": "/etc" for space in ("user", "trusted")}
    tree, _ = unpacked(tmp_path, LayerTar().folder("a", pax_headers=steering).data())
    assert os.listxattr(tree / "a") == []


def bomb() -> bytes:
    return gzip.compress(LayerTar().add("zeros", bytes(80 << 20)).data(), 9)


def many() -> bytes:
    layer = LayerTar()
    for number in range(1001):
        layer.add(str(number))
    return layer.data()


def long_header() -> bytes:
    return LayerTar().add("a", pax_headers={"comment": "x" * (2 << 20)}).data()


def sparse() -> bytes:
    return LayerTar().add("a", type=tarfile.GNUTYPE_SPARSE).data()


@pytest.mark.parametrize(
    ("make", "why"), [(bomb, "more than 64 MiB"), (many, "more than 1000 entries"), (long_header, "header"),
                      (sparse, "sparse")]
)  # fmt: skip
def test_bombs_are_bounded(tmp_path: Path, make: Callable[[], bytes], why: str) -> None:
    with pytest.raises(unpacking.BadLayer, match=why):
        unpacked(tmp_path, make())


def test_a_layer_that_is_cut_or_no_tar_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(LayerTar().add("a", os.urandom(100_000)).data())
    with pytest.raises(unpacking.BadLayer, match=r"ends too early|cannot be read"):
        unpacked(tmp_path, whole[: len(whole) // 2])


def test_a_layer_that_is_not_what_its_configuration_says_is_refused(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    wrong = {"type": "layers", "diff_ids": [digest_of(b"something else")]}
    image = MadeImage(layers=[LayerTar().add("a").data()]).build(rootfs=wrong)
    loaded = archive.load(store, io.BytesIO(image.oci_layout("example.com/x:1")))
    with pytest.raises(ImageError, match="is refused: it unpacks to"):
        store.unpack(store.image(loaded[0].digest))
    assert os.listdir(store.root / "layers") == []


def test_a_blob_that_was_changed_is_refused(tmp_path: Path) -> None:
    image = MadeImage(layers=[LayerTar().add("a").data()]).build()
    layer = str(image.manifest["layers"][0]["digest"])
    image.blobs[layer] = b"something else"
    with pytest.raises(ImageError, match="changed or cut"):
        archive.load(ImageStore(tmp_path), io.BytesIO(image.oci_layout("example.com/x:1")))
    assert ImageStore(tmp_path).names() == {}


@pytest.mark.parametrize("digest", ["sha256:../../../../etc/passwd", "sha256:" + "A" * 64, "../x", "md5:00"])
def test_digests_are_no_paths(tmp_path: Path, digest: str) -> None:
    with pytest.raises(ImageError, match="not a digest"):
        ImageStore(tmp_path).blob(digest)


def test_reading_an_account_file_follows_no_link_out(tmp_path: Path, outside: Path) -> None:
    """Also where a lower layer has a link in the place of an upper one's folder."""
    store = ImageStore(tmp_path)
    doors = LayerTar().link("etc", str(outside)).link("door", f"{outside}/victim").data()
    image = MadeImage(layers=[doors, LayerTar().folder("etc").add("etc/other", b"o").data()]).build()
    loaded = archive.load(store, io.BytesIO(image.oci_layout("example.com/x:1")))
    layers = store.unpack(store.image(loaded[0].digest))
    assert unionview.read(layers, "/etc/victim", 100) == b""
    assert unionview.read(layers[:1], "/etc/victim", 100) == b""
    assert unionview.read(layers, "/door", 100) == b""
    assert unionview.read(layers, "/etc/other", 100) == b"o"
