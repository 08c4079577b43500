"""Pod addresses: one loopback address each, where the system lets any of 127/8 be used (Linux).

Who has which is written down beside the pod's other files (DATA/pods/<uid>/address), not read from the pod's status: a
person who may write that of a pod of theirs must not come by the address of another's at the next start.
"""

from __future__ import annotations

import contextlib
import ipaddress
import sys
import zlib
from pathlib import Path

RECORD = "address"


class Addresses:
    """Hands out addresses in turn, so that one just given back is not used again at once."""

    def __init__(self, network: str, data_dir: Path) -> None:
        """The data directory decides where to begin, so that two clusters on one machine do not meet."""
        self._network = ipaddress.ip_network(network)
        self._data_dir = data_dir
        self._shared = "" if sys.platform.startswith("linux") else "127.0.0.1"
        self._taken: dict[str, str] = {}  # address -> pod uid
        self._next = zlib.crc32(str(data_dir).encode()) % (self._network.num_addresses - 2) + 1

    def take(self, pod_uid: str, wanted: str = "") -> str:
        """`wanted` is an address that it would like, and gets unless another has it. Writes down which it got."""
        if self._shared:
            return self._shared
        for address, owner in self._taken.items():
            if owner == pod_uid:
                return address
        address = wanted if wanted not in self._taken and self.covers(wanted) else self._free()
        self._taken[address] = pod_uid
        folder = self._data_dir / "pods" / pod_uid
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RECORD).write_text(address)
        return address

    def _free(self) -> str:
        size = self._network.num_addresses
        for _ in range(size):
            address = str(self._network[self._next])
            self._next = self._next % (size - 2) + 1
            if address not in self._taken:
                return address
        raise RuntimeError(f"no address is left in {self._network}")

    def reserve(self, pod_uid: str) -> None:
        """What a pod of an earlier start has, as far as it is written down."""
        with contextlib.suppress(OSError):
            address = (self._data_dir / "pods" / pod_uid / RECORD).read_text()
            if self.covers(address):
                self._taken.setdefault(address, pod_uid)
                place = int(ipaddress.ip_address(address)) - int(self._network.network_address)
                self._next = max(self._next, place % (self._network.num_addresses - 2) + 1)

    def owner(self, address: str) -> str:
        """The pod that has it; "" when none does."""
        return self._taken.get(address, "")

    def covers(self, address: str) -> bool:
        """Whether it lies in the pod network."""
        try:
            return not self._shared and ipaddress.ip_address(address) in self._network
        except ValueError:
            return False

    def give_back(self, pod_uid: str) -> None:
        for address in [address for address, owner in self._taken.items() if owner == pod_uid]:
            del self._taken[address]
            with contextlib.suppress(OSError):
                (self._data_dir / "pods" / pod_uid / RECORD).unlink()
