"""From image names to environments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from danlu.embedded.node.imagesource import ImageError, repository
from danlu.environments import catalogue as catalogues
from danlu.environments.catalogue import Catalogue, spellings


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("busybox", "busybox"),
        ("busybox:1.36", "busybox"),
        ("localhost:5000/a/b:c", "localhost:5000/a/b"),
        ("a/b@sha256:00", "a/b"),
    ],
)
def test_repository(name: str, expected: str) -> None:
    assert repository(name) == expected


def test_spellings_leave_the_registry_out() -> None:
    assert spellings("nvcr.io/nvidia/k8s-device-plugin:v0.14.0")[2:] == [
        "nvidia/k8s-device-plugin",
        "k8s-device-plugin",
    ]


@pytest.mark.parametrize(
    ("name", "cmd"),
    [
        ("python:3.11-slim", ("python3",)),
        ("docker.io/library/busybox:latest", ("/bin/sh",)),
        ("ubuntu", ("/bin/bash",)),
    ],
)
def test_known_images(tmp_path: Path, name: str, cmd: tuple[str, ...]) -> None:
    image = Catalogue(tmp_path).resolve(name)
    assert image.known
    assert image.cmd == cmd
    assert not image.note


@pytest.mark.parametrize(
    "name",
    ["nvcr.io/nvidia/k8s-device-plugin:v0.14.0", "nvidia/dcgm-exporter:3.1.6-3.1.0", "registry.k8s.io/pause:3.9"],
)
def test_stand_ins_have_a_command(tmp_path: Path, name: str) -> None:
    image = Catalogue(tmp_path, strict=True).resolve(name)
    assert image.entrypoint or image.cmd


def test_an_unknown_image_runs_in_the_default_environment_and_says_so(tmp_path: Path) -> None:
    image = Catalogue(tmp_path).resolve("example.com/my/thing:1")
    assert not image.known
    assert "not in the catalogue" in image.note
    assert image.env["PATH"].startswith(f"{sys.prefix}/bin:")


def test_strict_refuses_the_unknown(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="failed to resolve image"):
        Catalogue(tmp_path, strict=True).resolve("example.com/my/thing:1")


def test_an_environment_that_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    image = Catalogue(tmp_path).resolve("tensorflow/tensorflow:2.16.1")
    assert "danlu images build tensorflow" in image.note
    assert image.env["TF_USE_LEGACY_KERAS"] == "1"
    with pytest.raises(ImageError, match="danlu images build"):
        Catalogue(tmp_path, strict=True).resolve("tensorflow/tensorflow:2.16.1")


def test_the_users_catalogue_comes_first_and_is_read_again(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    assert catalogue.resolve("busybox").workdir == "/"
    (tmp_path / "images.yaml").write_text("images: [{match: [busybox], workdir: /mine, env: {A: 1}, cmd: [x]}]")
    image = catalogue.resolve("busybox:1")
    assert (image.workdir, image.cmd, image.env["A"]) == ("/mine", ("x",), "1")


@pytest.mark.parametrize("variable", ["DANLU_CACHE", "XDG_CACHE_HOME"])
def test_environments_are_built_where_a_linked_cache_really_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Programs have the path of their Python in the first line, and no pod has the link."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    for name in ("DANLU_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    monkeypatch.setattr(catalogues, "SHARED_CACHE", tmp_path / "none")
    folder = Catalogue(tmp_path).environments()["torch"].folder
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "disk")
    assert catalogues.data_folder().is_relative_to(tmp_path / "disk")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DANLU_CACHE", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/danlu").symlink_to(tmp_path / "disk")  # the folder itself, as where a disk is small
    folder = Catalogue(tmp_path).environments()["torch"].folder
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "disk")


@pytest.mark.parametrize(
    ("name", "namespace", "wanted"),
    [
        ("python:3.11", "default", "image"),
        ("docker.io/library/python", "default", "image"),
        ("busybox", "ci-7", "image"),
        ("redis:7", "default", "environment"),
        ("redis:7", "ci-7", "image"),
        ("busybox", "default", ""),
    ],
)
def test_which_way_is_preferred(tmp_path: Path, name: str, namespace: str, wanted: str) -> None:
    (tmp_path / "images.yaml").write_text(
        "prefer: [{image: [python], use: image}, {namespace: ['ci-*'], use: image}, {image: redis, use: environment}]"
    )
    assert Catalogue(tmp_path).preference(name, namespace) == wanted


@pytest.mark.parametrize("rules", ["{image: x}", "[x]", "[{image: x, use: neither}]"])
def test_rules_that_are_none_are_refused(tmp_path: Path, rules: str) -> None:
    (tmp_path / "images.yaml").write_text(f"prefer: {rules}")
    with pytest.raises(ImageError, match="has to be a list of rules"):
        Catalogue(tmp_path).preference("x", "default")


@pytest.mark.parametrize(
    ("tag", "asked"),
    [
        ("2.7-slim", "2.7"),
        ("99", "99"),
        (".".join(map(str, sys.version_info[:2])), ""),
        (f"{sys.version_info[0]}-bookworm", ""),
        ("v1beta1-45c5727", ""),
        ("latest", ""),
    ],
)
def test_another_version_is_told_with_both(tmp_path: Path, tag: str, asked: str) -> None:
    image = Catalogue(tmp_path).resolve(f"python:{tag}")
    assert not image.note
    if asked:
        assert f"asks for python {asked}" in image.differs
        assert f"has python {sys.version_info[0]}." in image.differs
    else:
        assert not image.differs


def test_a_name_that_only_looks_like_one_has_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues.Environment, "is_built", True)
    guessed = Catalogue(tmp_path).resolve("registry.example.com/me/my-pytorch-train:v1")
    assert guessed.environment == "torch"
    assert not guessed.known
    assert not guessed.cmd
    assert "its name suggests" in guessed.differs
    assert Catalogue(tmp_path).resolve("pytorch/pytorch:2.15.0").known
