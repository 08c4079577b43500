"""Images of Danlu's own, built by buildah on the local base image and put where the cluster's registry finds them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from danlu import __version__
from tests.cluster.images import Store
from tests.cluster.place import ROOT, Place, Trouble

BASE = "localhost/danlu-base:latest"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # a machine may know authorities of its own
OUTSIDE = "DANLU_TEST_MACHINE"  # a process in the machine's own network: builds need it, and tests are in the cluster's


class Builder:
    def __init__(self, store: Store, place: Place) -> None:
        self.store, self.place = store, place
        self.folder = store.folder / "layers"  # of the last builds: they are kept between runs
        self.environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}
        if CERTIFICATES.exists():
            self.environment["PIP_CERT"] = str(CERTIFICATES)

    def build(self, name: str, *options: str) -> str:
        """An image of deploy/images, as its document says; what pods call it."""
        self._make_base()
        done = subprocess.run(
            [*_outside(), str(ROOT / "scripts/build-images"), "--base", BASE, "--lean", "--tidy", *options, name],
            env={**self.environment, "BUILDER": " ".join(self._program())}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise Trouble(f"scripts/build-images {name} failed:\n{done.stdout[-4000:]}")
        image = f"docker.io/danlu/{name}:{__version__}"
        # It goes no further than this machine: quick is worth more than small.
        quickly = ("--compression-format", "zstd", "--compression-level", "1")
        self.buildah("push", "--quiet", *quickly, image, f"oci:{self.place.built}:{image.removeprefix('docker.io/')}")
        return image

    def by_content(self, image: str) -> str:
        """Another name for what was built: a node that has an image of the same tag does not look for a newer one."""
        name = image.removeprefix("docker.io/")
        digest = Store(self.store.folder, self.store.base, self.place.built).named()[name]
        return f"{image.rpartition(':')[0]}@{digest}"

    def _make_base(self) -> None:
        if self.buildah("images", "--quiet", "--filter", f"reference={BASE}"):
            return
        container = self.buildah("from", "scratch")
        link = self.store.folder / "base.tar"  # buildah unpacks what is called an archive
        link.unlink(missing_ok=True)
        link.hardlink_to(self.store.blob(self.store.base))
        self.buildah("add", "--quiet", container, str(link), "/")
        self.buildah("commit", "--quiet", "--rm", container, BASE)
        link.unlink()

    def buildah(self, *words: str) -> str:
        done = subprocess.run([*self._program(), *words], capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise Trouble(f"buildah {words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout.strip()

    def _program(self) -> list[str]:
        return ["buildah", "--root", str(self.folder), "--runroot", str(self.place.folder / "buildah")]


def _outside() -> list[str]:
    process = os.environ.get(OUTSIDE)
    return ["nsenter", f"--net=/proc/{process}/ns/net"] if process else []
