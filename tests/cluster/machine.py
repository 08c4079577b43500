"""What the machine has to offer: root, and programs that Debian packages bring."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.cluster.place import Trouble

PACKAGES = {  # program or file: the Debian package that brings it
    "runc": "runc", "/usr/lib/cni/bridge": "containernetworking-plugins", "iptables": "iptables", "ip": "iproute2",
    "conntrack": "conntrack", "buildah": "buildah", "debootstrap": "debootstrap", "nsenter": "util-linux",
    "openssl": "openssl",
}  # fmt: skip
SYSTEM = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def missing() -> list[str]:
    """Packages whose programs are not here."""
    return [
        package
        for program, package in PACKAGES.items()
        if not (Path(program).exists() if program.startswith("/") else shutil.which(program, path=SYSTEM))
    ]


def prepare() -> None:
    if os.geteuid() != 0:
        raise Trouble("a node with real containers needs root (namespaces, mounts, cgroups); run it as root")
    if shutil.which("go") is None:
        raise Trouble("Kubernetes is built with `go`, which is not on PATH; install Go 1.21 or newer")
    packages = missing()
    if not packages:
        return
    if shutil.which("apt-get") is None:
        raise Trouble(f"these packages are missing, and there is no apt-get to install them: {' '.join(packages)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *packages]):
        if subprocess.run(["apt-get", *words], env=quiet, stdout=subprocess.DEVNULL).returncode != 0:
            raise Trouble(f"apt-get {words[0]} failed; install by hand: {' '.join(packages)}")
    still = missing()
    if still:
        raise Trouble(f"still missing after apt-get install: {' '.join(still)}")
