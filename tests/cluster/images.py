"""Images without a hub. One layer, a small Debian with this machine's Python, is under all of them.

`store()` makes the layer once and keeps it in the machine's cache, keyed by what went into it. What an image's name
stands for is what Danlu's catalogue says (src/danlu/environments/images.yaml), so the same names work here and on
`danlu up`: command, variables, files. The environments it names (torch is 5 GB) are not copied into layers: the node
binds them read-only into every container (`binds`). Images built by buildah are put into the store beside them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from danlu.embedded.node.imagesource import DEFAULT_PATH, ImageError
from danlu.environments.catalogue import Catalogue, CatalogueImage, cache_folder, data_folder
from tests.cluster.place import PAUSE, ROOT, Trouble, cache

SUITE = "bookworm"
INCLUDED = (  # what Python's own modules and people's scripts need
    "libssl3", "libsqlite3-0", "libffi8", "liblzma5", "libbz2-1.0", "zlib1g", "libreadline8", "libncursesw6",
    "libuuid1", "libexpat1", "ca-certificates", "procps", "hostname",
)  # fmt: skip
LEFT_OUT = ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info", "var/cache/apt",
            "var/lib/apt/lists", "var/log", "usr/share/zoneinfo")  # fmt: skip
PYTHON_LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "__pycache__", "*.a", "config-3*")
DATA = "/opt/danlu/data"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
NAME = "org.opencontainers.image.ref.name"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Store:
    """An OCI layout: blobs by digest, and which name is which manifest. `built` is a second one, asked first."""

    folder: Path
    base: str  # the digest of the layer under all images of the catalogue
    built: Path | None = None

    def blob(self, digest: str) -> Path:
        path = Path("blobs/sha256") / digest.removeprefix("sha256:")
        if self.built and (self.built / path).exists():
            return self.built / path
        return self.folder / path

    def put(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        path = self.blob(digest)
        if not path.exists():
            fresh = path.with_name(f"{path.name}.{os.getpid()}")
            fresh.write_bytes(data)
            fresh.replace(path)
        return digest

    def manifest(self, config: dict[str, Any], layers: list[str]) -> str:
        """The digest of a new image's manifest; layers are plain tar files, whose digest is their identity too."""
        stated = {
            "architecture": ARCHITECTURE, "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": layers},
        }  # fmt: skip
        about = json.dumps(stated).encode()
        listed = [{"mediaType": LAYER, "digest": digest, "size": self.blob(digest).stat().st_size} for digest in layers]
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "layers": listed,
            "config": {"mediaType": CONFIG, "digest": self.put(about), "size": len(about)},
        }  # fmt: skip
        return self.put(json.dumps(manifest).encode())

    def named(self) -> dict[str, str]:
        """Images that were made, not looked up: name:tag → digest of the manifest."""
        found: dict[str, str] = {}
        for layout in (self.folder, self.built):
            if layout and (layout / "index.json").exists():
                listed = json.loads((layout / "index.json").read_text())["manifests"]
                # One whose name another was given since is still listed, without it.
                notes = [(one.get("annotations") or {}, str(one["digest"])) for one in listed]
                found.update((str(note[NAME]), digest) for note, digest in notes if NAME in note)
        return found

    def name(self, name: str, digest: str) -> None:
        size = self.blob(digest).stat().st_size
        note = {NAME: name}
        entry = {"mediaType": MANIFEST, "digest": digest, "size": size, "annotations": note}
        file = (self.built or self.folder) / "index.json"
        index: dict[str, Any] = {"schemaVersion": 2, "manifests": []}
        if file.exists():
            index = json.loads(file.read_text())
        kept = [one for one in index["manifests"] if one.get("annotations") != note]
        file.write_text(json.dumps({**index, "manifests": [*kept, entry]}))

    def resolve(self, name: str) -> str | None:
        """The digest of what a name stands for; None when nothing does."""
        made = self.named().get(name)
        if made:
            return made
        try:
            image = Catalogue(Path("/nonexistent"), strict=True).find(name)
        except ImageError:
            return None
        return self._looked_up(image)

    def stand_in(self, layout: Path, name: str, files: dict[str, Path]) -> None:
        """An image as the catalogue has it, with files added: for one that its document lets people build."""
        image = Catalogue(Path("/nonexistent"), strict=True).find(name)
        digest = self._looked_up(replace(image, files={target: str(source) for target, source in files.items()}))
        Store(self.folder, self.base, layout).name(name, digest)

    def _looked_up(self, image: CatalogueImage) -> str:
        folder = image.environment.folder if image.environment.requirements else None
        path = f"{folder}/bin:{DEFAULT_PATH}" if folder else DEFAULT_PATH
        variables = {"PATH": path, "LANG": "C.UTF-8", "DANLU_IMAGE": image.name, "DANLU_DATA": DATA}
        own = {key: value.replace("$PATH", path) for key, value in image.env.items()}  # as the node does
        variables |= image.environment.env | own
        config = {
            "Env": [f"{key}={value}" for key, value in variables.items()], "WorkingDir": image.workdir,
            "Entrypoint": [*image.entrypoint], "Cmd": [*image.cmd],
        }  # fmt: skip
        layers = [self.base]
        if image.files:
            layers.append(self.put(_tar({target: Path(source) for target, source in image.files.items()})))
        return self.manifest(config, layers)


def binds() -> dict[str, str]:
    """Folders of this machine that every container sees: target → source."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    data_folder().mkdir(parents=True, exist_ok=True)
    return {str(cache_folder()): str(cache_folder()), DATA: str(data_folder())}


def store(path: str) -> Store:
    """The store with its base layer and pause image; `path` has Go and the system's programs."""
    stated = json.dumps([SUITE, INCLUDED, LEFT_OUT, PYTHON_LEFT_OUT, sys.version, sys.base_prefix, _source(_base)])
    key = hashlib.sha256(stated.encode()).hexdigest()[:12]
    folder = cache() / "cluster-images" / key
    done = folder / "base.txt"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "blobs/sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        layer = folder / "base.tar"
        _base(folder / "tree", layer)
        with layer.open("rb") as file:
            digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        made = Store(folder, digest)
        layer.replace(made.blob(digest))
        made.name("localhost/danlu-base:latest", made.manifest({"Env": [f"PATH={DEFAULT_PATH}"]}, [digest]))
        made.name(PAUSE, made.manifest({"Entrypoint": ["/pause"]}, [made.put(_pause(folder, path))]))
        done.write_text(digest)
    return Store(folder, done.read_text())


def _base(tree: Path, layer: Path) -> None:
    """A small Debian; this machine's Python in /usr/local, and where it says it is."""
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}", SUITE, str(tree)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Trouble(f"debootstrap could not make a base image: {done.stdout[-800:]}")
    for name in LEFT_OUT:
        shutil.rmtree(tree / name, ignore_errors=True)
    prefix = Path(sys.base_prefix)
    library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    ignored = shutil.ignore_patterns(*PYTHON_LEFT_OUT, "site-packages")
    for name in ("bin", "lib", "include"):
        shutil.copytree(prefix / name, tree / "usr/local" / name, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    for pip in (prefix / library / "site-packages").glob("pip*"):
        copied = tree / "usr/local" / library / "site-packages" / pip.name
        shutil.copytree(pip, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for program in (tree / "usr/local/bin").iterdir():  # other packages' programs would not find their packages
        if not program.name.startswith(("python", "pip")):
            program.unlink()
    if prefix != Path("/usr/local") and prefix != Path("/usr"):
        said = tree / prefix.relative_to("/")
        said.parent.mkdir(parents=True, exist_ok=True)
        said.symlink_to("/usr/local")
        for folder in said.relative_to(tree).parents:
            (tree / folder).chmod(0o755)  # users that are not root reach it too
    (tree / "root").chmod(0o755)
    same = ["--sort=name", "--mtime=@0", "--numeric-owner"]
    subprocess.run(["tar", *same, "-C", str(tree), "-cf", str(layer), "."], check=True)
    shutil.rmtree(tree)


def _pause(folder: Path, path: str) -> bytes:
    program = folder / "pause"
    build = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), "main.go"]
    variables = {**os.environ, "PATH": path, "CGO_ENABLED": "0"}
    subprocess.run(build, check=True, cwd=ROOT / "tests/cluster/pause", env=variables)
    return _tar({"/pause": program})


def _tar(files: dict[str, Path]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for target, source in files.items():
            entry = tarfile.TarInfo(target.lstrip("/"))
            data = source.read_bytes()
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()


def _source(function: Any) -> str:
    import inspect

    return inspect.getsource(function)
