"""Pod addresses: one loopback address each, where the system lets any of 127/8 be used (Linux)."""

from __future__ import annotations

import ipaddress
import sys
import zlib


class Addresses:
    """Hands out addresses in turn, so that one just given back is not used again at once."""

    def __init__(self, network: str, salt: str = "") -> None:
        """`salt` decides where to begin, so that two clusters on one machine do not meet in the same addresses."""
        self._network = ipaddress.ip_network(network)
        self._shared = "" if sys.platform.startswith("linux") else "127.0.0.1"
        self._taken: dict[str, str] = {}  # address -> pod uid
        self._next = zlib.crc32(salt.encode()) % (self._network.num_addresses - 2) + 1 if salt else 1

    def take(self, pod_uid: str, wanted: str = "") -> str:
        """`wanted` is the address that the pod had before, and gets again unless another has it."""
        if self._shared:
            return self._shared
        for address, owner in self._taken.items():
            if owner == pod_uid:
                return address
        if wanted and wanted not in self._taken and ipaddress.ip_address(wanted) in self._network:
            self._taken[wanted] = pod_uid
            return wanted
        size = self._network.num_addresses
        for _ in range(size):
            address = str(self._network[self._next])
            self._next = self._next % (size - 2) + 1
            if address not in self._taken:
                self._taken[address] = pod_uid
                return address
        raise RuntimeError(f"no address is left in {self._network}")

    def reserve(self, pod_uid: str, address: str) -> None:
        if address and not self._shared:
            self._taken.setdefault(address, pod_uid)

    def give_back(self, pod_uid: str) -> None:
        for address in [address for address, owner in self._taken.items() if owner == pod_uid]:
            del self._taken[address]
