"""What a container that runs an image gets of the machine's GPU driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.embedded.node.images import driverfiles


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "libcuda.so.570.1").write_text("driver")
    (tmp_path / "libcuda.so.1").symlink_to("libcuda.so.570.1")
    (tmp_path / "libnvidia-ml.so.1").symlink_to("gone")
    (tmp_path / "libc.so.6").write_text("not the driver's")
    (tmp_path / "nvidia-smi").write_text("program")
    found = driverfiles.found_in([str(tmp_path)], [str(tmp_path / "nvidia-smi"), str(tmp_path / "none")])
    monkeypatch.setattr(driverfiles, "_found", lambda: found)
    return tmp_path


def test_its_libraries_come_with_a_gpu(driver: Path) -> None:
    before = {"PATH": "/bin", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"}
    files, variables = driverfiles.of_container(["/dev/nvidia0", "/dev/nvidiactl"], before)
    library = str(driver / "libcuda.so.570.1")
    assert files == {
        "/usr/local/nvidia/lib64/libcuda.so.1": library,
        "/usr/local/nvidia/lib64/libcuda.so.570.1": library,
        "/usr/local/nvidia/bin/nvidia-smi": str(driver / "nvidia-smi"),
    }
    assert variables == {**before, "PATH": "/bin:/usr/local/nvidia/bin"}
    assert driverfiles.of_container(["/dev/nvidia0"], {})[1]["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"


def test_nothing_comes_without_one(driver: Path) -> None:
    assert driverfiles.of_container(["/dev/fuse"], {"PATH": "/bin"}) == ({}, {})
