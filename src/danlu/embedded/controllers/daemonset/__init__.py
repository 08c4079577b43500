"""apps/v1 DaemonSet: one pod on each node that the template may run on.

`eligibility` says which nodes these are (pure), `controller` makes and replaces the pods.
"""

from danlu.embedded.controllers.daemonset.controller import make

__all__ = ["make"]
