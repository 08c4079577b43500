"""`danlu images`: archives in and out, a registry, and what is listed, as their user sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ociimages import LayerTar, MadeImage, digest_of
from tests.registry import TestRegistry

from danlu.cli.language import speaking
from danlu.cli.main import main

Said = tuple[int, str, str]
NAME = "example.com/tool:1"


@pytest.fixture
def images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*words: str) -> Said:
        name, *rest = words
        with pytest.raises(SystemExit) as ended:
            main(["images", name, "--data-dir", str(tmp_path / "data"), *rest])
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return run


def image() -> MadeImage:
    return MadeImage({"Cmd": ["run"], "Env": ["A=b"]}, [LayerTar().add("a", b"x").data()]).build()


def test_load_inspect_save_and_rm(tmp_path: Path, images: Callable[..., Said]) -> None:
    (tmp_path / "tool.tar").write_bytes(image().docker_archive(NAME))
    assert images("load", str(tmp_path / "tool.tar")) == (0, f"loaded {NAME}\n", "")
    _, told, _ = images("inspect", NAME)
    [about] = json.loads(told)
    assert (about["name"], about["config"]["Cmd"]) == (NAME, ["run"])
    _, listed, _ = images("list")
    assert f"{NAME}  itself, put here by hand" in listed
    assert images("save", NAME, "-o", str(tmp_path / "again.tar"))[0] == 0
    assert images("rm", NAME) == (0, f"removed image {NAME}\n", "")
    code, _, problem = images("inspect", NAME)
    assert (code, problem) == (
        1,
        f"danlu: there is no image {NAME} here; `danlu images` lists them, `danlu images pull {NAME}` fetches it\n",
    )
    assert images("load", str(tmp_path / "again.tar"))[1] == f"loaded {NAME}\n"


def test_bad_archives_are_told_in_one_line(tmp_path: Path, images: Callable[..., Said]) -> None:
    (tmp_path / "no.tar").write_bytes(b"nothing")
    hostile = MadeImage(layers=[LayerTar().add("../out").data()]).build()
    (tmp_path / "hostile.tar").write_bytes(hostile.docker_archive("example.com/hostile:1"))
    code, _, told = images("load", str(tmp_path / "no.tar"))
    assert code == 1
    assert told.startswith("danlu: it is not a tar archive")
    code, _, told = images("load", str(tmp_path / "hostile.tar"))
    assert code == 1
    assert "is refused: '../out' leads out of the image" in told
    code, _, told = images("load", str(tmp_path / "none.tar"))
    assert told == f"danlu: {tmp_path / 'none.tar'} cannot be read: No such file or directory\n"


def test_push_and_pull(tmp_path: Path, images: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "tool.tar").write_bytes(image().oci_layout(NAME))
    images("load", str(tmp_path / "tool.tar"))
    with TestRegistry(auth="bearer") as registry:
        name = f"{registry.host}/team/tool:1"
        code, _, told = images("push", NAME, name)
        assert code == 1
        assert "401" in told
        assert "docker login" in told
        login = {"auths": {registry.host: {"username": "me", "password": "secret"}}}
        (tmp_path / "config.json").write_text(json.dumps(login))
        digest = image().digest
        assert images("push", NAME, name)[1] == f"pushed {name}: {digest}\n"
        assert registry.manifests["team/tool", "1"] == image().blobs[digest]
        assert images("pull", name)[1] == f"pulled {name}: {digest}\n"
        code, _, told = images("pull", f"{registry.host}/team/none:1")
        assert code == 1
        assert "manifest unknown" in told
        with speaking("zh"):
            _, _, told = images("pull", f"{registry.host}/team/none:1")
        assert told.startswith("danlu: 无法拉取镜像")
    assert digest_of(image().blobs[digest]) == digest


def test_build_on_an_environment(tmp_path: Path, images: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the base image cannot be had: what is built has layers, and stays here."""
    monkeypatch.setenv("DANLU_PULL", "never")
    (tmp_path / "main.py").write_text("print('hello')")
    (tmp_path / "Dockerfile").write_text('FROM python:3.12\nCOPY main.py /app/\nCMD ["python3", "/app/main.py"]\n')
    code, told, notes = images("build", "-t", "me/app:1", str(tmp_path))
    assert (code, told.endswith(", on the environment default of this machine\n")) == (0, True), notes
    assert 'the environment "default" of this machine stands in its place' in notes
    [about] = json.loads(images("inspect", "me/app:1")[1])
    assert about["config"]["Labels"]["danlu.dev/environment"] == "default"
    for words in (("save", "me/app:1", "-o", str(tmp_path / "x")), ("push", "me/app:1", "localhost:1/x:1")):
        code, _, problem = images(*words)
        assert code == 1
        assert 'is built on the environment "default" of this machine' in problem
    again = images("build", "-t", "me/app:1", str(tmp_path))
    assert (again[1], "line 2: COPY main.py /app/ (as before)" in again[2]) == (told, True)


def test_bad_builds_are_told_in_one_line(tmp_path: Path, images: Callable[..., Said]) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nFRY eggs\n")
    build = ("build", "-t", "x", str(tmp_path))
    problem = f"danlu: {tmp_path}/Dockerfile: line 2: FRY is not a Dockerfile instruction\n"
    assert images(*build) == (1, "", problem)
    assert images("build", "-t", "x", "/nowhere")[2].startswith("danlu: there is no /nowhere/Dockerfile")
    assert images(*build, "--secret", "src=x")[0] == 2
    assert images(*build, "--secret", "id=x,src=/nowhere")[2] == "danlu: --secret x: /nowhere cannot be read\n"
    assert images(*build, "--build-arg", "=x")[0] == 2
    (tmp_path / "Dockerfile").write_bytes(b"\xff\xfe")
    assert images(*build)[2] == f"danlu: {tmp_path}/Dockerfile cannot be read: it is not text\n"
