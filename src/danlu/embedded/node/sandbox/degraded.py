"""Mode ``none``: a plain process in the host's file tree, for machines that allow no namespaces."""

from __future__ import annotations

import contextlib
import os

from danlu.embedded.node.sandbox import rootfs
from danlu.embedded.node.sandbox.box import BindMount, Sandbox

NO_LINKS = (*rootfs.SYSTEM_FOLDERS, "dev", "proc", "sys", "boot")


def enter(box: Sandbox) -> None:
    """Volumes by links where the path is free; the rest is told through the environment (see launch).

    The paths are the host's, and other pods may want the same ones: what is there is never touched, system folders
    get no links, and `remove_links` takes ours away when the pod is over.
    """
    for entry in sorted(_linkable(box), key=lambda entry: entry["target"].count("/")):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(entry["target"]), exist_ok=True)
            os.symlink(entry["source"], entry["target"])
    for candidate in (box["cwd"], box["root"] + box["cwd"]):
        try:
            os.chdir(candidate)
            return
        except OSError:
            continue
    os.makedirs(box["root"] + box["cwd"], exist_ok=True)
    os.chdir(box["root"] + box["cwd"])


def _linkable(box: Sandbox) -> list[BindMount]:
    return [
        entry
        for entry in box["mounts"]
        if entry["target"] != entry["source"] and entry["target"].split("/")[1] not in NO_LINKS
    ]


def remove_links(box: Sandbox) -> None:
    """Takes away the links of a degraded container that still lead to its volumes. Nothing to do in other modes."""
    if box["mode"] != "none":
        return
    for entry in _linkable(box):
        with contextlib.suppress(OSError):
            if os.readlink(entry["target"]) == entry["source"]:
                os.unlink(entry["target"])
