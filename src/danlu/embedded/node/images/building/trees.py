"""What COPY and ADD take from, seen as one tree of files: the build's context, or the layers of a stage or an image.

A path is relative to the root, without a slash at either end; "" is the root. Links are looked up here, component
by component, and never lead out: in an image they begin at its own root, in a context one that leaves it is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from danlu.embedded.node.images import unionview, unpacking
from danlu.embedded.node.images.building import ignorefile
from danlu.embedded.node.images.building.ignorefile import IgnoreRules
from danlu.embedded.node.sandbox import symlinks


class LeadsOut(Exception):
    """A path, or a link in it, leaves the context."""


class SourceTree(Protocol):
    keeps_owners: bool  # those of its files are kept; else they become root's

    def host(self, path: str) -> Path | None:
        """Where it lies on this machine; None where it is not there."""
        ...

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted."""
        ...

    def resolve(self, path: str) -> str:
        """The same without links. What is missing stays as it is written. Raises LeadsOut."""
        ...


def kind(path: Path | None) -> int:
    """S_IFDIR, S_IFREG, S_IFLNK, …; 0 where there is nothing."""
    return unionview.kind_of(path) if path is not None else 0


class ContextTree:
    keeps_owners = False

    def __init__(self, root: Path, rules: IgnoreRules) -> None:
        self._root = root.resolve()
        self._rules = rules

    def host(self, path: str) -> Path | None:
        if path and self._is_left_out(path):
            return None
        found = self._root / path
        return found if os.path.lexists(found) else None

    def _is_left_out(self, path: str) -> bool:
        if not self._rules.leaves_out(path):
            return False
        # A folder that is left out is there all the same where something in it is let in again.
        return not (self._rules.has_exceptions and kind(self._root / path) == stat.S_IFDIR and self._lets_in(path))

    def _lets_in(self, path: str) -> bool:
        for folder, folders, files in os.walk(self._root / path):
            at = os.path.relpath(folder, self._root)
            if any(not self._rules.leaves_out(f"{at}/{name}") for name in (*folders, *files)):
                return True
        return False

    def names(self, path: str) -> list[str]:
        found = sorted(os.listdir(self._root / path))
        return [name for name in found if not self._is_left_out(f"{path}/{name}" if path else name)]

    def resolve(self, path: str) -> str:
        at: list[str] = []
        rest, links = path.split("/")[::-1], 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not at:
                    raise LeadsOut(path)
                at = at[:-1]
                continue
            here = self._root.joinpath(*at, part)
            if not here.is_symlink():
                at.append(part)
                continue
            links += 1
            leads = os.readlink(here)
            if links > symlinks.MOST_LINKS or leads.startswith("/"):
                raise LeadsOut(path)
            rest += leads.split("/")[::-1]
        return "/".join(at)


class LayersTree:
    """Layers as a container would see them, the lowest first."""

    def __init__(self, layers: list[Path]) -> None:
        self.layers = layers
        self.keeps_owners = os.geteuid() == 0

    def host(self, path: str) -> Path | None:
        found = unionview.topmost(self.layers, path.split("/") if path else [])
        if found is None and not path and self.layers:
            return self.layers[-1] / unpacking.TREE
        return found

    def names(self, path: str) -> list[str]:
        parts = path.split("/") if path else []
        return sorted(name for name in self._all_names(path) if unionview.topmost(self.layers, [*parts, name]))

    def _all_names(self, path: str) -> set[str]:
        found: set[str] = set()
        for layer in self.layers:
            folder = layer / unpacking.TREE / path
            if kind(folder) == stat.S_IFDIR:
                found.update(os.listdir(folder))
        return found

    def resolve(self, path: str) -> str:
        try:
            return "/".join(unionview.follow(self.layers, path))
        except symlinks.TooManyLinks as error:
            raise LeadsOut(path) from error


def walk(tree: SourceTree, path: str) -> Iterator[str]:
    """All below a folder, parents first. Links are not followed."""
    for name in tree.names(path):
        inner = f"{path}/{name}" if path else name
        yield inner
        if kind(tree.host(inner)) == stat.S_IFDIR:
            yield from walk(tree, inner)


def matching(tree: SourceTree, pattern: str) -> list[tuple[str, str]]:
    """What a source of COPY means, sorted: its name, and its path with all links followed. Raises LeadsOut."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not any(letter in pattern for letter in "*?["):
        found = tree.resolve("/".join(parts))
        return [(parts[-1] if parts else "", found)] if tree.host(found) is not None else []
    at = [("", "")]
    for part in parts:
        if part == "..":
            raise LeadsOut(pattern)
        fits = ignorefile.pattern(part.replace("**", "*"))
        inner = []
        for _, folder in at:
            if kind(tree.host(folder)) == stat.S_IFDIR:
                names = [name for name in tree.names(folder) if fits.fullmatch(name)]
                inner += [(name, tree.resolve(f"{folder}/{name}" if folder else name)) for name in names]
        at = inner
    return [(name, path) for name, path in at if tree.host(path) is not None]
