"""Stands in for dcgm-exporter: what nvidia-smi measures, under DCGM's names, on port 9400.

It measures the GPUs that its container was given. Where it sees none there is nothing to serve: it ends and says why.
"""

from __future__ import annotations

import http.server
import os
import shutil
import signal
import socket
import subprocess
import sys

PORT = 9400
QUERY_S = 10
ABOUT = ("index", "uuid", "pci.bus_id", "name", "driver_version")
# nvidia-smi's word -> (DCGM's name, type, what it is)
METRICS = {
    "clocks.sm": ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."),
    "clocks.mem": ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz)."),
    "temperature.gpu": ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."),
    "temperature.memory": ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C)."),
    "power.draw": ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W)."),
    "utilization.gpu": ("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %)."),
    "utilization.memory": ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %)."),
    "memory.used": ("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."),
    "memory.free": ("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."),
}


class NoGpu(Exception):
    """There is nothing to measure, and why."""


def measure() -> list[dict[str, str]]:
    """One entry for each GPU, by nvidia-smi's words. Raises NoGpu."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise NoGpu("there is no nvidia-smi here, so there is no NVIDIA driver")
    words = (*ABOUT, *METRICS)
    command = [program, f"--query-gpu={','.join(words)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=QUERY_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoGpu(f"nvidia-smi: {error}") from error
    rows = [[value.strip() for value in line.split(",")] for line in done.stdout.splitlines()]
    found = [dict(zip(words, row, strict=True)) for row in rows if len(row) == len(words)]
    if done.returncode or not found:
        said = (done.stdout or done.stderr).strip().split("\n")[0] or "it lists none"
        raise NoGpu(
            f"no GPU can be seen from this container ({said}); a container sees the GPUs that it asks for "
            "(resources.limits: nvidia.com/gpu)"
        )
    return found


def page(gpus: list[dict[str, str]], host: str) -> str:
    """In Prometheus' text format; what a GPU does not measure ("[N/A]") is left out."""
    lines = []
    for word, (name, kind, about) in METRICS.items():
        samples = [f"{name}{{{labels(gpu, host)}}} {gpu[word]}" for gpu in gpus if is_number(gpu[word])]
        if samples:
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *samples]
    return "\n".join(lines) + "\n"


def labels(gpu: dict[str, str], host: str) -> str:
    found = {
        "gpu": gpu["index"],
        "UUID": gpu["uuid"],
        "pci_bus_id": gpu["pci.bus_id"],
        "device": f"nvidia{gpu['index']}",
        "modelName": gpu["name"],
        "Hostname": host,
        "DCGM_FI_DRIVER_VERSION": gpu["driver_version"],
    }
    return ",".join(f'{name}="{value}"' for name, value in found.items())


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path not in ("/metrics", "/health"):
            self.send_error(404)
            return
        try:
            text, code = page(measure(), os.environ.get("NODE_NAME") or socket.gethostname()), 200
        except NoGpu as error:
            text, code = f"{error}\n", 503
        self.send_response(code)
        self.send_header("content-type", "text/plain; version=0.0.4; charset=utf-8")
        self.end_headers()
        self.wfile.write((text if self.path == "/metrics" or code != 200 else "ok\n").encode())

    def log_message(self, *_: object) -> None:
        return


def main() -> None:
    who = f"danlu: stand-in for {os.environ.get('DANLU_IMAGE', 'dcgm-exporter')}"
    try:
        gpus = measure()
    except NoGpu as error:
        try:
            with open("/dev/termination-log", "r+") as file:
                file.write(f"{who}: {error}")
        except OSError:
            pass
        sys.exit(f"{who}: {error}")
    host, _, port = (os.environ.get("DCGM_EXPORTER_LISTEN") or f":{PORT}").rpartition(":")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = http.server.ThreadingHTTPServer((host or os.environ.get("DANLU_POD_IP") or "", int(port)), Handler)
    print(f"{who}: metrics of {len(gpus)} GPUs on port {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
