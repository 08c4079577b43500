"""`PlatformKind`: one custom kind as the rest of the platform sees it: its CRD, its rights, its controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from danlu.kinds.suspension import Suspension
from danlu.kinds.webapp import WebApp
from danlu.meta.kind import Kind
from danlu.runtime.reconciler import Reconciler


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """What differs between the places where the platform runs."""

    # Pods of one node share its network (the embedded node): two jobs must not use the same port.
    shared_network: bool = False
    # Cores that all pods of a job share, where they run on one machine; 0: every pod has a node's cores.
    shared_cores: int = 0
    # Which engine places the pods of a job together: "none", "t9k" (embedded), "volcano",
    # "coscheduling", "kube", "kueue"
    gang: str = "none"
    # There are HorizontalPodAutoscalers, for jobs that name metrics to grow by.
    autoscaling: bool = True
    # Where notebooks and TensorBoards are reached, before their path: the console's address.
    console_url: str = ""
    # Seconds between two questions to a notebook what it is doing.
    scan_interval_s: float = 300.0
    # Seconds without kernel, terminal, page or ssh activity, and with an idle processor, after which a notebook counts
    # as idle.
    idle_after_s: float = 3600.0
    # Seconds a notebook may be idle before it is suspended, in namespaces that want that.
    suspend_after_s: float = 86400.0
    # How objects of any kind are suspended. A kind may not import another: the registry fills it in.
    suspensions: Mapping[Kind, Suspension] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    name: str
    path: str  # JSONPath, `.status.phase`
    type: str = "string"
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the CRD.

    `at` is where it stands in the schema: "" the whole object, "spec", "spec.replicas.*" each value of a map,
    "spec.list.[]" each element of a list.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    at: str = "spec"
    reason: str = ""
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """What the controller may do beyond its own kind and its children."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlatformKind:
    kind: Kind
    spec: type[msgspec.Struct]
    status: type[msgspec.Struct]
    controller: Callable[[PlatformSettings], Reconciler[Any]] | None  # None: a kind that others only read
    columns: tuple[PrinterColumn, ...] = ()
    rules: tuple[Rule, ...] = ()
    scale: dict[str, str] | None = None  # the CRD's scale subresource, as it stands there
    owns: tuple[Kind, ...] = ()
    rights: tuple[Right, ...] = ()
    suspension: Suspension | None = None  # how an object lets its pods go; None: it has none, or cannot be told
    app: WebApp | None = None  # the page that each object serves; None: there is nothing to open
    engine: str = ""  # only where this engine places pods together (`PlatformSettings.gang`); "": everywhere
    cluster_wide: bool = False  # writes what lies in no namespace: nothing for an operator that may see only a few
    extra: dict[str, Any] = field(default_factory=dict)  # merged into the CRD version, for what the types cannot say
