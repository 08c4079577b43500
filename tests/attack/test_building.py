"""Hostile contexts and Dockerfiles: a build reads its context and nothing else, and leaves nothing running."""

from __future__ import annotations

import os
import tarfile
import time
from pathlib import Path

import pytest
from tests.embedded.node.test_building import BASE, Builds, builds, running, sandbox
from tests.ociimages import LayerTar

from danlu.embedded.node.imagesource import ImageError

__all__ = ["builds", "running", "sandbox"]


@pytest.fixture
def outside(builds: Builds) -> Path:
    path = builds.context.parent / "outside"
    path.mkdir()
    (path / "private").write_text("private")
    return path


@pytest.mark.parametrize(
    "source", ["../outside/private", "/../outside/private", "link", "l*k", "door/private", "up/private"]
)
@pytest.mark.parametrize("word", ["COPY", "ADD"])
def test_nothing_is_taken_from_outside_of_the_context(builds: Builds, outside: Path, source: str, word: str) -> None:
    (builds.context / "link").symlink_to(outside / "private")
    (builds.context / "door").symlink_to(outside)
    (builds.context / "up").symlink_to("../outside")
    with pytest.raises(ImageError, match="leads out of the context"):
        builds(f"FROM scratch\n{word} {source} /x\n")


def test_links_in_folders_are_copied_and_not_followed(builds: Builds, outside: Path) -> None:
    (builds.context / "d").mkdir()
    (builds.context / "d/door").symlink_to(outside)
    files = builds.files("FROM scratch\nCOPY d /d\n")
    assert files["d/door"].issym()
    assert not any("private" in name for name in files)


def test_what_is_ignored_cannot_be_reached(builds: Builds) -> None:
    builds.file("secret/key")
    builds.file("kept")
    (builds.context / "alias").symlink_to("secret/key")
    builds.file(".dockerignore", "secret\n")
    assert {*builds.files("FROM scratch\nCOPY . /\n")} == {"kept", "alias", ".dockerignore"}
    for source in ("secret/key", "alias", "secret", "./kept/../secret/key", "s*/key"):
        with pytest.raises(ImageError, match="line 2"):
            builds(f"FROM scratch\nCOPY {source} /x\n")


def test_pipes_and_sockets_do_not_hold_up_a_build(builds: Builds) -> None:
    os.mkfifo(builds.context / "pipe")
    builds.file("a")
    assert "a" in builds.files("FROM scratch\nCOPY . /\n")


def test_paths_of_another_stage_stay_in_it(builds: Builds, outside: Path) -> None:
    layer = LayerTar().link("door", str(outside)).link("up", "../../../../../../.." + str(outside)).add("f", b"x")
    builds.load(_image(layer.data()), "example.com/hostile:1")
    for source in (f"/../..{outside}/private", f"{outside}/private", "/door/private", "/up/private"):
        with pytest.raises(ImageError, match="is not in example"):
            builds(f"FROM scratch\nCOPY --from=example.com/hostile:1 {source} /x\n")


def _image(layer: bytes):  # type: ignore[no-untyped-def]
    from tests.ociimages import MadeImage

    return MadeImage({}, [layer])


def test_targets_that_lead_out_stay_in_the_image(builds: Builds, outside: Path) -> None:
    builds.load(_image(LayerTar().link("door", str(outside)).data()), "example.com/hostile:1")
    builds.file("private", "changed")
    files = builds.files("FROM example.com/hostile:1\nCOPY private /door/private\nCOPY private /../../x\n")
    assert (str(outside / "private").lstrip("/")) in files
    assert "x" in files
    assert (outside / "private").read_text() == "private"


def test_an_archive_that_leads_out_is_refused(builds: Builds, outside: Path) -> None:
    (builds.context / "a.tar").write_bytes(LayerTar().add("../../outside/private", b"changed").data())
    with pytest.raises(ImageError, match="leads out of the image"):
        builds("FROM scratch\nADD a.tar /\n")
    assert (outside / "private").read_text() == "private"


def test_a_step_leaves_no_process_behind(running: Builds) -> None:
    mark = f"31{os.getpid() % 10000:04d}"
    running(f"FROM {BASE}\nRUN (sleep {mark} &) ; (sh -c 'sleep {mark} & sleep {mark}' &) ; echo done\n")
    until = time.monotonic() + 10
    while _runs(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(mark)
    assert running.printed == b"done\n"


def _runs(mark: str) -> bool:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"sleep\0{mark}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def test_a_step_cannot_write_on_the_machine(running: Builds, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    running(f"FROM {BASE}\nRUN mkdir -p {tmp_path}; echo changed > {victim}; cat {victim}; chown 7:7 /etc || true\n")
    assert victim.read_text() == "untouched"
    assert b"changed" in running.printed


def test_a_secret_is_in_no_layer(running: Builds, tmp_path: Path) -> None:
    secret = tmp_path / "s"
    secret.write_text("hush-hush")
    text = (
        f"FROM {BASE}\nRUN --mount=type=secret,id=s,env=TOKEN --mount=type=secret,id=s ls /run/secrets; echo $TOKEN\n"
    )
    built = running(text, secrets={"s": secret})
    assert b"hush-hush" in running.printed
    for blob, _ in running.image(built).layers:
        with tarfile.open(running.store.blob(blob)) as layer:
            assert not any("secrets" in name for name in layer.getnames())
    kept = [path for path in running.store.root.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()]
    assert not kept
