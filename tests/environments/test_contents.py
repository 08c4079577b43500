"""Programs that stand in for images: they do what they stand in for, or they end and say why."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from danlu import environments
from danlu.environments.catalogue import Catalogue

CONTENTS = Path(environments.__file__).parent / "contents"
SMI = """#!/bin/sh
echo "0, GPU-aa, 00000000:01:00.0, NVIDIA H200, 570.1, 1980, 3201, 34, [N/A], 76.5, 12, 3, 1024, 142000"
echo "1, GPU-bb, 00000000:02:00.0, NVIDIA H200, 570.1, 345, 3201, 30, [N/A], 70.1, 0, 0, 0, 143024"
"""
BLIND = "#!/bin/sh\necho 'No devices were found'\nexit 6\n"


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, CONTENTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run(name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CONTENTS / f"{name}.py")]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)


def smi(folder: Path, script: str) -> str:
    """PATH with such an nvidia-smi."""
    (folder / "nvidia-smi").write_text(script)
    (folder / "nvidia-smi").chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


# -- the web server


def test_a_web_server_that_cannot_listen_ends(tmp_path: Path) -> None:
    """It used to wait, and was Ready."""
    done = run("file_server", DANLU_POD_IP="192.0.2.1", DANLU_IMAGE="nginx:1.25")  # nobody has that address
    assert done.returncode == 1
    assert "stand-in for nginx:1.25: port 80 of 192.0.2.1 cannot be used: Cannot assign" in done.stderr


@pytest.mark.parametrize(
    ("point", "found"),
    [
        ("/etc/nginx/nginx.conf", "/etc/nginx/nginx.conf"),
        ("/etc/nginx", "/etc/nginx"),
        ("/usr/share/nginx/html", ""),
        ("/etc/nginx-is-not-this", ""),
    ],
)
def test_a_configuration_that_nobody_would_read_is_found(point: str, found: str) -> None:
    mounts = f"31 23 0:28 / / rw - tmpfs tmpfs rw\n32 31 0:29 /x {point} ro - ext4 /dev/sda rw\n"
    assert program("file_server").configured(mounts) == found


# -- the GPU exporter


def test_metrics_have_dcgms_names_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", smi(tmp_path, SMI))
    exporter = program("gpu_exporter")
    lines = exporter.page(exporter.measure(), "node-1").splitlines()
    first = (
        'gpu="0",UUID="GPU-aa",pci_bus_id="00000000:01:00.0",device="nvidia0",modelName="NVIDIA H200",'
        'Hostname="node-1",DCGM_FI_DRIVER_VERSION="570.1"'
    )
    assert f"DCGM_FI_DEV_GPU_UTIL{{{first}}} 12" in lines
    assert f"DCGM_FI_DEV_FB_USED{{{first}}} 1024" in lines
    assert "# TYPE DCGM_FI_DEV_POWER_USAGE gauge" in lines
    assert not [line for line in lines if "MEMORY_TEMP" in line], "what is not measured is left out"


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[str]:
    variables = {"PATH": smi(tmp_path, SMI), "DCGM_EXPORTER_LISTEN": "127.0.0.1:0", "DANLU_IMAGE": "dcgm"}
    command = [sys.executable, str(CONTENTS / "gpu_exporter.py")]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("danlu: stand-in for dcgm: metrics of 2 GPUs on port ")
    yield f"http://127.0.0.1:{said.split()[-1]}"
    process.terminate()
    process.communicate(timeout=60)


def test_metrics_are_served(exporter: str, tmp_path: Path) -> None:
    def get(path: str) -> str:
        with urllib.request.urlopen(f"{exporter}{path}", timeout=60) as answer:
            return str(answer.read().decode())

    assert get("/metrics").count("\nDCGM_FI_DEV_SM_CLOCK{") == 2
    assert get("/health") == "ok\n"
    smi(tmp_path, BLIND)
    with pytest.raises(OSError, match="503"):
        get("/health")


def test_an_exporter_without_a_gpu_ends_and_says_why(tmp_path: Path) -> None:
    done = run("gpu_exporter", PATH=smi(tmp_path, BLIND), DANLU_IMAGE="nvidia/dcgm-exporter:3.1.6")
    assert done.returncode == 1
    assert "no GPU can be seen from this container (No devices were found)" in done.stderr
    assert "nvidia.com/gpu" in done.stderr
    assert "there is no nvidia-smi here" in run("gpu_exporter", PATH=str(tmp_path / "empty")).stderr


# -- which images they stand behind


@pytest.mark.parametrize(
    ("image", "name"),
    [("nginx:1.25", "file_server.py"), ("nvcr.io/nvidia/k8s/dcgm-exporter:4.6.1-4.8.4-distroless", "gpu_exporter.py")],
)
def test_what_runs_for_an_image_is_carried_by_it(tmp_path: Path, image: str, name: str) -> None:
    found = Catalogue(tmp_path, strict=True).resolve(image)
    (target,) = found.files
    assert target == f"/opt/danlu/{name}"
    assert [*found.entrypoint, *found.cmd] == ["python3", target]


def test_what_nothing_stands_in_for_is_unknown(tmp_path: Path) -> None:
    """It was said to run, and exported nothing."""
    assert not Catalogue(tmp_path).resolve("quay.io/prometheus/node-exporter:v1").known


# -- TensorBoard


def test_tensorboard_of_the_tensorflow_images_runs_without_tensorflow(tmp_path: Path) -> None:
    image = Catalogue(tmp_path).resolve("tensorflow/tensorflow:2.14.0")
    assert image.env["PATH"].startswith("/opt/danlu/bin:")
    source = Path(image.files["/opt/danlu/bin/tensorboard"])
    assert os.access(source, os.X_OK)
    for name, text in {
        "tensorboard/__init__.py": "",
        "tensorboard/compat/__init__.py": "from tensorboard.compat import notf\n",
        "tensorboard/main.py": "import tensorboard.compat\ndef run_main():\n    print('runs')\n    return 0\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, str(source)], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "runs\n"
