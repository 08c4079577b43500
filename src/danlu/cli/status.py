"""`danlu status`: whether it runs, where, and how pods are run on this machine. Exit code 3 when it does not run."""

from __future__ import annotations

import argparse
import json
import shutil
import ssl
import urllib.request
from typing import Any

from danlu.cli.place import data_directory
from danlu.cli.trust import model
from danlu.embedded.damage import summary
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import Quarantine
from danlu.embedded.trust import ALONE, SHARED
from danlu.meta import manifests

NOT_RUNNING = 3


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    holder = directory.holder()
    found = facts(directory, holder)
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        if "trust" in found:
            found["trust"] = model(found["trust"] == SHARED)
        for name, value in found.items():
            for line in value if isinstance(value, list) else [value]:
                print(f"{name:<10} {line}")
    return 0 if holder else NOT_RUNNING


def facts(directory: DataDirectory, holder: Running | None) -> dict[str, Any]:
    from danlu.cli.consolelink import link
    from danlu.embedded.node import sandbox

    found: dict[str, Any] = {"state": "running" if holder else "not running; `danlu up` starts it"}
    if holder:
        said = _health(directory, holder.url)
        found["state"] = "running" if said else "running, but its API does not answer"
        if "alarm:NOSPACE" in said:
            found["alarm"] = _alarm(directory)
        found |= {"url": holder.url, "console": link(directory.root, holder.pid) or "none (--no-console)"}
        found["trust"] = SHARED if holder.shared else ALONE
        found |= {"pid": holder.pid, "since": holder.started, "version": holder.version}
    found["data"] = str(directory.root)
    found["kubeconfig"] = str(directory.kubeconfig)
    found["pods"] = sandbox.capabilities().reason
    held = directory.read_held() if holder else []
    if held:
        found["held"] = held
    set_aside = directory.read_set_aside()
    if set_aside:
        found["set aside"] = [str(entry) for entry in set_aside]
    damaged = summary(Quarantine(directory.quarantine).findings())
    if damaged:
        found["damage"] = damaged
    return found


def _alarm(directory: DataDirectory) -> str:
    free = shutil.disk_usage(directory.root).free / (1 << 20)
    return (
        f"NOSPACE: the store has no room to grow ({free:.0f} MiB free on its disk); nothing is created until there is "
        "some: delete objects (deletes work), or free disk space"
    )


def _health(directory: DataDirectory, url: str) -> str:
    """What the API says of itself; "" when it does not answer."""
    try:
        config = manifests.load(directory.kubeconfig.read_bytes())[0]
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        import base64

        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        with urllib.request.urlopen(f"{url}/readyz?verbose", context=context, timeout=5) as answer:
            return str(answer.read().decode(errors="replace"))
    except (OSError, ValueError, KeyError):
        return ""
