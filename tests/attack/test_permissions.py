"""Another account of the same machine: it walks through everything that danlu keeps, and gets nowhere."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.running import ORDINARY, Danlu, ordinary_python

from danlu.embedded import permissions, private_files
from danlu.embedded.datadir import DataDirectory
from danlu.embedded.node.sandbox import wire
from danlu.embedded.node.sandbox.processes import connect
from danlu.embedded.node.volumes import memory_volumes
from danlu.embedded.storage import DataDirectoryError

INTRUDER = ORDINARY + 1
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")

# A pod that runs as somebody else (where danlu is root) and must be able to use every volume of its own.
POD = """
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {token: hidden}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  securityContext: {SECURITY}
  containers:
  - name: main
    image: python
    command: [sh, -c]
    args:
    - |
      set -e
      umask
      id -u
      cat /v/key/token
      cat /etc/hosts /etc/resolv.conf > /dev/null
      for d in memory scratch models; do echo x > /v/$d/secret; chmod 644 /v/$d/secret; done
      mkdir /tmp/mine
      echo x > /tmp/mine/secret
      echo usable
      exec sleep 1000
    volumeMounts:
    - {name: key, mountPath: /v/key}
    - {name: memory, mountPath: /v/memory}
    - {name: scratch, mountPath: /v/scratch}
    - {name: models, mountPath: /v/models}
  volumes:
  - {name: key, secret: {secretName: key}}
  - {name: memory, emptyDir: {medium: Memory}}
  - {name: scratch, emptyDir: {}}
  - {name: models, persistentVolumeClaim: {claimName: models}}
"""

# Runs as the intruder: everything that root found is tried in every way.
INTRUSION = """
import json, os, socket, stat, sys
done = []
def attempt(what, path, act):
    try:
        act()
    except OSError:
        return
    done.append(f"{what} {path}")
for path in json.load(sys.stdin):
    attempt("list", path, lambda: os.listdir(path))
    attempt("read", path, lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))
    attempt("write", path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)))
    attempt("create in", path, lambda: os.close(os.open(path + "/planted", os.O_CREAT | os.O_WRONLY)))
    attempt("rename", path, lambda: os.rename(path, path + "-taken"))
    attempt("remove", path, lambda: os.unlink(path))
    attempt("open up", path, lambda: os.chmod(path, 0o777))
    attempt("connect to", path, lambda: socket.socket(socket.AF_UNIX).connect(path))
def owner(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:  # it has ended meanwhile
        return None
for pid in filter(str.isdigit, os.listdir("/proc")):
    if owner(pid) == int(sys.argv[1]):
        attempt("read", f"/proc/{pid}/environ", lambda: open(f"/proc/{pid}/environ", "rb").read(1))
        attempt("list", f"/proc/{pid}/root", lambda: os.listdir(f"/proc/{pid}/root"))
        attempt("list", f"/proc/{pid}/cwd", lambda: os.listdir(f"/proc/{pid}/cwd"))
print(json.dumps(done))
"""


def below(*roots: Path) -> list[str]:
    found = [str(root) for root in roots]
    for root in roots:
        for at, folders, files in os.walk(root):
            found += [f"{at}/{name}" for name in (*folders, *files)]
    return found


def intrude(paths: list[str], victim: int) -> list[str]:
    """What another account could do with these."""
    done = subprocess.run(
        [ordinary_python(), "-c", INTRUSION, str(victim)], input=json.dumps(paths), capture_output=True, text=True,
        user=INTRUDER, group=INTRUDER, extra_groups=[], cwd="/", timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@needs_root
@pytest.mark.e2e
@pytest.mark.parametrize("owner", [0, ORDINARY], ids=["root", "an ordinary account"])
def test_another_account_gets_at_nothing(place: Path, need_kubectl: None, owner: int) -> None:
    place.chmod(0o755)
    danlu = Danlu(place, "--no-console", user=owner)
    danlu.data.mkdir(mode=0o755)  # it was there before, and open
    (danlu.data / "images.yaml").write_text("images: []\n")
    for path in (danlu.data, danlu.data / "images.yaml"):
        os.chown(path, owner, owner)
        path.chmod(0o755)
    before = set(os.listdir(memory_volumes.SHARED_MEMORY))
    try:
        danlu.up()
        danlu.kubectl("apply", "-f", "-", stdin=POD.replace("{SECURITY}", json.dumps(_security(owner))))
        danlu.wait("the pod to use its volumes", lambda: "usable" in danlu.kubectl("logs", "worker", check=False))
        said = danlu.kubectl("logs", "worker").split()
        assert said[:2] == ["0022", "1234"]  # as container runtimes have it, whatever danlu's own umask is
        memory = [Path(memory_volumes.SHARED_MEMORY, name) for name in set(os.listdir("/dev/shm")) - before]
        memory = [folder for folder in memory if folder.name.startswith("danlu")]
        paths = below(danlu.data, *memory)
        for wanted in ("ca.key", "store.db", "shim.sock", "kubeconfig", "token", "0.log", "secret", "spec.json"):
            assert any(path.endswith("/" + wanted) for path in paths), wanted
        assert any(path.startswith("/dev/shm/") and path.endswith("/memory/secret") for path in paths)
        assert intrude(paths, owner) == []
        assert_shim_hangs_up(danlu.data)
        danlu.kubectl("delete", "pod", "worker", "--wait")
        danlu.wait("its memory to be freed", lambda: not any(folder.exists() for folder in memory))
    finally:
        danlu.down()


# Runs as the intruder: what somebody else's shim answers, b"" when it hangs up.
ASKING_A_SHIM = """
import socket, sys
shim = socket.socket(socket.AF_UNIX)
shim.settimeout(30)
shim.connect(sys.argv[1])
try:
    shim.sendall(b'{"op":"watch"}\\n')
    print(shim.recv(100))
except ConnectionError:
    print(b"")
"""


def assert_shim_hangs_up(data: Path) -> None:
    """Folders that were closed are the first lock. With all of them open, the second one holds."""
    (shim,) = data.glob("pods/*/containers/main/*/shim.sock")
    on_the_way = [shim, *(folder for folder in shim.parents if folder.is_relative_to(data))]
    before = {path: mode(path) for path in on_the_way}
    for path in on_the_way:
        path.chmod(0o777)
    try:
        words = [ordinary_python(), "-c", ASKING_A_SHIM, str(shim)]
        done = subprocess.run(
            words, capture_output=True, text=True, user=INTRUDER, group=INTRUDER, extra_groups=[], cwd="/", timeout=60
        )
    finally:
        for path, bits in before.items():
            path.chmod(bits)
    assert (done.stdout, done.stderr) == ("b''\n", "")


def _security(owner: int) -> dict[str, int]:
    """Without root only the pod's own view can have another user."""
    return {"runAsUser": 1234, "runAsGroup": 1234} | ({"fsGroup": 2345} if owner == 0 else {})


# -- what was there before the start


@pytest.fixture
def place() -> Iterator[Path]:
    """Below /tmp itself, as somebody would choose it."""
    folder = Path(tempfile.mkdtemp(prefix="danlu-permissions-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_an_open_directory_is_closed_and_said_to_have_been_open(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = place / "data"
    for folder in ("pki", "pods/u1/volumes/v", "volumes/pv", "hosts"):
        (root / folder).mkdir(parents=True)
    for name in ("pki/ca.key", "kubeconfig", "store.db", "store.db-wal", "danlu.log", "pods/u1/volumes/v/f"):
        (root / name).write_text("x")
        (root / name).chmod(0o644)
    for folder in ("volumes/pv", "pods/u1/volumes/v", "pki", ""):
        (root / folder).chmod(0o777)
    with caplog.at_level(logging.WARNING):
        DataDirectory(root).prepare()
    for name in ("", "pki", "pods", "pods/u1", "volumes", "hosts"):
        assert mode(root / name) == 0o700, name
    for name in ("pki/ca.key", "kubeconfig", "store.db", "store.db-wal", "danlu.log"):
        assert mode(root / name) == 0o600, name
    assert mode(root / "volumes/pv") == mode(root / "pods/u1/volumes/v") == 0o777  # below closed folders
    assert mode(root / "pods/u1/volumes/v/f") == 0o644  # a pod's own file is the pod's
    assert f"{root} was open to other accounts (mode 0777) and is closed now" in caplog.text
    assert f"`rm -r {root}/pki`" in caplog.text
    caplog.clear()
    DataDirectory(root).prepare()
    assert caplog.text == ""


@needs_root
@pytest.mark.parametrize("name", ["store.db", "pki/ca.key", "pods/u1"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_somebody_else_put_there_is_refused(place: Path, name: str, kind: str) -> None:
    root = place / "data"
    planted = root / name
    planted.parent.mkdir(parents=True)
    root.chmod(0o777)
    precious = place / "precious"
    precious.write_text("mine")
    precious.chmod(0o644)
    if kind == "link":
        planted.symlink_to(precious)
    else:
        planted.write_text("theirs")
    os.lchown(planted, INTRUDER, INTRUDER)
    with pytest.raises(DataDirectoryError) as problem:
        DataDirectory(root).prepare()
    assert str(problem.value).startswith(f"{planted} in the data directory {root} belongs to another account")
    assert mode(root) == 0o700
    assert mode(precious) == 0o644  # nothing was followed
    planted.unlink()
    DataDirectory(root).prepare()


def test_a_link_of_ones_own_may_lead_to_another_disk(place: Path) -> None:
    root, disk = place / "data", place / "disk"
    root.mkdir()
    disk.mkdir(mode=0o755)
    (root / "volumes").symlink_to(disk)
    DataDirectory(root).prepare()
    assert mode(disk) == 0o755
    linked = place / "linked"
    linked.symlink_to(root)
    DataDirectory(linked).prepare()


@pytest.mark.parametrize("bits", [0o777, 0o775, 0o722])
def test_a_parent_that_others_may_write_to_is_refused(place: Path, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "_is_own_group", lambda gid: False)
    parent = place / "shared"
    parent.mkdir()
    parent.chmod(bits)
    for exists in (False, True):
        with pytest.raises(DataDirectoryError) as problem:
            DataDirectory(parent / "data").prepare()
        assert f"other accounts may write to {parent} (mode {bits:04o})" in str(problem.value)
        assert f"`chmod go-w {parent}`" in str(problem.value)
        assert (parent / "data").exists() is exists
        (parent / "data").mkdir(exist_ok=True)
    link = place / "link"
    link.symlink_to(parent / "data")
    with pytest.raises(DataDirectoryError, match=f"other accounts may write to {parent}"):
        DataDirectory(link).prepare()
    parent.chmod(bits | 0o1000)  # sticky, as /tmp is: what is ours stays ours
    DataDirectory(parent / "data").prepare()


@needs_root
def test_a_parent_or_a_link_of_somebody_else_is_refused(place: Path) -> None:
    theirs = place / "theirs"
    theirs.mkdir()
    os.chown(theirs, INTRUDER, INTRUDER)
    with pytest.raises(DataDirectoryError, match=f"{theirs} belongs to another account"):
        DataDirectory(theirs / "data").prepare()
    with pytest.raises(DataDirectoryError, match=f"{theirs} belongs to another account"):
        DataDirectory(theirs).prepare()
    place.chmod(0o1777)
    link = place / "link"
    link.symlink_to("/root")
    os.lchown(link, INTRUDER, INTRUDER)
    with pytest.raises(DataDirectoryError, match=f"{link} belongs to another account"):
        DataDirectory(link / "data").prepare()


# -- places that everybody may write to


@needs_root
def test_memory_volumes_do_not_fall_for_a_folder_of_somebody_else(tmp_path: Path) -> None:
    data = str(tmp_path)
    first = Path(memory_volumes.of_pod(data, "u1")).parent
    try:
        assert mode(first) == 0o700
        assert Path(memory_volumes.of_pod(data, "u2")).parent == first
        for spoil in ("owner", "link", "mode"):
            first.rmdir() if not first.is_symlink() else first.unlink()
            if spoil == "link":
                first.symlink_to(tmp_path)
            else:
                first.mkdir(mode=0o700)
                os.chown(first, INTRUDER if spoil == "owner" else 0, -1)
                first.chmod(0o777 if spoil == "mode" else 0o700)
            other = Path(memory_volumes.of_pod(data, "u1")).parent
            assert other != first
            assert mode(other) == 0o700
            first.unlink() if first.is_symlink() else first.rmdir()
            first = other
    finally:
        memory_volumes.tidy(data)
    assert not first.exists()


@needs_root
def test_a_socket_answers_its_own_account_only(place: Path) -> None:
    """Even where a folder was left open: both ends ask the kernel who the other is."""
    place.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "shim.sock"))
    listener.listen()
    (place / "shim.sock").chmod(0o777)
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{place}/shim.sock'); s.recv(1)"
    stranger = subprocess.Popen([ordinary_python(), "-c", code], user=INTRUDER, group=INTRUDER, extra_groups=[])
    connection, _ = listener.accept()
    assert not wire.is_same_account(connection)
    connection.close()
    stranger.wait(30)
    with connect(place) as ours:
        connection, _ = listener.accept()
        assert wire.is_same_account(connection)
        assert wire.is_same_account(ours)
        connection.close()
    listener.close()


def test_a_socket_of_another_account_is_not_spoken_to(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "shim.sock"))
    listener.listen()
    monkeypatch.setattr(wire, "is_same_account", lambda connection: False)
    with pytest.raises(PermissionError):
        connect(place)
    listener.close()


def test_files_are_not_written_through_links(place: Path) -> None:
    """The name of the half-written file can be guessed."""
    precious = place / "precious"
    precious.write_text("mine")
    (place / f".kubeconfig.{os.getpid()}.new").symlink_to(precious)
    private_files.write(place / "kubeconfig", b"new")
    assert precious.read_text() == "mine"
    assert (place / "kubeconfig").read_text() == "new"
    assert mode(place / "kubeconfig") == 0o600
    assert sorted(os.listdir(place)) == ["kubeconfig", "precious"]


def test_a_link_that_is_put_there_in_the_last_moment_is_not_written_through(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the removal of what was there and the opening: whoever may write to the folder has the time."""
    precious = place / "precious"
    precious.write_text("mine")
    partial = place / f".kubeconfig.{os.getpid()}.new"

    def plant(path: str) -> None:
        assert path == str(partial)
        partial.symlink_to(precious)
        raise FileNotFoundError

    monkeypatch.setattr(os, "unlink", plant)
    with pytest.raises(FileExistsError):
        private_files.write(place / "kubeconfig", b"new")
    monkeypatch.undo()
    assert precious.read_text() == "mine"


def test_what_danlu_makes_is_closed_from_its_first_moment(place: Path) -> None:
    """The log of `danlu up --detach` is opened before anything else; and an account may have any umask."""
    danlu = Danlu(place)
    danlu.run(
        "sh", "-c", f"umask 0; exec {sys.executable} -m danlu up --detach --port 0 --no-console --data-dir {place}/data"
    )
    try:
        for path in (place / "data").iterdir():
            assert not mode(path) & 0o077, path
    finally:
        danlu.down()
