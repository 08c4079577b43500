"""Images built on an environment of this machine: labels say on which, layers hold what was added.

The environment's own programs are the machine's folders, so such an image runs on this machine only: `push` and `save`
refuse it. What was added with pip lies in a virtual environment of the image's own, which sees the other's packages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from danlu.diagnose import say
from danlu.diagnose import stated as stated_cause
from danlu.embedded.node.imagesource import DEFAULT_PATH, Image, ImageError, ImageSource

NAME, ENVIRONMENT, DIGEST = "danlu.dev/built-on", "danlu.dev/environment", "danlu.dev/environment-digest"
HOME = "danlu/venv"  # in the image
TOOLS = "danlu/bin"
APT = """#!/bin/sh
# Stands for apt-get where an image is built on an environment: packages are what this machine has.
say() { echo "danlu: apt-get: $*" >&2; }
wanted=
for word; do case "$word" in -*) ;; install) wanted=yes;; update|upgrade|dist-upgrade|clean|autoclean|autoremove) ;;
  *) [ -n "$wanted" ] || { say "\"$word\" cannot be done: the image stands on the environment ENVIRONMENT"; exit 100; }
     name=${word%%=*}; name=${name%%/*}; name=${name%%:*}
     case "$name" in python3|python3-pip|python3-venv|python3-dev|python3-setuptools|python-is-python3)
       say "$name: the environment ENVIRONMENT has it"; continue;; esac
     if [ -e "/usr/share/doc/$name" ] || command -v "$name" >/dev/null; then say "$name: this machine has it"
     else missing="$missing $name"; fi;;
esac; done
[ -z "$missing" ] && exit 0
say "not on this machine:$missing"
say "the image stands on the environment ENVIRONMENT, to which no packages can be added:"
say "install them on the machine, or make the base image available (danlu images pull, danlu images load)"
exit 100
"""


class Stand(NamedTuple):
    """What an image stands on."""

    image: str  # the name behind FROM
    environment: str
    digest: str

    @property
    def labels(self) -> dict[str, str]:
        return {NAME: self.image, ENVIRONMENT: self.environment, DIGEST: self.digest}

    @property
    def identity(self) -> str:
        return f"environment {self.environment} {self.digest} as {self.image}"


def refuse_elsewhere(name: str, config: Mapping[str, Any]) -> None:
    """Raises ImageError for an image that means nothing on another machine."""
    stand = stated(config)
    if stand is not None:
        raise ImageError(say("DL-IMAGE-ON-ENVIRONMENT", image=name, environment=stand.environment, base=stand.image))


class Tar(Protocol):
    def folder(self, path: str) -> None: ...

    def text(self, path: str, data: bytes, mode: int = ...) -> None: ...

    def link(self, path: str, target: str) -> None: ...


def stated(config: Mapping[str, Any]) -> Stand | None:
    """Of an OCI configuration; None: it stands on its own layers."""
    section = config.get("config")
    labels = section.get("Labels") if isinstance(section, Mapping) else None
    if not isinstance(labels, Mapping) or not all(labels.get(key) for key in (NAME, ENVIRONMENT)):
        return None
    return Stand(str(labels[NAME]), str(labels[ENVIRONMENT]), str(labels.get(DIGEST) or ""))


def checked(stand: Stand, source: ImageSource) -> Image:
    """The environment as a container gets it. Raises ImageError where it is not here any more."""
    found = source.resolve(stand.image)
    if found.fallback or found.environment != stand.environment:
        raise ImageError(say("DL-ENVIRONMENT-NOT-BUILT", image=stand.image, wanted=stand.environment))
    return found


def variables(image: Image) -> dict[str, str]:
    """Its own programs come first, and all of its Pythons see what was added."""
    found = dict(image.env)
    found["PATH"] = f"/{HOME}/bin:/{TOOLS}:{found.get('PATH', DEFAULT_PATH)}"
    if image.python:
        sites = [f"/{site_packages(Path(image.python))}", found.get("PYTHONPATH", "")]
        found["PYTHONPATH"] = ":".join(site for site in sites if site)
        found["VIRTUAL_ENV"] = f"/{HOME}"
    return found


def laid_over(made: Image, below: Image, stand: Stand) -> Image:
    """An image with what the environment below it brings along."""
    differs = ""
    if stand.digest != below.environment_digest:
        differs = stated_cause("DL-IMAGE-ENVIRONMENT-CHANGED", image=made.name, environment=stand.environment)
    return replace(
        made,
        files=below.files,
        folders=below.folders,
        core_variables=below.core_variables,
        environment=below.environment,
        differs=differs,
        on_machine=True,
    )


def site_packages(python: Path, home: str = HOME) -> str:
    """Below the root of the image; `python` is the environment's folder."""
    inner = sorted(path.name for path in (python / "lib").glob("python3.*"))
    return f"{home}/lib/{inner[-1] if inner else 'python3'}/site-packages"


def add_virtual_environment(tar: Tar, python: Path, environment: str) -> None:
    program = Path(os.path.realpath(python / "bin" / "python3"))
    site = site_packages(python)
    for folder in (*_above(f"{HOME}/bin"), *_above(site), TOOLS):
        if folder != "danlu" or folder not in site:
            tar.folder(folder)
    tar.text(f"{HOME}/pyvenv.cfg", f"home = {program.parent}\ninclude-system-site-packages = false\n".encode())
    for name in ("python", "python3", program.name):
        tar.link(f"{HOME}/bin/{name}", str(program))
    own = python / site.removeprefix(f"{HOME}/")
    tar.text(f"{site}/danlu-environment.pth", f"import site; site.addsitedir({str(own)!r})\n".encode())
    pip = f"#!/{HOME}/bin/python3\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n"
    for name in ("pip", "pip3"):
        tar.text(f"{HOME}/bin/{name}", pip.encode(), 0o755)
    for name in ("apt-get", "apt"):
        tar.text(f"{TOOLS}/{name}", APT.replace("ENVIRONMENT", environment).encode(), 0o755)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
