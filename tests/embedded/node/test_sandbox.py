"""What a process sees inside its sandbox, as root and as an ordinary user."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.embedded.node.pressure.cleanup import remove_tree
from danlu.embedded.node.sandbox import degraded, detection, inroot, kernel, namespaces, privileges, seccomp
from danlu.embedded.node.sandbox.box import BindMount, Sandbox

NOBODY = 65534
PR_SET_DUMPABLE = 4
Inside = Callable[[], Any]


def in_child(work: Inside, *, as_nobody: bool = False, fork: Callable[[], int] = os.fork) -> Any:
    """Runs `work` in a fork (which has one thread, as namespaces want) and answers what it returned."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = fork()
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
    made: Any = {
        "mode": mode,
        "root": str(root),
        "hostname": "pod-1",
        "mounts": mounts,
        "cwd": "/",
        "own_pids": True,
        "own_ipc": True,
        **more,
    }
    return made  # type: ignore[no-any-return]


def enter_and(mode: str, made: Sandbox, work: Inside) -> Any:
    """In a child of a child: the one becomes who it is to be, the other is born in the namespaces."""

    def outside() -> Any:
        place = namespaces.NewNamespaces(made)

        def inside() -> Any:
            place.enter()
            if made.get("default_seccomp"):
                seccomp.load_default(privileges.kept(made))
            privileges.drop(made)
            return work()

        return in_child(inside, fork=place.fork)

    return in_child(outside, as_nobody=mode == "user" and os.geteuid() == 0)


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

    over_the_machine = 1 << 13 | 1 << 27 if mode == "root" else 0  # NET_RAW and MKNOD
    assert enter_and(mode, box(mode, folder, []), inside) == 0xA80425FB & ~over_the_machine


def errors_of(*calls: Callable[[], Any]) -> list[str]:
    """The name of each call's error; "" where it has none."""
    found = []
    for call in calls:
        try:
            call()
            found.append("")
        except OSError as error:
            found.append(errno.errorcode[error.errno or 0])
    return found


def system_call(number: int, *arguments: int) -> None:
    libc = kernel.libc()
    if libc.syscall(number, *(ctypes.c_long(argument) for argument in arguments)) < 0:
        raise OSError(ctypes.get_errno(), "")


@pytest.mark.parametrize("mode", MODES)
def test_no_device_but_those_it_was_given(mode: str, folder: Path) -> None:
    data = volume(folder)
    if os.geteuid() == 0:
        os.mknod(data / "node", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.chmod(data / "node", 0o666)

    def node(path: str) -> list[str]:
        made = errors_of(lambda: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3)))
        return made if made[0] else made + errors_of(lambda: open(path).close())

    def inside() -> Any:
        made = [*node("/tmp/made"), *node("/dev/made"), *node("/data/made")]
        return [made, errors_of(lambda: open("/dev/null").close(), lambda: open("/data/node").close())]

    made, opened = enter_and(mode, box(mode, folder, [bind(data, "/data")], add_capabilities=["MKNOD"]), inside)
    assert made == (["", "EACCES"] * 3 if mode == "root" else ["EPERM"] * 3)
    assert opened == ["", "EACCES" if os.geteuid() == 0 else "ENOENT"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers below are x86-64's")
@pytest.mark.parametrize("mode", MODES)
def test_what_the_default_profile_refuses(mode: str, folder: Path) -> None:
    def inside() -> Any:
        subprocess.run(["true"], check=True)
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return errors_of(
            lambda: kernel.mount("tmpfs", "/mnt", "tmpfs", 0),
            lambda: system_call(272, kernel.CLONE_NEWUSER),  # unshare
            lambda: system_call(56, kernel.CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0),  # clone
            lambda: system_call(435, 0, 0),  # clone3
            lambda: system_call(250, 0, 0),  # keyctl
            lambda: system_call(323, 0),  # userfaultfd
            lambda: system_call(0x40000000 + 39),  # getpid of x32
            lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close(),
            lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close(),
        )

    refused = enter_and(mode, box(mode, folder, [], default_seccomp=True), inside)
    assert refused == ["EPERM", "EPERM", "EPERM", "ENOSYS", "EPERM", "EPERM", "ENOSYS", "EPERM", ""]
    made = box(mode, folder, [], default_seccomp=True, add_capabilities=["SYS_ADMIN"])
    mounted = lambda: errors_of(lambda: kernel.mount("tmpfs", "/mnt", "tmpfs", 0))  # noqa: E731
    assert enter_and(mode, made, mounted) == [""]


@pytest.mark.parametrize("mode", MODES)
def test_its_processes_queues_and_memory_are_its_own(mode: str, folder: Path) -> None:
    def inside() -> Any:
        segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
        return [os.getpid(), numbers, segments, Path("/proc/1/cmdline").read_bytes() != b""]

    assert enter_and(mode, box(mode, folder, []), inside) == [1, ["1"], [], True]


@pytest.mark.parametrize("mode", MODES)
def test_a_mount_path_does_not_lead_out(mode: str, folder: Path) -> None:
    data, outer = volume(folder), volume(folder, "outer")
    mounts = [bind(data, "x/../../danlu-made"), bind(data, "/../danlu-too")]

    def inside() -> Any:
        return [Path(path, "file").read_text() for path in ("/danlu-made", "/danlu-too")]

    assert enter_and(mode, box(mode, folder, mounts), inside) == ["volume", "volume"]
    before = sorted(os.listdir(folder))
    for number, link in enumerate((f"/dev/.danlu-host{folder}", "../" * 20 + str(folder), str(folder))):
        (outer / f"link{number}").symlink_to(link)
        mounts = [bind(outer, "/outer"), bind(data, f"/outer/link{number}/danlu-made")]
        enter_and(mode, box(mode, folder, mounts), lambda: "in")
        assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("mode", MODES)
def test_a_sub_path_that_became_a_link_does_not_lead_out(mode: str, folder: Path) -> None:
    data, secret = volume(folder), volume(folder, "secret")
    (data / "sub").mkdir()
    mount: BindMount = {**bind(data / "sub", "/sub"), "within": str(data)}
    (data / "sub" / "file").write_text("mine")
    assert enter_and(mode, box(mode, folder, [mount]), lambda: Path("/sub/file").read_text()) == "mine"
    (data / "sub").rename(data / "before")
    (data / "sub").symlink_to(secret)
    assert (
        "error mounting" in enter_and(mode, box(mode, folder, [mount]), lambda: Path("/sub/file").read_text())["error"]
    )


@pytest.mark.parametrize("number", [inroot.SYS_OPENAT2, 99999], ids=["openat2", "walked"])
def test_paths_in_a_root(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inroot, "SYS_OPENAT2", number)
    (folder / "outside").write_text("outside")
    top = volume(folder, "top")
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").write_text("b")
    for name, to in (("up", "../../../../file"), ("whole", "/a/b"), ("loop", "loop"), ("out", f"{folder}/outside")):
        (top / "a" / name).symlink_to(to)
    root = os.open(top, os.O_PATH)

    def read(path: str) -> str:
        return Path(inroot.at(inroot.find(root, path))).read_text()

    paths = ("a/b/file", "/a/b/../b/file", "a/whole/file", "../../a/up", "a/whole/../../file")
    assert [read(path) for path in paths] == ["b", "b", "b", "top", "top"]
    assert errors_of(lambda: read("a/loop"), lambda: read("a/out"), lambda: read("a/none")) == [
        "ELOOP", "ENOENT", "ENOENT",
    ]  # fmt: skip
    inroot.make(root, "../new/deeper/file", True)
    assert (top / "new/deeper/file").read_bytes() == b""
    os.close(root)


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
        namespaces.NewNamespaces(made).enter()
        return [Path(target, "file").read_text(), os.getcwd()]

    assert in_child(inside) == ["volume", str(folder / "root" / "no/such/folder")]
    degraded.remove_links(made)
    assert not os.path.lexists(target)


def test_degraded_what_is_there_already_is_left_alone(folder: Path) -> None:
    taken = folder / "taken"
    taken.mkdir()
    made = box("none", folder, [bind(volume(folder), str(taken)), bind(volume(folder, "v2"), "/etc/danlu-test")])
    in_child(lambda: namespaces.NewNamespaces(made).enter())
    degraded.remove_links(made)
    assert os.listdir(taken) == []
    assert not os.path.lexists("/etc/danlu-test")
