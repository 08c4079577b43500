"""The commands of scripts/test-cluster; its head says what they do."""

from __future__ import annotations

import argparse
import sys
import time

from tests.cluster import machine
from tests.cluster.cluster import Cluster
from tests.cluster.place import Place, Trouble, build_programs, new_place, places

MISSING = 3  # the machine cannot have a cluster; not a failure of what is tested


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test-cluster")
    parser.add_argument("command", choices=("up", "install", "down", "list"))
    parser.add_argument("name", nargs="?", help="which cluster, when there is more than one")
    arguments = parser.parse_args()
    try:
        if arguments.command == "list":
            for place in places():
                print(place.name, place.kubeconfig)
            return 0
        if arguments.command == "down":
            return down(chosen(arguments.name))
        if arguments.command == "install":
            Cluster(chosen(arguments.name), build_programs()).install(say)
            return 0
        machine.prepare()
        return up(Cluster(new_place(), build_programs()))
    except Trouble as trouble:
        print(f"test-cluster: {trouble}", file=sys.stderr)
        return MISSING if arguments.command == "up" else 1


def up(cluster: Cluster) -> int:
    begun = time.monotonic()
    try:
        cluster.up(say)
    except BaseException:
        cluster.down()
        raise
    say(f"the cluster runs, {time.monotonic() - begun:.0f} s after the start")
    print(f"export KUBECONFIG={cluster.place.kubeconfig}")
    print(f"export PATH={cluster.path.split(':')[0]}:$PATH")
    print(f"inside='{' '.join(cluster.place.prefix)}'   # $inside kubectl get nodes; $inside bash")
    print(f"scripts/test-cluster down {cluster.place.name}")
    return 0


def down(place: Place) -> int:
    left = Cluster(place, machine.SYSTEM).down()
    for line in left:
        print(f"test-cluster: left behind: {line}", file=sys.stderr)
    return 1 if left else 0


def chosen(name: str | None) -> Place:
    found = [place for place in places() if name in (None, place.name)]
    if len(found) != 1:
        there = " ".join(place.name for place in places()) or "none"
        raise Trouble(f"say which cluster; there are: {there}")
    return found[0]


def say(line: str) -> None:
    print(f"test-cluster: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
