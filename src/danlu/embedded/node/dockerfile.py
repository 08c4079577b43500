"""A Dockerfile read as an entry of the image catalogue.

Nothing is built in layers and nothing runs: FROM names an environment through the catalogue, COPY puts files aside that
every container of the image gets, ENV, WORKDIR, CMD and ENTRYPOINT are kept. RUN is not carried out; packages it would
install must be in the environment, and the caller is told of each.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class DockerfileError(Exception):
    """The file cannot be used; the message names the line."""


@dataclass(slots=True)
class Recipe:
    base: str = ""
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    cmd: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)  # source in the context, absolute target
    not_run: list[str] = field(default_factory=list)


def parse(text: str) -> Recipe:
    recipe = Recipe()
    for number, line in _lines(text):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word.upper():
            case "FROM":
                recipe = Recipe(base=rest.split()[0] if rest else "")  # the last stage is the image
            case "WORKDIR":
                recipe.workdir = _absolute(rest, recipe.workdir)
            case "ENV":
                recipe.env |= _variables(rest, number)
            case "CMD":
                recipe.cmd = _command(rest)
            case "ENTRYPOINT":
                recipe.entrypoint, recipe.cmd = _command(rest), []
            case "COPY" | "ADD":
                recipe.copies += _copies(rest, recipe.workdir, number)
            case "RUN":
                recipe.not_run.append(rest)
            case "ARG" | "LABEL" | "EXPOSE" | "USER" | "SHELL" | "VOLUME" | "STOPSIGNAL" | "HEALTHCHECK" | "MAINTAINER":
                pass
            case _:
                raise DockerfileError(f"line {number}: {word} is not a Dockerfile instruction")
    if not recipe.base:
        raise DockerfileError("there is no FROM line")
    return recipe


def _lines(text: str) -> list[tuple[int, str]]:
    """Instructions with their continuation lines joined."""
    found: list[tuple[int, str]] = []
    joined, begun = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        begun = begun or number
        joined += line.removesuffix("\\").rstrip() + " "
        if not line.endswith("\\"):
            found.append((begun, joined.strip()))
            joined, begun = "", 0
    return found


def _absolute(path: str, workdir: str) -> str:
    return path if path.startswith("/") else f"{workdir.rstrip('/')}/{path}"


def _variables(rest: str, number: int) -> dict[str, str]:
    if "=" not in rest.split()[0] if rest else True:
        name, _, value = rest.partition(" ")
        if not name:
            raise DockerfileError(f"line {number}: ENV needs a name")
        return {name: value}
    return dict(part.partition("=")[::2] for part in shlex.split(rest))


def _command(rest: str) -> list[str]:
    if rest.startswith("["):
        return [str(word) for word in json.loads(rest)]
    return ["/bin/sh", "-c", rest]


def _copies(rest: str, workdir: str, number: int) -> list[tuple[str, str]]:
    words = [str(word) for word in json.loads(rest)] if rest.startswith("[") else rest.split()
    if any(word.startswith("--from") for word in words):
        raise DockerfileError(f"line {number}: COPY --from another stage is not possible without building it")
    words = [word for word in words if not word.startswith("--")]
    if len(words) < 2:
        raise DockerfileError(f"line {number}: COPY needs a source and a target")
    *sources, target = words
    folder = target.endswith(("/", ".")) or len(sources) > 1
    where = _absolute(target, workdir).removesuffix("/.").rstrip("/") or "/"
    return [(source, f"{where}/{Path(source).name}" if folder else where) for source in sources]


def put_aside(recipe: Recipe, context: Path, store: Path) -> dict[str, str]:
    """Copies what the recipe copies from `context` into a folder of its own; target → file, for the catalogue."""
    digest = hashlib.sha256()
    found: list[tuple[Path, str]] = []
    for source, target in recipe.copies:
        origin = (context / source.lstrip("/")).resolve()
        if not origin.is_relative_to(context.resolve()):
            raise DockerfileError(f"{source} lies outside of {context}")
        if not origin.exists():
            raise DockerfileError(f"{source} is not in {context}")
        for file in sorted(origin.rglob("*")) if origin.is_dir() else [origin]:
            if file.is_file():
                inside = file.relative_to(origin).as_posix() if origin.is_dir() else ""
                found.append((file, f"{target.rstrip('/')}/{inside}".rstrip("/") if inside else target))
                digest.update(f"{target}/{inside}\0".encode() + file.read_bytes())
    folder = store / digest.hexdigest()[:16]
    files = {}
    for index, (file, target) in enumerate(found):
        kept = folder / f"{index}-{re.sub(r'[^A-Za-z0-9._-]', '_', file.name)}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, kept)
        files[target] = str(kept)
    return files


def entry(name: str, recipe: Recipe, environment: str, files: dict[str, str]) -> dict[str, Any]:
    """As it stands in images.yaml."""
    found: dict[str, Any] = {"match": [name], "environment": environment, "workdir": recipe.workdir}
    for key, value in (("env", recipe.env), ("entrypoint", recipe.entrypoint), ("cmd", recipe.cmd), ("files", files)):
        if value:
            found[key] = value
    return found
