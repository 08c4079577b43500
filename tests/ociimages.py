"""Images that tests make themselves: layers as tars, with whatever a hostile one would have in them."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
TOOLS = ("sh", "cat", "ls", "id", "env", "touch", "mkdir", "rm", "sleep", "readlink", "stat", "chown", "true", "pwd")


class LayerTar:
    """One layer, entry by entry."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._buffer, mode="w", format=tarfile.PAX_FORMAT)

    def add(self, name: str, data: bytes = b"", **about: Any) -> LayerTar:
        header = tarfile.TarInfo(name)
        header.size = len(data)
        header.mode = 0o644
        for key, value in about.items():
            setattr(header, key, value)
        self._tar.addfile(header, io.BytesIO(data))
        return self

    def folder(self, name: str, mode: int = 0o755, **about: Any) -> LayerTar:
        return self.add(name, type=tarfile.DIRTYPE, mode=mode, **about)

    def link(self, name: str, target: str) -> LayerTar:
        return self.add(name, type=tarfile.SYMTYPE, linkname=target)

    def hard_link(self, name: str, target: str) -> LayerTar:
        return self.add(name, type=tarfile.LNKTYPE, linkname=target)

    def file(self, name: str, source: str) -> LayerTar:
        return self.add(name, Path(source).read_bytes(), mode=0o755)

    def data(self) -> bytes:
        self._tar.close()
        return self._buffer.getvalue()


@dataclass
class MadeImage:
    """Blobs by digest, and the manifest among them."""

    config: dict[str, Any] = field(default_factory=dict)
    layers: list[bytes] = field(default_factory=list)  # tars
    blobs: dict[str, bytes] = field(default_factory=dict)
    digest: str = ""
    manifest: dict[str, Any] = field(default_factory=dict)

    def build(self, *, packed: bool = True, **about: Any) -> MadeImage:
        whole = {
            "architecture": ARCHITECTURE, "os": "linux", "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in self.layers]}, **about,
        }  # fmt: skip
        kind = "application/vnd.oci.image.layer.v1.tar" + ("+gzip" if packed else "")
        listed = []
        for layer in self.layers:
            blob = gzip.compress(layer, 1, mtime=0) if packed else layer
            listed.append({"mediaType": kind, "digest": self._put(blob), "size": len(blob)})
        config = json.dumps(whole).encode()
        self.manifest = {
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": listed,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json", "digest": self._put(config),
                "size": len(config),
            },
        }  # fmt: skip
        self.digest = self._put(json.dumps(self.manifest).encode())
        return self

    def _put(self, data: bytes) -> str:
        digest = digest_of(data)
        self.blobs[digest] = data
        return digest

    def docker_archive(self, name: str) -> bytes:
        out = LayerTar()
        config = str(self.manifest["config"]["digest"])
        out.add("config.json", self.blobs[config])
        for number, layer in enumerate(self.layers):
            out.add(f"{number}/layer.tar", layer)
        paths = [f"{number}/layer.tar" for number in range(len(self.layers))]
        listed = [{"Config": "config.json", "RepoTags": [name], "Layers": paths}]
        return out.add("manifest.json", json.dumps(listed).encode()).data()

    def oci_layout(self, name: str) -> bytes:
        out = LayerTar().add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        for digest, data in self.blobs.items():
            out.add(f"blobs/{digest.replace(':', '/')}", data)
        entry = {
            "mediaType": self.manifest["mediaType"], "digest": self.digest, "size": len(self.blobs[self.digest]),
            "annotations": {"io.containerd.image.name": name},
        }  # fmt: skip
        return out.add("index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()).data()


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def small_system(**config: Any) -> MadeImage:
    """A shell and a few tools of this machine, with the libraries they need and accounts of its own."""
    return MadeImage({"Env": ["PATH=/bin", "FROM_IMAGE=yes"], "Cmd": ["sh"], **config}, [_base()])


@functools.cache
def _base() -> bytes:
    base = LayerTar()
    for name in ("bin", "tmp", "etc", "root", "var", "run"):
        base.folder(name, 0o1777 if name == "tmp" else 0o755)
    base.link("var/run", "/run")
    libraries: dict[str, str] = {}
    for tool in TOOLS:
        path = shutil.which(tool)
        assert path is not None, f"this machine has no {tool}"
        base.file(f"bin/{tool}", os.path.realpath(path))
        told = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        libraries |= {found: os.path.realpath(found) for found in re.findall(r"(/\S+)", told)}
    for path, real in libraries.items():
        base.file(path.lstrip("/"), real)
    base.add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nworker:x:1234:2345::/home/worker:/bin/sh\n")
    base.add("etc/group", b"root:x:0:\nworkers:x:2345:\nextra:x:3456:worker\n")
    base.add("etc/made-by", b"a test\n")
    return base.data()
