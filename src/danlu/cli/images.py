"""`danlu images`: what stands behind image names on this machine.

danlu images                                    list environments and patterns
danlu images build torch                        make an environment of the catalogue
danlu images share torch                        put it where every account of this machine finds it
danlu images build -t NAME [-f FILE] FOLDER     what `docker build` would be: an entry made from a Dockerfile
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import yaml

from danlu.cli.main import CommandError, UsageError
from danlu.cli.place import data_directory
from danlu.embedded import private_files
from danlu.embedded.node import dockerfile
from danlu.embedded.node.images import SHARED_CACHE, Catalogue, Environment, ImageError, build
from danlu.embedded.node.sharing import share
from danlu.meta import manifests


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", nargs="?", choices=("list", "build", "share", "remove"), default="list")
    command.add_argument(
        "target",
        nargs="?",
        help="build: an environment's name, or the folder of a Dockerfile; share: an environment; remove: an image",
    )
    command.add_argument("-t", "--tag", metavar="NAME", help="build: the image's name, as in `docker build -t`")
    command.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="build: the Dockerfile (default: FOLDER/Dockerfile)"
    )
    command.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        default=SHARED_CACHE,
        help=f"share: another folder than {SHARED_CACHE}; accounts that are to use it set DANLU_CACHE to it",
    )


def run(arguments: argparse.Namespace) -> int:
    root = data_directory(arguments).root
    try:
        if arguments.what == "list":
            return _list(Catalogue(root), root)
        if not arguments.target:
            needed = {"build": "an environment, or -t NAME and a folder", "share": "an environment"}
            what = needed.get(arguments.what, "an image")
            raise UsageError(f"images {arguments.what} needs {what}; `danlu images` lists them")
        if arguments.what == "remove":
            return _remove(root, arguments.target)
        if arguments.what == "share":
            return _share(Catalogue(root), arguments.target, arguments.to)
        if arguments.tag:
            return _from_dockerfile(arguments, root)
        return _build(Catalogue(root), arguments.target)
    except (ImageError, dockerfile.DockerfileError) as error:
        raise CommandError(str(error)) from error


def _list(catalogue: Catalogue, root: Path) -> int:
    print(f"{'ENVIRONMENT':<14} {'STATE':<10} WHERE")
    for name, environment in catalogue.environments().items():
        state = ("built" if environment.is_built else "not built") if environment.requirements else "ready"
        print(f"{name:<14} {state:<10} {environment.folder or 'the tools of this machine'}")
    print(f"\n{'ENVIRONMENT':<14} IMAGES")
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120)) - 15
    for entry in catalogue.entries():
        first, *more = textwrap.wrap("  ".join(entry.get("match") or ()), width) or [""]
        print(f"{entry.get('environment', 'default'):<14} {first}")
        for line in more:
            print(f"{'':<14} {line}")
    print(f"\nYour own entries go into {root / 'images.yaml'}; `danlu images build -t NAME FOLDER` writes one.")
    return 0


def _environment(catalogue: Catalogue, name: str) -> Environment:
    environments = catalogue.environments()
    if name not in environments:
        raise CommandError(f"there is no environment {name!r}; there are {', '.join(sorted(environments))}")
    return environments[name]


def _share(catalogue: Catalogue, name: str, folder: Path) -> int:
    bar = Progress(f"sharing environment {name}")
    shared = share(_environment(catalogue, name), folder.absolute(), bar.show)
    bar.done(f"environment {name} is shared: {shared}")
    if folder != SHARED_CACHE:
        print(f"accounts that are to use it: export DANLU_CACHE={folder.absolute()}")
    return 0


def _build(catalogue: Catalogue, name: str) -> int:
    environment = _environment(catalogue, name)
    if environment.is_built:
        print(f"environment {name} is ready: {environment.folder or 'the tools of this machine'}")
        return 0
    bar = Progress(f"building environment {name}")
    folder = build(environment, bar.show)
    bar.done(f"environment {name} is built: {folder}")
    return 0


class Progress:
    """One line that says what is going on; plain lines now and then where there is no terminal."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._begun = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._told = 0.0
        self._steps = 0

    def show(self, line: str) -> None:
        self._steps += line.startswith("Collecting")
        passed = time.monotonic() - self._begun
        text = f"{self._title}: {passed:3.0f} s, {self._steps} packages, {line.strip()}"
        if self._terminal:
            width = shutil.get_terminal_size().columns
            sys.stderr.write("\r" + text[: width - 1].ljust(width - 1))
            sys.stderr.flush()
        elif passed - self._told >= 10:
            self._told = passed
            print(text[:160], file=sys.stderr, flush=True)

    def done(self, line: str) -> None:
        if self._terminal:
            sys.stderr.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
        print(line)


def _from_dockerfile(arguments: argparse.Namespace, root: Path) -> int:
    context = Path(arguments.target)
    file: Path = arguments.file or context / "Dockerfile"
    try:
        recipe = dockerfile.parse(file.read_text())
    except FileNotFoundError as error:
        raise CommandError(f"there is no {file}; name it with -f") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    except dockerfile.DockerfileError as error:
        raise CommandError(f"{file}: {error}") from error
    base = Catalogue(root).resolve(recipe.base)
    files = dockerfile.put_aside(recipe, context, root / "images")
    written = dockerfile.entry(arguments.tag, recipe, base.environment.name, files)
    own = _own(root)
    own["images"] = [written, *(e for e in own.get("images") or [] if e.get("match") != [arguments.tag])]
    _save(root, own)
    for line in recipe.not_run:
        print(f"not run: {line[:100]}", file=sys.stderr)
    if base.note:
        print(f"note: {base.note}", file=sys.stderr)
    files_text = "1 file" if len(files) == 1 else f"{len(files)} files"
    print(f"{arguments.tag}: environment {base.environment.name}, {files_text} of {context}; nothing has to be pushed")
    return 0


def _remove(root: Path, name: str) -> int:
    own = _own(root)
    kept = [entry for entry in own.get("images") or [] if entry.get("match") != [name]]
    if len(kept) == len(own.get("images") or []):
        raise CommandError(f"{name} is not among your own entries in {root / 'images.yaml'}")
    own["images"] = kept
    _save(root, own)
    print(f"removed {name} from {root / 'images.yaml'}")
    return 0


def _own(root: Path) -> dict[str, Any]:
    path = root / "images.yaml"
    try:
        found = manifests.load(path.read_bytes())[0] if path.exists() else None
    except manifests.YamlError as error:
        raise CommandError(f"{path} is not valid YAML: {error}; mend it or remove it") from None
    if found is not None and not isinstance(found, dict):
        raise CommandError(f"{path} is not a catalogue: it has to be a map with `images` and `environments`")
    return found or {}


def _save(root: Path, own: dict[str, Any]) -> None:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_files.write(root / "images.yaml", yaml.safe_dump(own, sort_keys=False, allow_unicode=True).encode())
