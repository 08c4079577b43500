"""The only code that calls the Kubernetes API; it knows objects and paths, and no kind's meaning.

`Transport` is the seam: HTTP(S) to any server (`http.py`), or the embedded server's own pipeline without a socket.
Imports `danlu.meta` and `danlu.errors`, nothing above them.
"""

from danlu.client.client import Client, ObjectList
from danlu.client.informer import Informer
from danlu.client.transport import Transport, TransportResponse
from danlu.client.watch import WatchEvent

__all__ = ["Client", "Informer", "ObjectList", "Transport", "TransportResponse", "WatchEvent"]
