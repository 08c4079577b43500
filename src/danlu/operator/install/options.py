"""What can be chosen about an installation; the same names stand in the Helm chart's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from danlu import __version__
from danlu.kinds.platform import PlatformKind
from danlu.kinds.registry import REGISTRY
from danlu.meta.kind import Object

NAMESPACE = "danlu-system"
IMAGE = f"docker.io/danlu/danlu:{__version__}"
ADDONS = ("nvidia", "dcgm")
GANGS = ("none", "kube", "volcano", "coscheduling", "kueue")
OPERATOR_RESOURCES: Object = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
CONSOLE_RESOURCES: Object = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}
GROUPS = {domain.partition(".")[0]: domain for domain in (".".join(k.kind.group.split(".")[-2:]) for k in REGISTRY)}
"""Short names for the kinds of one API group (and of the groups below it), for --without-kinds: kubeflow."""


class OptionError(Exception):
    """Something was chosen that cannot be; the message says what there is."""


@dataclass(frozen=True, slots=True)
class InstallOptions:
    namespace: str = NAMESPACE
    image: str = IMAGE
    pull_policy: str = "IfNotPresent"
    replicas: int = 2  # of the operator: one works, the other takes over within seconds
    gang: str = "none"
    log_format: str = "text"  # of the operator and the console; json: one object a line
    console_url: str = ""  # where people open the console; written into notebooks' and TensorBoards' status
    apps_url: str = ""  # where they open notebooks; with a wildcard each has a host name of its own
    console_arguments: tuple[str, ...] = ()  # further ones for `danlu console`, such as --session-hours
    kinds: tuple[PlatformKind, ...] = REGISTRY
    console: bool = True
    network_policies: bool = True
    addons: tuple[str, ...] = ()
    operator_resources: Object = field(default_factory=lambda: {**OPERATOR_RESOURCES})
    console_resources: Object = field(default_factory=lambda: {**CONSOLE_RESOURCES})
    pull_secrets: tuple[Object, ...] = ()
    node_selector: Object = field(default_factory=dict)
    tolerations: tuple[Object, ...] = ()
    take_over: bool = False  # definitions that somebody else installed may be changed

    @property
    def kind_names(self) -> str:
        return ",".join(kind.kind.kind for kind in self.kinds)


def kinds_without(names: Sequence[str]) -> tuple[PlatformKind, ...]:
    """All kinds but those: `kubeflow` (a group), `pytorchjobs`, `PyTorchJob`."""
    left_out = set()
    for name in names:
        found = [kind for kind in REGISTRY if _is_called(kind, name.lower())]
        if not found:
            known = ", ".join([*GROUPS, *(kind.kind.kind for kind in REGISTRY)])
            raise OptionError(f"there is no kind {name!r} to leave out; there are {known}")
        left_out |= {kind.kind.resource for kind in found}
    kept = tuple(kind for kind in REGISTRY if kind.kind.resource not in left_out)
    if not kept:
        raise OptionError("all kinds are left out: nothing would be installed")
    return kept


def _is_called(kind: PlatformKind, name: str) -> bool:
    if name in GROUPS:
        return kind.kind.group == GROUPS[name] or kind.kind.group.endswith("." + GROUPS[name])
    return name in (kind.kind.plural, kind.kind.singular_name, kind.kind.resource, kind.kind.group)
