"""Where things of a test cluster lie: programs in the machine's cache, everything else in one folder per cluster."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PREFIX = "danlu-cluster-"
PARTS = ("control-plane", "kubectl", "node", "dns", "storage", "kwok")

ADDRESS = "10.245.0.1"  # the node's, inside the cluster's network namespace; API server, DNS and registry listen there
SERVICES = "10.96.0.0/16"
PODS = "10.246.0.0/16"
API = f"https://{ADDRESS}:6443"
REGISTRY = f"http://{ADDRESS}:5000"
NODE = "real"
FAKE = "danlu.test/fake"  # label and taint of nodes that kwok plays
PAUSE = "danlu.test/pause:1"


class Trouble(Exception):
    """The cluster cannot be had; the message says why and what mends it."""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("DANLU_CACHE") or Path(base).expanduser() / "danlu")


def build_programs() -> str:
    """Builds what is missing; the folders of all programs, as a PATH."""
    built = subprocess.run([ROOT / "scripts/real-kubernetes", *PARTS], stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        raise Trouble("Kubernetes could not be built; what scripts/real-kubernetes said is above")
    return os.pathsep.join([*built.stdout.split(), os.environ["PATH"], "/usr/sbin", "/sbin"])


@dataclass(frozen=True)
class Place:
    """One cluster's name, and its folder: all that it writes, and state.json that says how to end it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def built(self) -> Path:
        """The layout of images that were built for this cluster."""
        return self.folder / "images"

    @property
    def namespace_file(self) -> Path:
        return Path("/run/netns") / self.name

    @property
    def containerd_socket(self) -> Path:
        return self.folder / "containerd.sock"

    @property
    def prefix(self) -> list[str]:
        """Before a command that is to see the cluster's network."""
        return ["nsenter", f"--net={self.namespace_file}"]


def new_place() -> Place:
    return Place(Path(tempfile.mkdtemp(prefix=PREFIX)))


def places() -> list[Place]:
    """The clusters of this machine, running or left over."""
    return [Place(path) for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) if path.is_dir()]
