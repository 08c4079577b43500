"""`danlu status`: whether it runs, where, and how pods are run on this machine. Exit code 3 when it does not run."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from typing import Any

import yaml

from danlu.cli.place import data_directory
from danlu.embedded.damage import summary
from danlu.embedded.datadir import DataDirectory, Running
from danlu.embedded.storage import Quarantine

NOT_RUNNING = 3


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="for programs")


def run(arguments: argparse.Namespace) -> int:
    directory = data_directory(arguments)
    holder = directory.holder()
    facts = _facts(directory, holder)
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in facts.items():
            for line in value if isinstance(value, list) else [value]:
                print(f"{name:<10} {line}")
    return 0 if holder else NOT_RUNNING


def _facts(directory: DataDirectory, holder: Running | None) -> dict[str, Any]:
    from danlu.cli.consolelink import link
    from danlu.embedded.node import sandbox

    facts: dict[str, Any] = {"state": "running" if holder else "not running; `danlu up` starts it"}
    if holder:
        healthy = _healthy(directory, holder.url)
        facts["state"] = "running" if healthy else "running, but its API does not answer"
        facts |= {"url": holder.url, "console": link(directory.root, holder.pid) or "none (--no-console)"}
        facts |= {"pid": holder.pid, "since": holder.started, "version": holder.version}
    facts["data"] = str(directory.root)
    facts["kubeconfig"] = str(directory.kubeconfig)
    facts["pods"] = sandbox.capabilities().reason
    set_aside = directory.read_set_aside()
    if set_aside:
        facts["set aside"] = [str(entry) for entry in set_aside]
    damaged = summary(Quarantine(directory.quarantine).findings())
    if damaged:
        facts["damage"] = damaged
    return facts


def _healthy(directory: DataDirectory, url: str) -> bool:
    try:
        config = yaml.safe_load(directory.kubeconfig.read_text())
        authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
        import base64

        context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
        with urllib.request.urlopen(f"{url}/readyz", context=context, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, KeyError):
        return False
