"""What a CustomResourceDefinition says about the kinds that it brings."""

from __future__ import annotations

from danlu.meta.kind import Kind, Object

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def is_established(crd: Object) -> bool:
    """Whether its names were accepted, so that it is served."""
    given = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in given)


def kinds_of(crd: Object) -> list[Kind]:
    """One `Kind` for each served version, in the definition's order."""
    spec = crd["spec"]
    accepted = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    return [
        Kind(
            spec["group"],
            version["name"],
            accepted["kind"],
            accepted["plural"],
            spec.get("scope") == "Namespaced",
            tuple(accepted.get("shortNames") or ()),
            tuple(accepted.get("categories") or ()),
            accepted.get("singular", ""),
        )
        for version in spec.get("versions") or ()
        if version.get("served")
    ]
