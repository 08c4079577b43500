"""The GPU driver's own libraries of this machine, for containers that run an image.

They belong to the kernel's module and to no image: whoever gives a container a GPU gives it these, too. They lie where
images of this field look for them (`/usr/local/nvidia`, in their LD_LIBRARY_PATH).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib")
LIBRARIES = ("libcuda.so*", "libcudadebugger.so*", "libnvidia-*.so*", "libnvcuvid.so*", "libnvoptix.so*")
PROGRAMS = ("/usr/bin/nvidia-smi", "/usr/bin/nvidia-debugdump", "/usr/bin/nvidia-cuda-mps-control")
PLACE = "/usr/local/nvidia"
DEVICE = "/dev/nvidia"


def of_container(nodes: Sequence[str], env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What is bound into it, target -> source, and the variables with which it is found; none without a GPU."""
    files = _found() if any(node.startswith(DEVICE) for node in nodes) else {}
    if not files:
        return {}, {}
    variables = {}
    for name, folder in (("LD_LIBRARY_PATH", f"{PLACE}/lib64"), ("PATH", f"{PLACE}/bin")):
        parts = [part for part in env.get(name, "").split(":") if part]
        variables[name] = ":".join(parts if folder in parts else [*parts, folder])
    return files, variables


@lru_cache(maxsize=1)
def _found() -> dict[str, str]:
    """A driver is not changed under a kernel that runs."""
    return found_in(FOLDERS, PROGRAMS)


def found_in(folders: Sequence[str], programs: Sequence[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for folder in folders:
        for pattern in LIBRARIES:
            for path in sorted(Path(folder).glob(pattern)):
                files.setdefault(f"{PLACE}/lib64/{path.name}", os.path.realpath(path))
    for program in programs:
        if os.path.exists(program):
            files[f"{PLACE}/bin/{os.path.basename(program)}"] = program
    return {target: source for target, source in files.items() if os.path.isfile(source)}
