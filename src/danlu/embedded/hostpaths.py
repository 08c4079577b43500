"""Which paths of the machine no pod is ever given: Danlu's data directory, and the folders that it lies in.

It holds the keys of the cluster and every project's volumes. Admission looks at paths as they are written, the node at
where they lead.
"""

from __future__ import annotations

import os

WHY = "it is, or holds, Danlu's own data directory, where the keys of the cluster lie; choose a folder beside that"


def is_protected(path: str, data_dir: str) -> bool:
    """Whether `path` is the data directory, lies in it, or has it in it. Both are taken as they are written."""
    theirs, own = _plain(path), _plain(data_dir)
    return _is_within(theirs, own) or _is_within(own, theirs)


def is_provisioned(path: str, data_dir: str) -> bool:
    """Whether it is the folder of one volume that the provisioner made: these alone lie in the data directory."""
    return os.path.dirname(_plain(path)) == os.path.join(_plain(data_dir), "volumes")


def _plain(path: str) -> str:
    """Python keeps two slashes at the beginning, which to Linux are one."""
    return os.path.normpath("/" + path.lstrip("/"))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
