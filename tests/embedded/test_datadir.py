"""The data directory: one user at a time, and clear words when it cannot be had."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import DataDirectoryError

HERE = Running(os.getpid(), "https://127.0.0.1:1", "2026-01-02T03:04:05Z", "0.1.0")


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    found = DataDirectory(tmp_path / "deep/data")
    found.prepare()
    return found


def test_it_is_made_for_its_owner_alone(directory: DataDirectory) -> None:
    assert stat.S_IMODE(directory.root.stat().st_mode) == 0o700
    assert list(directory.root.iterdir()) == []


def test_one_at_a_time(directory: DataDirectory) -> None:
    directory.acquire()
    directory.describe(HERE)
    other = DataDirectory(directory.root)
    assert other.holder() == HERE
    with pytest.raises(DataDirectoryError) as problem:
        other.acquire()
    assert str(problem.value).startswith(f"already running on {directory.root} (pid {os.getpid()}, {HERE.url}, since ")
    directory.release()
    assert other.holder() is None
    other.acquire()
    other.release()


def test_one_that_is_just_starting_has_no_pid_yet(directory: DataDirectory) -> None:
    directory.acquire()
    other = DataDirectory(directory.root)
    assert other.holder() == Running(0, "", "", "")
    with pytest.raises(DataDirectoryError, match="it is just starting"):
        other.acquire()
    directory.release()


def killed(directory: DataDirectory, last_words: str = "") -> None:
    """Runs a process that takes the directory and is killed."""
    code = (
        "import os, sys, time\nfrom pathlib import Path\nfrom danlu.embedded.datadir import DataDirectory, Running\n"
        "d = DataDirectory(Path(sys.argv[1])); d.acquire(); d.describe(Running(os.getpid(), 'u', 's', 'v'))\n"
        f"{last_words}\nos.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(directory.root)]).returncode == -9


def test_a_process_that_died_holds_nothing(directory: DataDirectory) -> None:
    killed(directory)
    assert directory.holder() is None
    directory.acquire()
    directory.release()


def test_one_that_is_dying_is_waited_for(directory: DataDirectory) -> None:
    """A killed process lets go of its files a moment after it counts as dead: here a child of it holds them on."""
    killed(directory, "if not os.fork(): time.sleep(1); os._exit(0)")
    assert directory.holder() is not None
    directory.acquire()
    directory.release()


def test_files_of_the_wrong_form_are_nobody(directory: DataDirectory) -> None:
    for text in ("", "{", "[]", '{"pid": "x"}', '{"pid": 1}'):
        (directory.root / "danlu.lock").write_text(text)
        with (directory.root / "danlu.lock").open() as lock:
            assert Running.read(lock.fileno()) is None


def test_what_cannot_be_a_data_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    for found in (DataDirectory(file), DataDirectory(tmp_path / "dangling")):
        if found.root.name == "dangling":
            found.root.symlink_to(tmp_path / "nowhere/at/all")
        with pytest.raises(DataDirectoryError, match="is a file, not a directory; choose another with --data-dir"):
            found.prepare()
    assert file.read_text() == "precious"
    with pytest.raises(DataDirectoryError, match="cannot write to /proc/danlu: "):
        DataDirectory(Path("/proc/danlu")).prepare()
    below = DataDirectory(file / "below")
    with pytest.raises(DataDirectoryError, match=r"cannot write to .*: Not a directory"):
        below.prepare()


def test_a_tilde_is_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert DataDirectory(Path("~/x")).root == tmp_path / "x"
