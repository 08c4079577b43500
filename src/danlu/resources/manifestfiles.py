"""YAML and JSON that people hand in: files, folders, standard input; several documents in one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from danlu.meta import yamlreader
from danlu.meta.kind import Object

SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"
MOST_BYTES = 64 * 1024 * 1024
# A line of three hyphens begins a document. Inside a block scalar it would stand further to the right.
_BETWEEN = re.compile(rb"^---(?=\s|$)", re.M)


class ManifestError(Exception):
    """What cannot be read: where, and what is wrong."""

    def __init__(self, code: str, place: str, problem: str = "") -> None:
        super().__init__(f"{place}: {problem or code}")
        self.code = code
        self.place = place
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Manifest:
    place: str
    object: Object

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.object["metadata"].get("namespace") or "")


def read(places: Sequence[str], *, deep: bool = False) -> list[Manifest]:
    """All objects, in the order in which they stand. Nothing is handed out where one of them cannot be read: half of a
    folder is no use to anybody."""
    found = [one for place in places for path in _files(place, deep) for one in _objects(path)]
    if not found:
        raise ManifestError("empty", ", ".join(places))
    return found


def _files(place: str, deep: bool) -> Iterator[str]:
    if place == STANDARD_INPUT:
        yield place
        return
    path = Path(place)
    if not path.exists():
        raise ManifestError("missing", place)
    if not path.is_dir():
        yield place
        return
    inner = path.rglob("*") if deep else path.iterdir()
    yield from sorted(str(one) for one in inner if one.suffix in SUFFIXES and one.is_file())


def _objects(place: str) -> Iterator[Manifest]:
    for document in _BETWEEN.split(_bytes(place)):
        try:
            content, _ = yamlreader.load(document)
        except yamlreader.YamlError as error:
            raise ManifestError("unreadable", place, str(error)) from error
        if content is not None:
            yield from _checked(place, content)


def _bytes(place: str) -> bytes:
    try:
        if place == STANDARD_INPUT:
            body = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(place).open("rb") as file:
                body = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ManifestError("unreadable", place, error.strerror or str(error)) from error
    if len(body) > MOST_BYTES:
        raise ManifestError("unreadable", place, f"> {MOST_BYTES >> 20} MiB")
    return body


def _checked(place: str, content: object) -> Iterator[Manifest]:
    if not isinstance(content, dict) or not all(isinstance(content.get(key), str) for key in ("apiVersion", "kind")):
        raise ManifestError("no-object", place)
    if content["kind"] == "List" and isinstance(content.get("items"), list):
        for item in content["items"]:
            yield from _checked(place, item)
        return
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise ManifestError("no-name", place, content["kind"])
    yield Manifest(place, content)
