"""Columns that several kinds show: what is in their pod template, whom they select, numbers at a path."""

from __future__ import annotations

from collections.abc import Callable

from danlu.embedded.apiserver.served import Column
from danlu.meta import objects
from danlu.meta.kind import Object
from danlu.meta.labels import SelectorError, from_label_selector

MOST_SHOWN = 3  # items of a list in one cell


def in_template(field: str, template: str = "spec.template") -> Callable[[Object], str]:
    """A field of each container in the pod template at a path."""

    def read(obj: Object) -> str:
        return ",".join(one.get(field) or "" for one in objects.get(obj, f"{template}.spec.containers", ()))

    return read


def selector_of(obj: Object) -> str:
    """`<none>` selects everything or nothing; both are printed so."""
    try:
        return str(from_label_selector(objects.get(obj, "spec.selector"))) or "<none>"
    except SelectorError:
        return "<error>"


def number_at(path: str) -> Callable[[Object], int]:
    def read(obj: Object) -> int:
        return int(objects.get(obj, path, 0))

    return read


def text_at(path: str, default: str = "") -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        return str(objects.get(obj, path, default))

    return read


def ready_of(obj: Object) -> str:
    """`1/3`: ready of wanted."""
    return f"{objects.get(obj, 'status.readyReplicas', 0)}/{objects.get(obj, 'spec.replicas', 0)}"


def shortened(items: list[str]) -> str:
    """At most three, then how many more; `<unset>` for none."""
    text = ",".join(items[:MOST_SHOWN])
    if len(items) > MOST_SHOWN:
        return f"{text} + {len(items) - MOST_SHOWN} more..."
    return text or "<unset>"


CONTAINERS = Column(
    "Containers", in_template("name"), priority=1, description="Names of each container in the template."
)
IMAGES = Column(
    "Images", in_template("image"), priority=1, description="Images referenced by each container in the template."
)
SELECTOR = Column("Selector", selector_of, priority=1, description="Which pods belong to this object, by their labels.")
