"""The user's own entries of the catalogue: DATA/images.yaml, out of which `danlu images remove` takes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from danlu.embedded import private_files
from danlu.embedded.node.imagesource import ImageError
from danlu.meta import yamlreader


def remove(root: Path, name: str) -> bool:
    """Whether it was there."""
    own = _read(root)
    kept = [entry for entry in own.get("images") or [] if entry.get("match") != [name]]
    if len(kept) == len(own.get("images") or []):
        return False
    own["images"] = kept
    _save(root, own)
    return True


def _read(root: Path) -> dict[str, Any]:
    path = root / "images.yaml"
    try:
        found = yamlreader.load(path.read_bytes())[0] if path.exists() else None
    except yamlreader.YamlError as error:
        raise ImageError(f"{path} is not valid YAML: {error}; mend it or remove it") from None
    if found is not None and not isinstance(found, dict):
        raise ImageError(f"{path} is not a catalogue: it has to be a map with `images` and `environments`")
    return found or {}


def _save(root: Path, own: dict[str, Any]) -> None:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_files.write(root / "images.yaml", yaml.safe_dump(own, sort_keys=False, allow_unicode=True).encode())
