"""GPUs: which there are, and which container has which.

An assignment is a file of the pod (`DATA/pods/<uid>/gpus.json`), written before the container starts: after a restart
of danlu running pods keep what they have, and nothing else has to remember it.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from danlu.embedded import private_files
from danlu.meta import quantity
from danlu.meta.kind import Object

log = logging.getLogger("danlu.devices")

GPU = "nvidia.com/gpu"
QUERY = "index,uuid,name,memory.total"
QUERY_SECONDS = 10
SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")


class DeviceError(Exception):
    """The container asks for more than is free: UnexpectedAdmissionError in kubelet's words."""


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    uuid: str
    product: str
    memory_mib: int
    fake: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    env: dict[str, str]
    nodes: list[str]


def discover(fake: int = 0) -> list[Gpu]:
    """The machine's GPUs, by NVML or nvidia-smi; `fake` ones are for trying out scheduling. Blocks for a moment."""
    if fake:
        return [Gpu(n, f"GPU-fake-{n}", "Fake-GPU", 16384, fake=True) for n in range(fake)]
    by_nvml = _by_nvml()
    found = by_nvml if by_nvml is not None else _by_nvidia_smi()
    if found:
        _make_nodes()
    return found


def _make_nodes() -> None:
    """CUDA makes the node of unified memory when it is first used; a pod cannot, so it is to be there before."""
    program = shutil.which("nvidia-modprobe")
    if program and not os.path.exists(SHARED_NODES[1]):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([program, "-u", "-c=0"], capture_output=True, timeout=QUERY_SECONDS, check=False)


def _by_nvml() -> list[Gpu] | None:
    """None when NVML cannot be asked."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        gpus = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total >> 20
            gpus.append(
                Gpu(index, _text(pynvml.nvmlDeviceGetUUID(handle)), _text(pynvml.nvmlDeviceGetName(handle)), memory)
            )
        return gpus
    except pynvml.NVMLError as error:
        log.warning("NVML: %s", error)
        return None
    finally:
        pynvml.nvmlShutdown()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _by_nvidia_smi() -> list[Gpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=QUERY_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("nvidia-smi: %s", error)
        return []
    return parse_nvidia_smi(answer.stdout)


def parse_nvidia_smi(text: str) -> list[Gpu]:
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) >= 4 and fields[0].isdigit():
            memory = int(fields[-1]) if fields[-1].isdigit() else 0
            gpus.append(Gpu(int(fields[0]), fields[1], ", ".join(fields[2:-1]), memory))
    return gpus


def share(gpus: list[Gpu], counts: list[int]) -> list[list[Gpu]]:
    """The machine's GPUs dealt to several virtual nodes, in order."""
    shares, at = [], 0
    for count in counts:
        shares.append(gpus[at : at + count])
        at += count
    return shares


class Devices:
    """The GPUs of one node."""

    def __init__(self, data_dir: str, gpus: list[Gpu]) -> None:
        self._data_dir = data_dir
        self.gpus = gpus
        self._taken: dict[str, dict[str, list[str]]] = {}  # pod uid -> container -> uuids

    @property
    def capacity(self) -> dict[str, str]:
        return {GPU: str(len(self.gpus))} if self.gpus else {}

    @property
    def labels(self) -> dict[str, str]:
        """As NVIDIA's feature discovery writes them."""
        if not self.gpus:
            return {}
        first = self.gpus[0]
        return {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(len(self.gpus)),
            "nvidia.com/gpu.product": first.product.replace(" ", "-"),
            "nvidia.com/gpu.memory": str(first.memory_mib),
        }

    def restore(self, pod_uids: Iterable[str]) -> None:
        """Takes up what pods that are still there had. Call before the first `assign`."""
        known = {gpu.uuid for gpu in self.gpus}
        for uid in pod_uids:
            try:
                with open(self._file(uid)) as file:
                    kept = {name: [u for u in uuids if u in known] for name, uuids in json.load(file).items()}
            except (OSError, ValueError, AttributeError, TypeError):
                continue
            if any(kept.values()):
                self._taken[uid] = kept

    def assign(self, pod: Object, container: Object) -> Assignment:
        """What the container gets; asking again answers the same. A container that asks for none sees none."""
        asked = _asked(container)
        if not asked:
            return Assignment({"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}, [])
        uid, name = pod["metadata"]["uid"], container["name"]
        had = self._taken.get(uid, {}).get(name)
        if had is None or len(had) != asked:
            had = self._take(pod, name, asked)
            self._taken.setdefault(uid, {})[name] = had
            self._save(uid)
        chosen = [gpu for gpu in self.gpus if gpu.uuid in had]
        if chosen and chosen[0].fake:
            return Assignment({"NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in chosen)}, [])
        nodes = [*(f"/dev/nvidia{gpu.index}" for gpu in chosen), *SHARED_NODES]
        env = {
            "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in chosen),
            "NVIDIA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in chosen),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        return Assignment(env, [node for node in nodes if os.path.exists(node)])

    def release(self, pod_uid: str) -> None:
        """When the pod has ended."""
        self._taken.pop(pod_uid, None)
        with suppress(FileNotFoundError):
            os.unlink(self._file(pod_uid))

    def _take(self, pod: Object, name: str, asked: int) -> list[str]:
        # What an init container had is free for those that run after it.
        spec = pod["spec"]
        init = {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") != "Always"}
        uid = pod["metadata"]["uid"]
        own = self._taken.get(uid, {})
        busy = {
            uuid
            for owner, containers in self._taken.items()
            for other, uuids in containers.items()
            for uuid in uuids
            if owner != uid or (other != name and other not in init)
        }
        reusable = [uuid for other, uuids in own.items() if other in init for uuid in uuids]
        free = [*dict.fromkeys(u for u in (*reusable, *(g.uuid for g in self.gpus)) if u not in busy)]
        if len(free) < asked:
            raise DeviceError(
                f"Allocate failed due to requested number of devices unavailable for {GPU}. "
                f"Requested: {asked}, Available: {len(free)}, which is unexpected"
            )
        return free[:asked]

    def _file(self, uid: str) -> str:
        return f"{self._data_dir}/pods/{uid}/gpus.json"

    def _save(self, uid: str) -> None:
        path = self._file(uid)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        private_files.write(path, json.dumps(self._taken[uid]).encode(), durable=False)


def _asked(container: Object) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return quantity.parse(str(limits.get(GPU, "0"))).value()
