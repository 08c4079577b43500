"""`ServedKind`: all that the request pipeline must know to serve one kind at one version.

Built-in kinds write one by hand (`embedded/builtin`), a CustomResourceDefinition makes one for each of its
versions (`crds.py`). The pipeline treats both alike and knows no kind by name.

The order of one write, and who does what:
  decode (schema) → default → managedFields → prepare → mutating admission → validate → validating admission → submit.
(An update prepares before it keeps managedFields: what the client may not change, it cannot come to own.)
Everything from reading the old object to `submit` runs without awaiting, so nothing can come between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from danlu.meta.kind import Kind, Object

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Call, Response, StreamResponse
    from danlu.meta.fields import FieldError
    from danlu.meta.schema import Schema


def nothing(*_: object) -> None:
    """The hook of a kind that has nothing to do at this step."""


def no_errors(*_: object) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`. `priority` above 0 shows only with `-o wide`."""

    name: str
    value: Callable[[Object], Any]
    type: str = "string"  # string, integer, date, boolean, number
    format: str = ""  # "name" marks the column that names the object
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as dotted paths without the leading dot."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    selector: str = "status.selector"  # a string, or a LabelSelector object, which is then written as a string
    plain_selector: bool = False  # an object that is just labels (ReplicationController)


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object that is not plain storage: `pods/NAME/log`.

    `handle` answers HTTP requests, `stream` takes over a WebSocket: (call, scope, receive, send) as ASGI has them.
    `kind` is what discovery says is exchanged there.
    """

    verbs: tuple[str, ...]  # as discovery lists them: ("get",), ("create",), ("create", "get") for exec …
    kind: Kind
    handle: Callable[[Call], Awaitable[Response | StreamResponse]] | None = None
    stream: Callable[[Call, Any, Any, Any], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource that reads and changes a part of the object itself, as /status does: approval, resize."""

    prepare: Callable[[Object, Object], None]  # (new, old): keep all but the part
    validate: Callable[[Object, Object], list[FieldError]] = no_errors


@dataclass(frozen=True, slots=True)
class ServedKind:
    kind: Kind
    schema: Callable[[], Schema]  # called when first needed: compiling all of them would slow the start
    name_errors: Callable[[str, bool], Sequence[str]]  # (name, is a generateName prefix) -> Kubernetes' own texts
    columns: Sequence[Column] = ()

    # -- what happens to an object on its way in; all work in place on a private copy, `old` is not to be changed
    prepare_create: Callable[[Object], None] = nothing  # drop what clients may not set (status …)
    prepare_update: Callable[[Object, Object], None] = nothing  # (new, old): keep status, bump generation …
    prepare_status: Callable[[Object, Object], None] = nothing  # (new, old) on /status: keep all but status
    default: Callable[[Object], None] = nothing
    validate: Callable[[Object], list[FieldError]] = no_errors
    validate_update: Callable[[Object, Object], list[FieldError]] = no_errors  # also runs `validate`'s checks itself
    validate_status: Callable[[Object, Object], list[FieldError]] = no_errors
    warnings: Callable[[Object], list[str]] = lambda _: []

    selectable: Callable[[Object], Mapping[str, str]] = lambda _: {}  # fields beyond metadata.name and .namespace
    selectable_names: frozenset[str] = frozenset()
    unselectable: str = ""  # what is said of other fields, {} for the quoted name; empty: the usual words
    has_status: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)  # by name, beyond status
    scale: ScalePaths | None = None
    # seconds of grace for a delete (None: at once), from the object and the asked gracePeriodSeconds
    grace: Callable[[Object, int | None], int | None] = lambda _obj, _asked: None
    # Something besides metadata.finalizers keeps a deleted object (a namespace's spec.finalizers)
    held: Callable[[Object], bool] = lambda _: False
    mark_deleting: Callable[[Object], None] = nothing  # what a delete that has to wait writes into the object
    default_propagation: str = "Background"
    orphan_warning: str = ""  # for a delete that says nothing about dependents
    returns_deleted: bool = False  # a delete answers with the object, not with a Status
    free_finalizers: bool = False  # their names need not be qualified with a domain (custom kinds, and definitions)
    unconditional_update: bool = True  # an update without resourceVersion is allowed
    create_on_update: bool = False  # PUT to a name that is not there creates it
    verbs: tuple[str, ...] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )
    # Kinds that are answered and never stored (reviews): the answer takes the place of storage.
    answer: Callable[[Call, Object], Object | Awaitable[Object]] | None = None
    # Kinds that are made when they are read and never stored (metrics): all objects that the call may be about.
    computed: Callable[[Call], Awaitable[list[Object]]] | None = None
    # Further subresources by name, beyond status and scale; see `embedded/apiserver/subresources`.
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    custom: bool = False  # made by a CustomResourceDefinition: Kubernetes has other words for some of its errors
    storage_version: bool = True
    # The same stored object under another group (events and events.k8s.io): the key in storage.
    stored_as: str = ""
    # Translate between the stored form and this version's form, where they differ (events.k8s.io).
    to_stored: Callable[[Object], Object] | None = None
    from_stored: Callable[[Object], Object] | None = None
    key: str = field(init=False)  # in storage

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.stored_as or self.kind.resource)

    def has_subresource(self, name: str) -> bool:
        if name == "status":
            return self.has_status
        if name == "scale":
            return self.scale is not None
        return name in self.parts or name in self.subresources
