"""apps/v1 StatefulSet: pods with a number, and with it a name and storage of their own that outlive them.

`identity` says what the pod and the claims of one number look like (pure), `controller` moves the set there in order.
"""

from danlu.embedded.controllers.statefulset.controller import make

__all__ = ["make"]
