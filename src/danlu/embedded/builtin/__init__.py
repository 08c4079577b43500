"""One file for each built-in kind the embedded server serves; each exports its `SERVED`.

`BUILTINS` is the whole list, in the order discovery shows it within a group.
"""

from __future__ import annotations

from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.builtin import (
    configmap,
    endpoints,
    limitrange,
    namespace,
    node,
    persistentvolume,
    persistentvolumeclaim,
    pod,
    resourcequota,
    reviews,
    secret,
    service,
    serviceaccount,
)

BUILTINS: tuple[ServedKind, ...] = (
    configmap.SERVED,
    endpoints.SERVED,
    limitrange.SERVED,
    namespace.SERVED,
    node.SERVED,
    persistentvolumeclaim.SERVED,
    persistentvolume.SERVED,
    pod.SERVED,
    resourcequota.SERVED,
    secret.SERVED,
    serviceaccount.SERVED,
    service.SERVED,
    *reviews.SERVED,
)
