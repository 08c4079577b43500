"""`danlu uninstall`: takes Danlu from a cluster and leaves what users made, unless that is asked for."""

from __future__ import annotations

import argparse

from danlu.cli import cluster
from danlu.cli.main import CommandError
from danlu.client.client import Client
from danlu.operator.install import applying, removal
from danlu.operator.install.options import NAMESPACE
from danlu.operator.install.removal import Removal


def arguments(command: argparse.ArgumentParser) -> None:
    cluster.arguments(command)
    command.add_argument("--namespace", "-n", metavar="NAME", help="default: where Danlu is found")
    command.add_argument(
        "--delete-data", action="store_true", help="also the kinds' definitions, and with them every job and notebook"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be deleted and kept")
    command.add_argument("--yes", "-y", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> int:
    async def work(client: Client, server: str) -> int:
        return await _uninstall(client, server, arguments)

    return cluster.on_cluster(arguments, work)


async def _uninstall(client: Client, server: str, arguments: argparse.Namespace) -> int:
    known = await applying.remembered(client)
    namespace = arguments.namespace or (known[0].namespace if known else NAMESPACE)
    found = await removal.look(client, namespace)
    if found.helm_release:
        raise CommandError(
            f"Danlu was installed here by Helm; take it away with: helm uninstall {found.helm_release} -n {namespace}"
        )
    if not found.objects and not (arguments.delete_data and found.definitions):
        print(f"Danlu is not installed on {server}: nothing to take away")
        _tell_kept(found, delete_data=False)
        return 0
    print(f"On {server} this is deleted:")
    for one in found.objects:
        place = f"{one['metadata']['namespace']}/" if one["metadata"].get("namespace") else ""
        print(f"  - {one['kind']} {place}{one['metadata']['name']}")
    if arguments.delete_data:
        for one in found.definitions:
            kind = one["spec"]["names"]["kind"]
            count = found.counts.get(kind, 0)
            print(f"  - CustomResourceDefinition {one['metadata']['name']}, and with it {count} {kind} objects")
    if found.namespace is not None and not found.others:
        print(f"  - Namespace {found.namespace['metadata']['name']}")
    _tell_kept(found, delete_data=arguments.delete_data)
    if arguments.dry_run:
        print("nothing was changed (--dry-run)")
        return 0
    question = "Delete this, with all jobs and notebooks?" if arguments.delete_data else "Delete this?"
    if not cluster.agreed(question, arguments.yes):
        print("nothing was changed")
        return 1
    await removal.take_away(client, found, data=arguments.delete_data, tell=print)
    return 0


def _tell_kept(found: Removal, *, delete_data: bool) -> None:
    if found.definitions and not delete_data:
        counted = ", ".join(f"{count} {kind}" for kind, count in found.counts.items()) or "no objects of theirs"
        print(
            f"kept: {len(found.definitions)} definitions of kinds with {counted}, the roles danlu-view and danlu-edit, "
            "pods that run, volumes and their claims; `danlu install` takes them up again, --delete-data deletes the "
            "definitions and their objects"
        )
    if delete_data:
        print("kept: volumes and their claims; they are yours: kubectl get pvc -A")
    if found.namespace is not None and found.others:
        name, first = found.namespace["metadata"]["name"], ", ".join(found.others[:3])
        print(f"kept: namespace {name}, because of what others have in it: {first}")
