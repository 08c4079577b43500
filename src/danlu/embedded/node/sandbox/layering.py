"""The folders that every container begins with, in memory, below what it writes on the disk.

Nearly every container leaves its file tree as it was made for it: forty folders, made and removed again on the disk for
each. So they lie in a tmpfs, and the container's writable layer lies over them as an overlay: the disk sees only what
the container itself writes. Runs where `sandbox` runs.

The overlay is `volatile`: ending any other makes the kernel sync the whole file system beneath, and a layer does
not outlive its container anyway. Where the kernel has none (before 5.10) or the layer's file system cannot be part of
one (another overlay), the folders are made on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from danlu.embedded.node.sandbox import kernel

WORK = "overlay"  # beside the layer; the kernel's own


def lay(layer: str, make_folders: Callable[[str], None], *, as_user: bool, trees: Sequence[str] = ()) -> bool:
    """Makes `layer` a mount, as pivot_root wants it, with the folders in it. In a mount namespace of one's own.

    `trees` are those of an image, the topmost first: they lie over the folders. False where there is no overlay, and
    so nothing of them.
    """
    work = os.path.join(os.path.dirname(layer), WORK)
    os.makedirs(work, exist_ok=True)
    # By descriptor: the tmpfs will hide the layer, and a path could have a colon or a comma in it.
    handles = [_open(layer), _open(work)]
    try:
        kernel.mount("tmpfs", layer, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
        make_folders(layer)
        handles.append(_open(layer))
        handles += [_open(tree) for tree in trees]
        upper, worked, folders, *over = (f"/proc/self/fd/{handle}" for handle in handles)
        lower = ":".join((*over, folders))
        options = f"lowerdir={lower},upperdir={upper},workdir={worked},volatile" + (",userxattr" if as_user else "")
        try:
            kernel.mount("overlay", layer, "overlay", 0, options)
        except OSError:
            kernel.detach(layer)
            kernel.mount(layer, layer, None, kernel.MS_BIND | kernel.MS_REC)
            if not trees:
                make_folders(layer)
            return False
        return True
    finally:
        for handle in handles:
            os.close(handle)


def _open(folder: str) -> int:
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
