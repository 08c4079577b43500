"""One private network namespace for all of a cluster: its links, addresses and rules vanish with it."""

from __future__ import annotations

import subprocess

from tests.cluster.place import ADDRESS, Place


def make(place: Place) -> None:
    subprocess.run(["ip", "netns", "add", place.name], check=True)
    for line in (
        "ip link set lo up",
        "ip link add node0 type bridge",  # an address that is not loopback; `dummy` links are not in every kernel
        f"ip address add {ADDRESS}/24 dev node0",
        "ip link set node0 up",
        f"ip route add default via {ADDRESS}",  # service addresses need a route before iptables sees them
        "sysctl -qw net.ipv4.ip_forward=1",
        "sysctl -qw net.bridge.bridge-nf-call-iptables=1",
    ):
        subprocess.run([*place.prefix, *line.split()], check=True)


def remove(place: Place) -> None:
    if place.namespace_file.exists():
        subprocess.run(["ip", "netns", "delete", place.name], check=True)
