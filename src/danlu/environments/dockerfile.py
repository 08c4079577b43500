"""A Dockerfile read as an entry of the image catalogue.

Nothing is built in layers and nothing runs: FROM names an environment through the catalogue, COPY puts files aside that
every container of the image gets, ENV, WORKDIR, CMD and ENTRYPOINT are kept. RUN is not carried out; packages it would
install must be in the environment, and the caller is told of each.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from danlu.meta.nesting import parse_json

IGNORED = frozenset(
    ("LABEL", "EXPOSE", "USER", "SHELL", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER", "ONBUILD")
)
VARIABLE = re.compile(r"\\\$|\$(?:(\w+)|\{(\w+)(?::?([-+])([^}]*))?\})")
HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")


class DockerfileError(Exception):
    """The file cannot be used; the message names the line."""


@dataclass(frozen=True, slots=True)
class Copy:
    source: str  # in the context; may be a pattern or a folder
    target: str  # absolute
    into: bool  # the target is a folder: a file keeps its name


@dataclass(slots=True)
class Recipe:
    base: str = ""
    workdir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    cmd: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)  # ARG: for the Dockerfile itself, not for containers

    def fill(self, text: str) -> str:
        """$NAME, ${NAME}, ${NAME:-else} and ${NAME:+then}, as in ENV, WORKDIR and COPY."""
        known = self.arguments | self.env

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[2]
            if name is None:
                return "$"
            if name == "PATH" and name not in known:
                return "$PATH"  # the environment's own, known only when a container starts
            if found[3] == "+":
                return found[4] if known.get(name) else ""
            return known.get(name) or (found[4] or "" if found[3] else "")

        return VARIABLE.sub(value, text)


def parse(text: str) -> Recipe:
    recipe, outer = Recipe(), Recipe()  # ARG before the first FROM is for FROM lines
    for number, line in _lines(text):
        word, _, rest = line.partition(" ")
        rest, word = rest.strip(), word.upper()
        if word == "FROM":
            words = [w for w in outer.fill(rest).split() if not w.startswith("--")]
            if not words:
                raise DockerfileError(f"line {number}: FROM needs an image")
            recipe = Recipe(base=words[0])  # the last stage is the image
        elif word == "ARG":
            name, _, default = rest.partition("=")
            scope = recipe if recipe.base else outer
            scope.arguments[name] = scope.fill(default.strip("\"'")) or outer.arguments.get(name, "")
        elif not recipe.base:
            raise DockerfileError(f"line {number}: {word} comes before FROM")
        else:
            _apply(recipe, word, rest, number)
    if not recipe.base:
        raise DockerfileError("there is no FROM line")
    return recipe


def _apply(recipe: Recipe, word: str, rest: str, number: int) -> None:
    match word:
        case "WORKDIR":
            recipe.workdir = _absolute(recipe.fill(rest), recipe.workdir)
        case "ENV":
            recipe.env |= {name: recipe.fill(value) for name, value in _variables(rest, number).items()}
        case "CMD":
            recipe.cmd = _command(rest)
        case "ENTRYPOINT":
            recipe.entrypoint, recipe.cmd = _command(rest), []
        case "COPY" | "ADD":
            recipe.copies += _copies(recipe, rest, number)
        case "RUN":
            recipe.not_run.append(rest)
        case _ if word not in IGNORED:
            raise DockerfileError(f"line {number}: {word} is not a Dockerfile instruction")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Instructions with their continuation lines joined; what a here-document holds is left out."""
    joined, begun, until = "", 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if until:
            until = "" if line == until else until
            continue
        if not line or line.startswith("#"):
            continue
        begun = begun or number
        joined += line.removesuffix("\\").rstrip() + " "
        if line.endswith("\\"):
            continue
        document = HEREDOC.search(line)
        until = document[1] if document else ""
        yield begun, joined.strip()
        joined, begun = "", 0
    if joined:
        yield begun, joined.strip()


def _absolute(path: str, workdir: str) -> str:
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{workdir}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _variables(rest: str, number: int) -> dict[str, str]:
    first = rest.split(maxsplit=1)[0] if rest else ""
    if not first.partition("=")[0]:
        raise DockerfileError(f"line {number}: ENV needs a name")
    if "=" not in first:
        return {first: rest[len(first) :].strip()}
    try:
        return dict(part.partition("=")[::2] for part in shlex.split(rest))
    except ValueError as error:
        raise DockerfileError(f"line {number}: {error}") from error


def _json_words(rest: str) -> list[str] | None:
    """The JSON form of CMD and COPY; what only looks like it is taken as a plain line, as docker does."""
    try:
        found = parse_json(rest) if rest.startswith("[") else None
    except ValueError:
        return None
    return [str(word) for word in found] if isinstance(found, list) else None


def _command(rest: str) -> list[str]:
    words = _json_words(rest)
    return ["/bin/sh", "-c", rest] if words is None else words


def _copies(recipe: Recipe, rest: str, number: int) -> list[Copy]:
    while rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        if flag.startswith("--from="):
            raise DockerfileError(f"line {number}: COPY --from another stage is not possible without building it")
    words = _json_words(rest.strip()) or recipe.fill(rest).split()
    if len(words) < 2:
        raise DockerfileError(f"line {number}: COPY needs a source and a target")
    *sources, target = words
    into = target.endswith(("/", "/.")) or target in (".", "..") or len(sources) > 1
    return [Copy(source, _absolute(target, recipe.workdir), into) for source in sources]


def put_aside(recipe: Recipe, context: Path, store: Path) -> dict[str, str]:
    """Copies what the recipe copies from `context` into a folder of its own; target → file, for the catalogue."""
    ignored = _ignore_rules(context)
    targets: dict[str, Path] = {}  # a later COPY wins
    for copy in recipe.copies:
        for origin in _origins(copy, context):
            # A folder's contents are copied, not the folder itself.
            inside = sorted(origin.rglob("*")) if origin.is_dir() else [origin]
            for file in inside:
                if not file.is_file() or _is_ignored(file.relative_to(context.resolve()), ignored):
                    continue
                name = file.relative_to(origin).as_posix() if origin.is_dir() else origin.name if copy.into else ""
                targets[_absolute(name, copy.target)] = file
    digest = hashlib.sha256()
    for target, file in sorted(targets.items()):
        digest.update(f"{target}\0".encode() + file.read_bytes())
    folder = store / digest.hexdigest()[:16]
    files = {}
    for index, (target, file) in enumerate(sorted(targets.items())):
        kept = folder / f"{index}-{re.sub(r'[^A-Za-z0-9._-]', '_', file.name)}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, kept)
        files[target] = str(kept)
    return files


def _origins(copy: Copy, context: Path) -> list[Path]:
    root, source = context.resolve(), copy.source.lstrip("/")
    if any(letter in source for letter in "*?["):
        found = sorted(root.glob(source))
    else:
        found = [root / source]
    origins = [path.resolve() for path in found if path.exists()]
    if not all(path.is_relative_to(root) for path in (*origins, *(path.resolve() for path in found))):
        raise DockerfileError(f"{copy.source} lies outside of {context}")
    if not origins:
        raise DockerfileError(f"{copy.source} is not in {context}")
    return origins


def _ignore_rules(context: Path) -> list[tuple[str, bool]]:
    """(pattern, whether it leaves out), of .dockerignore."""
    try:
        lines = (context / ".dockerignore").read_text().splitlines()
    except OSError:
        return []
    rules = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [(rule.lstrip("!").strip("/"), not rule.startswith("!")) for rule in rules]


def _is_ignored(path: Path, rules: list[tuple[str, bool]]) -> bool:
    left_out = False
    places = [path.as_posix(), *(parent.as_posix() for parent in path.parents)]
    for pattern, leaves_out in rules:
        if any(fnmatchcase(place, pattern) or fnmatchcase("/" + place, pattern) for place in places):
            left_out = leaves_out
    return left_out


def entry(name: str, recipe: Recipe, environment: str, files: dict[str, str]) -> dict[str, Any]:
    """As it stands in images.yaml."""
    found: dict[str, Any] = {"match": [name], "environment": environment, "workdir": recipe.workdir}
    for key, value in (("env", recipe.env), ("entrypoint", recipe.entrypoint), ("cmd", recipe.cmd), ("files", files)):
        if value:
            found[key] = value
    return found
