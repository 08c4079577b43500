"""`danlu status`: whether it runs, where, and how pods are run on this machine. Exit code 3 when it does not run."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from typing import Any

from danlu.cli.place import data_directory
from danlu.embedded.damage import summary
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import Quarantine
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
        for name, value in found.items():
            for line in value if isinstance(value, list) else [value]:
                print(f"{name:<10} {line}")
    return 0 if holder else NOT_RUNNING


def facts(directory: DataDirectory, holder: Running | None) -> dict[str, Any]:
    from danlu.cli.consolelink import link
    from danlu.embedded.node import sandbox

    found: dict[str, Any] = {"state": "running" if holder else "not running; `danlu up` starts it"}
    if holder:
        healthy = _healthy(directory, holder.url)
        found["state"] = "running" if healthy else "running, but its API does not answer"
        found |= {"url": holder.url, "console": link(directory.root, holder.pid) or "none (--no-console)"}
        found |= {"pid": holder.pid, "since": holder.started, "version": holder.version}
    found["data"] = str(directory.root)
    found["kubeconfig"] = str(directory.kubeconfig)
    found["pods"] = sandbox.capabilities().reason
    set_aside = directory.read_set_aside()
    if set_aside:
        found["set aside"] = [str(entry) for entry in set_aside]
    damaged = summary(Quarantine(directory.quarantine).findings())
    if damaged:
        found["damage"] = damaged
    return found


def _healthy(directory: DataDirectory, url: str) -> bool:
    try:
        config = manifests.load(directory.kubeconfig.read_bytes())[0]
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        import base64

        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        with urllib.request.urlopen(f"{url}/readyz", context=context, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, KeyError):
        return False
