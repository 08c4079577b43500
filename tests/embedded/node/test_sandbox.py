"""What a process sees inside its sandbox, as root and as an ordinary user."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.embedded.node.pressure.cleanup import remove_tree
from danlu.embedded.node.sandbox import degraded, detection, kernel, namespaces, privileges
from danlu.embedded.node.sandbox.box import BindMount, Sandbox

NOBODY = 65534
PR_SET_DUMPABLE = 4
Inside = Callable[[], Any]


def in_child(work: Inside, *, as_nobody: bool = False) -> Any:
    """Runs `work` in a fork (which has one thread, as namespaces want) and answers what it returned."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            if as_nobody:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
            answer: object = work()
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def modes() -> list[str]:
    if os.geteuid() != 0:
        return [detection.capabilities().mode]
    found = in_child(lambda: detection.detect().mode)
    ordinary = in_child(lambda: detection.detect().mode, as_nobody=True)
    return list(dict.fromkeys([found, ordinary]))


MODES = [mode for mode in modes() if mode != "none"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where an ordinary user may write (pytest's own folders belong to its user alone)."""
    with tempfile.TemporaryDirectory(prefix="danlu-test-") as name:
        os.chmod(name, 0o777)
        yield Path(name)


def test_trying_out_what_can_be_had_leaves_nothing(folder: Path) -> None:
    def tried() -> list[str]:
        tempfile.tempdir = str(folder)
        detection.detect()
        return os.listdir(folder)

    assert in_child(tried, as_nobody=os.geteuid() == 0) == []


def test_folders_that_nobody_may_open_are_removed_and_links_are_not_followed(folder: Path) -> None:
    def removed() -> list[str]:
        other, layer = folder / "other", folder / "layer"
        (layer / "work/deeper").mkdir(parents=True)
        other.mkdir(0o755)
        (layer / "link").symlink_to(other)
        for path in (layer / "work/deeper", layer / "work"):
            path.chmod(0)
        remove_tree(layer)
        return [f"{path.name} {path.stat().st_mode & 0o777:o}" for path in folder.iterdir()]

    assert in_child(removed, as_nobody=os.geteuid() == 0) == ["other 755"]


def box(mode: str, folder: Path, mounts: list[BindMount], **more: Any) -> Sandbox:
    root = folder / "root"
    root.mkdir(exist_ok=True)
    root.chmod(0o777)
    made: Any = {"mode": mode, "root": str(root), "hostname": "pod-1", "mounts": mounts, "cwd": "/", **more}
    return made  # type: ignore[no-any-return]


def enter_and(mode: str, made: Sandbox, work: Inside) -> Any:
    def inside() -> Any:
        namespaces.enter(made)
        privileges.drop(made)
        return work()

    return in_child(inside, as_nobody=mode == "user" and os.geteuid() == 0)


def bind(source: Path, target: str, *, read_only: bool = False) -> BindMount:
    return {"source": str(source), "target": target, "read_only": read_only, "is_file": source.is_file()}


def volume(folder: Path, name: str = "volume") -> Path:
    made = folder / name
    made.mkdir()
    made.chmod(0o777)
    (made / "file").write_text(name)
    return made


pytestmark = pytest.mark.skipif(not MODES, reason="no namespaces on this machine")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "target",
    ["/data", "/workspace/data", "/t9k/mnt", "/mnt/x", "/usr/share/danlu-test", "/etc/danlu-test", "/etc/a/b/c",
     "/var/run/secrets/x", "/root/.cache", "/tmp/inner", "/bin/danlu-test"],
)  # fmt: skip
def test_a_volume_is_at_its_path(mode: str, target: str, folder: Path) -> None:
    source = volume(folder)

    def inside() -> Any:
        Path(target, "written").write_text("by the container")
        return Path(target, "file").read_text()

    assert enter_and(mode, box(mode, folder, [bind(source, target)]), inside) == "volume"
    assert (source / "written").read_text() == "by the container"


@pytest.mark.parametrize("mode", MODES)
def test_single_files_and_nested_volumes(mode: str, folder: Path) -> None:
    outer, inner = volume(folder, "outer"), volume(folder, "inner")
    mounts = [
        bind(inner, "/w/outer/inner"),
        bind(outer, "/w/outer"),
        bind(inner / "file", "/etc/hosts"),
        bind(outer / "file", "/usr/lib/made/up.conf"),
    ]

    def inside() -> Any:
        paths = ("/w/outer/file", "/w/outer/inner/file", "/etc/hosts", "/usr/lib/made/up.conf")
        return [Path(path).read_text() for path in paths]

    assert enter_and(mode, box(mode, folder, mounts), inside) == ["outer", "inner", "inner", "outer"]


@pytest.mark.parametrize("mode", MODES)
def test_what_may_not_be_written(mode: str, folder: Path) -> None:
    def refused(path: str) -> bool:
        try:
            Path(path).write_text("x")
        except OSError:
            return True
        return False

    made = box(mode, folder, [bind(volume(folder), "/data", read_only=True)])
    answer = enter_and(mode, made, lambda: [refused("/data/x"), refused("/usr/x"), refused("/etc/x"), refused("/new")])
    assert answer == [True, True, True, False]


@pytest.mark.parametrize("mode", MODES)
def test_own_name_own_folders_and_no_way_to_the_host(mode: str, folder: Path) -> None:
    def inside() -> Any:
        Path("/tmp/x").write_text("x")
        Path("/dev/shm/x").write_text("x")
        Path("/dev/null").write_text("x")
        return {
            "name": socket.gethostname(),
            "tmp": os.listdir("/tmp"),
            "root": os.listdir("/root"),
            "home": os.listdir("/home"),
            "host": os.path.exists(str(folder)),
            "uid": os.getuid(),
            "pts": os.path.exists("/dev/pts/ptmx"),
        }

    assert enter_and(mode, box(mode, folder, []), inside) == {
        "name": "pod-1", "tmp": ["x"], "root": [], "home": [], "host": False, "uid": 0, "pts": True,
    }  # fmt: skip
    assert socket.gethostname() != "pod-1"


@pytest.mark.parametrize("mode", MODES)
def test_another_user_and_no_capabilities(mode: str, folder: Path) -> None:
    made = box(mode, folder, [], uid=1000, gid=2000, drop_capabilities=["ALL"], no_new_privs=True)

    def inside() -> Any:
        lines = Path("/proc/self/status").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return [os.getuid(), os.getgid(), int(facts["CapBnd"], 16), facts["NoNewPrivs"].strip()]

    assert enter_and(mode, made, inside) == [1000, 2000, 0, "1"]


@pytest.mark.parametrize("mode", MODES)
def test_default_capabilities_are_a_container_runtimes(mode: str, folder: Path) -> None:
    def inside() -> Any:
        return next(
            int(line.split()[1], 16) for line in Path("/proc/self/status").read_text().splitlines() if "CapBnd" in line
        )

    assert enter_and(mode, box(mode, folder, []), inside) == 0xA80425FB


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_source_is_told(mode: str, folder: Path) -> None:
    mounts: list[BindMount] = [{"source": "/nowhere", "target": "/x", "read_only": False, "is_file": False}]
    answer = enter_and(mode, box(mode, folder, mounts), lambda: "in")
    assert answer["error"].startswith('SandboxError: error mounting "/nowhere" to rootfs at "/x"')


@pytest.mark.parametrize("mode", MODES)
def test_without_overlays_missing_mount_points_are_made_by_binds(
    mode: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kernel.mount

    def refuse_overlays(source: Any, target: str, kind: Any, flags: int, data: Any = None) -> None:
        if kind == "overlay":
            raise OSError(1, "not permitted")
        real(source, target, kind, flags, data)

    monkeypatch.setattr(kernel, "mount", refuse_overlays)
    made = box(mode, folder, [bind(volume(folder), "/etc/danlu-test/deep")])
    answer = enter_and(
        mode, made, lambda: [Path("/etc/danlu-test/deep/file").read_text(), os.path.exists("/etc/passwd")]
    )
    assert answer == ["volume", True]


def test_degraded_a_plain_process_with_links(folder: Path) -> None:
    source = volume(folder)
    target = str(folder / "made" / "link")
    made = box("none", folder, [bind(source, target)], cwd="/no/such/folder")

    def inside() -> Any:
        namespaces.enter(made)
        return [Path(target, "file").read_text(), os.getcwd()]

    assert in_child(inside) == ["volume", str(folder / "root" / "no/such/folder")]
    degraded.remove_links(made)
    assert not os.path.lexists(target)


def test_degraded_what_is_there_already_is_left_alone(folder: Path) -> None:
    taken = folder / "taken"
    taken.mkdir()
    made = box("none", folder, [bind(volume(folder), str(taken)), bind(volume(folder, "v2"), "/etc/danlu-test")])
    in_child(lambda: namespaces.enter(made))
    degraded.remove_links(made)
    assert os.listdir(taken) == []
    assert not os.path.lexists("/etc/danlu-test")
