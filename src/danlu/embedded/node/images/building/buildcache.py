"""What a step has made, by the digest of all that it was made from. Lies in the store and goes with its sweep."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from danlu.embedded import private_files
from danlu.embedded.node.images.building.layertar import BuiltLayer
from danlu.embedded.node.images.imagestore import CACHE, ImageStore


class BuildCache:
    def __init__(self, store: ImageStore, *, off: bool = False) -> None:
        """`off`: nothing is found, but what is made is kept for the next build."""
        self._store = store
        self._folder = store.root / CACHE
        self._off = off

    def find(self, key: str) -> list[BuiltLayer] | None:
        if self._off:
            return None
        try:
            found = [BuiltLayer(*one) for one in json.loads((self._folder / "steps" / key).read_text())]
            return found if all(self._store.has(layer.blob) for layer in found) else None
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, key: str, layers: list[BuiltLayer]) -> None:
        folder = self._folder / "steps"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        private_files.write(folder / key, json.dumps(layers).encode(), durable=False)

    def mount(self, name: str) -> Path:
        """The folder of a cache mount."""
        folder = self._folder / "mounts" / hashlib.sha256(name.encode()).hexdigest()[:32]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder


def key(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
