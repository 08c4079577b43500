"""Project as the platform sees it."""

from __future__ import annotations

from danlu.kinds.platform import PlatformKind, Right
from danlu.kinds.project.controller import ProjectReconciler
from danlu.kinds.project.quotaprofile import PROFILE
from danlu.kinds.project.schema import COLUMNS, PROJECT, ProjectSpec, ProjectStatus

KIND = PlatformKind(
    kind=PROJECT,
    spec=ProjectSpec,
    status=ProjectStatus,
    controller=ProjectReconciler,
    columns=COLUMNS,
    owns=ProjectReconciler.owns,
    cluster_wide=True,  # it labels namespaces
    rights=(
        Right(("",), ("namespaces",), ("get", "list", "watch", "patch")),
        Right(("tensorstack.dev",), ("quotaprofiles",), ("get",)),
        Right(("networking.k8s.io",), ("networkpolicies",), ("get", "create", "patch", "delete")),
    ),
)
KINDS = (KIND, PROFILE)
