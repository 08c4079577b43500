"""Notebook as the platform sees it."""

from __future__ import annotations

from danlu.kinds import unboundclaims
from danlu.kinds._served.controller import PageKind, PageReconciler
from danlu.kinds.notebook.activity import ask
from danlu.kinds.notebook.programs import place
from danlu.kinds.notebook.reconcile import needs, reconcile
from danlu.kinds.notebook.schema import COLUMNS, NOTEBOOK, RULES, NotebookSpec, NotebookStatus
from danlu.kinds.platform import PlatformKind, PlatformSettings, Right
from danlu.kinds.suspension import SUSPEND
from danlu.kinds.webapp import WebApp
from danlu.meta.wellknown import CONFIG_MAP, SECRET, SERVICE, STATEFUL_SET

OWNS = (STATEFUL_SET, SERVICE, SECRET, CONFIG_MAP)


def controller(settings: PlatformSettings) -> PageReconciler:
    return PageReconciler(PageKind(NOTEBOOK, OWNS, reconcile, needs, ask), settings)


KIND = PlatformKind(
    kind=NOTEBOOK,
    spec=NotebookSpec,
    status=NotebookStatus,
    controller=controller,
    columns=COLUMNS,
    rules=RULES,
    owns=OWNS,
    rights=(
        *unboundclaims.RIGHTS,
        Right(("",), ("pods",), ("get", "list", "watch")),
        Right(("",), ("pods/proxy",), ("get",)),
        Right(("",), ("namespaces",), ("get",)),
        Right(("metrics.k8s.io",), ("pods",), ("get",)),
    ),
    suspension=SUSPEND,
    app=WebApp(place, knows_path=True),
)
