"""The store of images: archives in and out, a registry's side of a push, and what goes when the disk runs short."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import pytest
from tests.ociimages import LayerTar, MadeImage
from tests.registry import TestRegistry

from danlu.embedded.node.images import archive, pusher, reference
from danlu.embedded.node.images.credentials import Credentials, RegistryKeyring
from danlu.embedded.node.images.imagemanager import LEAST_IDLE_S, ImageManager
from danlu.embedded.node.images.imagestore import ImageStore
from danlu.embedded.node.images.puller import Puller
from danlu.embedded.node.images.registrysettings import RegistrySettings
from danlu.embedded.node.images.ways import Ways
from danlu.embedded.node.imagesource import ImageError, MachineImages

NAME = "example.com/x:1"


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path)


def image(text: bytes = b"x") -> MadeImage:
    return MadeImage({"Cmd": ["x"]}, [LayerTar().add("shared").data(), LayerTar().add("a", text).data()]).build()


@pytest.mark.parametrize("form", ["docker_archive", "oci_layout"])
def test_what_was_loaded_is_saved_as_it_was(tmp_path: Path, store: ImageStore, form: str) -> None:
    [loaded] = archive.load(store, io.BytesIO(getattr(image(), form)(NAME)))
    assert loaded.name == NAME
    out = io.BytesIO()
    archive.save(store, [(NAME, store.image(loaded.digest))], out)
    for read in (io.BytesIO(out.getvalue()),):
        other = ImageStore(tmp_path / "other")
        [again] = archive.load(other, read)
        assert other.image(again.digest).config == store.image(loaded.digest).config
        assert len(other.unpack(other.image(again.digest))) == 2


def test_a_layout_may_be_a_folder(tmp_path: Path, store: ImageStore) -> None:
    with tarfile.open(fileobj=io.BytesIO(image().oci_layout(NAME))) as packed:
        packed.extractall(tmp_path / "layout", filter="data")
    [loaded] = archive.load(store, tmp_path / "layout")
    assert store.names()[NAME].digest == loaded.digest


@pytest.mark.parametrize("data", [b"", b"no archive", LayerTar().add("x").data()])
def test_what_is_no_archive_is_refused(store: ImageStore, data: bytes) -> None:
    with pytest.raises(ImageError, match=r"not a tar archive|neither manifest.json"):
        archive.load(store, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("redis", "docker.io/library/redis:latest"),
        ("me/tool:1", "docker.io/me/tool:1"),
        ("localhost/tool", "localhost/tool:latest"),
        ("127.0.0.1:5000/a/b:c", "127.0.0.1:5000/a/b:c"),
        (f"example.com/a@sha256:{'0' * 64}", f"example.com/a@sha256:{'0' * 64}"),
    ],
)
def test_names(name: str, canonical: str) -> None:
    assert str(reference.parse(name)) == canonical
    assert str(reference.parse(reference.parse(name).familiar)) == canonical


@pytest.mark.parametrize("name", ["", "A/b", "a b", "a:", "a@sha256:0", "../a", "a//b", "-a.com/b", "a:b:c/d:e!"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(reference.InvalidName, match="invalid reference format"):
        reference.parse(name)


@pytest.mark.parametrize("auth", ["", "basic", "bearer"])
async def test_what_was_pushed_can_be_pulled(tmp_path: Path, store: ImageStore, auth: str) -> None:
    [loaded] = archive.load(store, io.BytesIO(image().oci_layout(NAME)))
    with TestRegistry(auth=auth) as registry:
        to = reference.parse(f"{registry.host}/team/tool:1")
        ring = RegistryKeyring([(registry.host, Credentials("me", "secret"))] if auth else [])
        settings = RegistrySettings(tmp_path)
        for _ in range(2):
            await pusher.push(store, settings, store.image(loaded.digest), to, ring)
        assert len([one for one in registry.requests if one[0] == "POST" and "uploads" in one[1]]) <= 6
        assert await Puller(ImageStore(tmp_path / "other"), settings).pull(to, ring) == loaded.digest


def test_what_nobody_needs_goes_when_the_disk_runs_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = ImageManager(tmp_path, MachineImages())
    store = manager.store
    by_name = {}
    for name in ("idle", "runs", "kept"):
        [loaded] = archive.load(store, io.BytesIO(image(name.encode()).oci_layout(f"example.com/{name}:1")))
        by_name[name] = store.image(loaded.digest)
        store.unpack(by_name[name])
        if name != "kept":
            store.forget(f"example.com/{name}:1")
            store.name(f"example.com/{name}:1", loaded.digest, by_hand=False)
    manager.layers_in_use = lambda: [str(store.tree(diff)) for _, diff in by_name["runs"].layers]
    manager.remove_unused()
    assert len(store.names()) == 3, "what was asked for a moment ago is about to run"
    now = time.time()
    monkeypatch.setattr("danlu.embedded.node.images.imagemanager.time.time", lambda: now + 2 * LEAST_IDLE_S)
    with store.adding():
        manager.remove_unused()
        assert store.is_unpacked(by_name["idle"].layers[1][1]), "nothing is taken while somebody adds"
    manager.remove_unused()
    assert sorted(store.names()) == ["example.com/kept:1", "example.com/runs:1"]
    assert not store.is_unpacked(by_name["idle"].layers[1][1])
    for name in ("runs", "kept"):
        assert all(store.is_unpacked(diff) for _, diff in by_name[name].layers)
        assert store.image(by_name[name].digest)


def test_which_way_an_image_went_is_written_down_once(tmp_path: Path) -> None:
    ways = Ways(tmp_path)
    ways.went("a", environment="torch")
    stamp = (tmp_path / "ways.json").stat().st_mtime_ns
    ways.went("a", environment="torch")
    assert (tmp_path / "ways.json").stat().st_mtime_ns == stamp
    ways.went("a", image="sha256:0")
    assert Ways(tmp_path).read()["a"].image == "sha256:0"
