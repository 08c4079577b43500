"""Images of Danlu's own, built by buildah on the local base image and put where the cluster's registry finds them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from danlu.operator.install.options import IMAGE
from tests.cluster.images import Store
from tests.cluster.place import ROOT, Place, Trouble

BASE = "localhost/danlu-base:latest"
CERTIFICATES = "/etc/ssl/certs"  # a machine may know authorities of its own; builds reach what it reaches
RECIPES = ROOT / "deploy/images"


class Builder:
    def __init__(self, store: Store, place: Place) -> None:
        self.store, self.place = store, place
        self.folder = store.folder / "buildah"  # layers are kept between runs
        self.environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}

    def build(self, recipe: Path, name: str) -> None:
        """`name` is what manifests call it."""
        self._make_base()
        bundle = Path(f"{CERTIFICATES}/ca-certificates.crt")
        known = []
        if bundle.exists():
            known = ["-v", f"{CERTIFICATES}:{CERTIFICATES}:ro", "--build-arg", f"PIP_CERT={bundle}"]
        self._buildah(
            "bud", "--quiet", "--layers", "--pull-never", "--build-arg", f"BASE={BASE}", *known, "-f", str(recipe),
            "-t", name, str(ROOT),
        )  # fmt: skip
        self._buildah("push", "--quiet", name, f"oci:{self.place.built}:{name.removeprefix('docker.io/')}")

    def _make_base(self) -> None:
        if self._buildah("images", "--quiet", "--filter", f"reference={BASE}"):
            return
        container = self._buildah("from", "scratch")
        link = self.store.folder / "base.tar"  # buildah unpacks what is called an archive
        link.unlink(missing_ok=True)
        link.hardlink_to(self.store.blob(self.store.base))
        self._buildah("add", "--quiet", container, str(link), "/")
        self._buildah("commit", "--quiet", "--rm", container, BASE)
        link.unlink()

    def _buildah(self, *words: str) -> str:
        command = ["buildah", "--root", str(self.folder), "--runroot", str(self.place.folder / "buildah"), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise Trouble(f"buildah {words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout.strip()


def build_danlu(store: Store, place: Place) -> None:
    Builder(store, place).build(RECIPES / "danlu/Containerfile", IMAGE)
