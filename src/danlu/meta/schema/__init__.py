"""Schemas: which fields a kind has, their types, how lists merge, and what a custom kind demands of its objects.

One type for built-in kinds (`native`, from Kubernetes' OpenAPI definitions) and for custom ones (`structural`, from a
CustomResourceDefinition). `meta.patch` walks the nodes (`Schema.root`), the API server calls `decode` on every write.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

from danlu.meta.schema import decoder, definitions
from danlu.meta.schema.decoder import Decoded, TypeProblem
from danlu.meta.schema.schemanode import Node

if TYPE_CHECKING:
    from danlu.meta.fields import FieldError

__all__ = ["Decoded", "Node", "Schema", "TypeProblem", "native", "structural"]


class Schema:
    """A compiled schema. Cheap to call, safe to share; never changes."""

    __slots__ = ("root",)

    def __init__(self, root: Node) -> None:
        self.root = root

    def decode(self, obj: dict[str, Any]) -> Decoded:
        """Prunes `obj` in place and puts it in normal form; says which fields were not known and what has a wrong type.

        After a problem the object is half done and to be thrown away.
        """
        return decoder.decode(obj, self.root)

    def unknown_fields(self, obj: dict[str, Any]) -> list[str]:
        return self.decode(copy.deepcopy(obj)).unknown

    def prune(self, obj: dict[str, Any]) -> None:
        self.decode(obj)

    def type_errors(self, obj: dict[str, Any]) -> list[TypeProblem]:
        problem = self.decode(copy.deepcopy(obj)).problem
        return [problem] if problem else []

    def default(self, obj: dict[str, Any]) -> None:
        """Nothing for built-in kinds: their defaults depend on more than one field, so each kind writes its own."""

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        """No errors for built-in kinds, each of which has a validation of its own."""
        return []

    def element(self, *path: str | int) -> Node | None:
        """The node at a path: field names, map keys and list indexes. None where the schema ends."""
        node: Node | None = self.root
        for step in path:
            if node is None:
                return None
            node = node.items if isinstance(step, int) else node.field(step)
        return node


@functools.cache
def native(definition: str) -> Schema:
    """The schema of a built-in kind by its definition's name, `io.k8s.api.core.v1.Pod`."""
    return Schema(definitions.node_of(definition))


def structural(open_api_v3_schema: dict[str, Any], *, preserve_unknown: bool = False) -> Schema:
    """The schema of one version of a CustomResourceDefinition."""
    from danlu.meta.schema import custom

    return custom.compile_schema(open_api_v3_schema, preserve_unknown=preserve_unknown)
