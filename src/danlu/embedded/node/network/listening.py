"""What services and host ports listen on, and in which words it is told when they cannot."""

from __future__ import annotations

import errno

from danlu.diagnose import say, stated
from danlu.embedded.node.network import lowports, sockdiag

NODE_ADDRESS = "127.0.0.1"  # of node ports, and of host ports that name no other
PROTOCOLS = {"TCP": sockdiag.TCP, "UDP": sockdiag.UDP}

ListenKey = tuple[str, str, int]  # protocol, address, port


def explain(at: ListenKey, error: OSError, holder: str) -> str:
    _, address, port = at
    place = f"{address}:{lowports.said(port)}"
    if error.errno in (errno.EACCES, errno.EPERM) and port < lowports.PRIVILEGED:
        return say("DL-PORT-ROOT", at=place, first=lowports.PRIVILEGED)
    if error.errno == errno.EADDRINUSE:
        return stated("DL-PORT-TAKEN", at=place, holder=holder or stated("DL-HOLDER-HERE"))
    return stated("DL-PORT-REFUSED", at=place, error=error.strerror or str(error))
