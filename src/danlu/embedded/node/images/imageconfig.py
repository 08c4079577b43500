"""From an image in the store to what the node runs: its configuration read, its layers unpacked."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from danlu.embedded.node.images import onmachine, unionview
from danlu.embedded.node.images.accounts import LARGEST_FILE, ImageAccounts
from danlu.embedded.node.images.imagestore import StoredImage
from danlu.embedded.node.images.reference import Reference
from danlu.embedded.node.imagesource import DEFAULT_PATH, Image, ImageError, ImageSource


def runnable(
    name: str, reference: Reference, image: StoredImage, layers: list[Path], source: ImageSource | None = None
) -> Image:
    """Raises ImageError where its configuration is not one. `layers`: unpacked, the lowest first. `source`: knows the
    environment that it was built on, if it was built on one.
    """
    config = image.config.get("config") or {}
    if not isinstance(config, Mapping):
        raise ImageError(f'image "{name}" has a configuration that is not one')
    stand = onmachine.stated(image.config)
    below = onmachine.checked(stand, source) if stand is not None and source is not None else None
    env = {"PATH": DEFAULT_PATH} if below is None else onmachine.variables(below) | {"DANLU_IMAGE": name}
    for line in _words(config, "Env", name):
        key, _, value = line.partition("=")
        if key:
            env[key] = value
    made = Image(
        name,
        f"{reference.repository}@{image.digest}",
        tuple(_words(config, "Entrypoint", name)),
        tuple(_words(config, "Cmd", name)),
        env,
        posixpath.join("/", str(config.get("WorkingDir") or "/")),
        layers=tuple(str(folder) for folder in reversed(layers)),
        stop_signal=str(config.get("StopSignal") or ""),
    )
    if below is not None and stand is not None:
        return onmachine.laid_over(made, below, stand)
    passwd, group = (
        unionview.read(layers, path, LARGEST_FILE).decode(errors="replace") for path in ("/etc/passwd", "/etc/group")
    )
    return replace(made, accounts=ImageAccounts(str(config.get("User") or ""), passwd, group))


def _words(config: Mapping[str, Any], key: str, name: str) -> list[str]:
    found = config.get(key) or []
    if not isinstance(found, list) or not all(isinstance(word, str) and "\0" not in word for word in found):
        raise ImageError(f'image "{name}" has a configuration whose {key} is not a list of words')
    return found
