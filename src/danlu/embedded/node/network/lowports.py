"""Ports below 1024 for those who may not have them: each stands for a port that anybody may bind, at the same address.

Pods and services have addresses of their own, so port 80 of one is port 61520 of that address and of no other. The
ports meant lie above those that the kernel gives to clients. Who speaks of a low port anywhere (a pod's process, a
service, a probe, port-forward) goes on to name it as it is; only who binds and who connects knows better: the shims
(`ownports`), and `podsockets` and `services` for what Danlu itself carries.

Standard library only: the shim reads it.
"""

from __future__ import annotations

import os

PRIVILEGED = 1024
RAISED_BY = 0xF000  # 61440: the ports meant end at 62463
SETTING = "/proc/sys/net/ipv4/ip_unprivileged_port_start"


def first_free() -> int:
    """The first port that this account may bind; 0 when it may have them all. Where nobody tells, it is tried."""
    if os.geteuid() == 0:
        return 0
    try:
        with open(SETTING) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def meant(port: int, first: int) -> int:
    """The port that is really bound for this one, where those before `first` cannot be had."""
    return port + RAISED_BY if 0 < port < min(first, PRIVILEGED) else port


def said(port: int) -> int:
    """What a port of the machine is called by those who do not know better."""
    return port - RAISED_BY if RAISED_BY < port < RAISED_BY + PRIVILEGED else port
