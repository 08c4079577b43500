"""`Kind`: what one sort of object is called, in every spelling the Kubernetes API uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as it is on the wire: plain JSON data."""


@dataclass(frozen=True, slots=True)
class Kind:
    group: str  # "" is the core group
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""  # "" means: the kind in lower case

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: unique across versions, so it also names the place in storage."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
