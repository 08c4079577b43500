"""Notebook as the platform sees it."""

from __future__ import annotations

from danlu.kinds import claims
from danlu.kinds._served.controller import ServedKind, served_controller
from danlu.kinds.notebook.activity import ask
from danlu.kinds.notebook.reconcile import needs, reconcile
from danlu.kinds.notebook.schema import COLUMNS, NOTEBOOK, RULES, NotebookSpec, NotebookStatus
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.meta.wellknown import CONFIG_MAP, SECRET, SERVICE, STATEFUL_SET
from danlu.runtime.controller import Controller
from danlu.runtime.manager import Manager

OWNS = (STATEFUL_SET, SERVICE, SECRET, CONFIG_MAP)


def controller(manager: Manager, settings: PlatformSettings) -> Controller:
    return served_controller(manager, settings, ServedKind(NOTEBOOK, OWNS, reconcile, needs, ask))


KIND = PlatformKind(
    kind=NOTEBOOK,
    spec=NotebookSpec,
    status=NotebookStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=OWNS,
    rights=(
        *claims.RIGHTS,
        Right(("",), ("pods",), ("get", "list", "watch")),
        Right(("",), ("pods/proxy",), ("get",)),
        Right(("",), ("namespaces",), ("get",)),
        Right(("metrics.k8s.io",), ("pods",), ("get",)),
    ),
)
