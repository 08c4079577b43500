"""Which owner of a pod is suspended in its place."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from danlu import errors
from danlu.client.client import Client
from danlu.kinds.suspension import Suspension
from danlu.meta import owners
from danlu.meta.kind import Kind, Object

log = logging.getLogger(__name__)

CLIMB = 6  # owners of owners, at most


@dataclass(frozen=True, slots=True)
class SuspendableOwner:
    obj: Object
    kind: Kind
    suspension: Suspension


class SuspendableOwners:
    def __init__(self, suspensions: Mapping[Kind, Suspension]) -> None:
        self._known = {(kind.group, kind.kind): (kind, how) for kind, how in suspensions.items()}

    async def highest(self, client: Client, obj: Object) -> SuspendableOwner | None:
        found: SuspendableOwner | None = None
        for _ in range(CLIMB):
            reference = owners.controller_of(obj)
            if reference is None:
                break
            group, _, version = reference["apiVersion"].rpartition("/")
            named = reference["kind"]
            # Owners of unknown kinds are only passed through: where the guess at the plural is wrong, the way ends.
            guess = Kind(group, version, named, f"{named.lower()}s")
            kind, suspension = self._known.get((group, named), (guess, None))
            name, namespace = reference["name"], obj["metadata"].get("namespace")
            try:
                owner = await client.get(kind, name, namespace)
            except errors.ApiError as error:
                log.info("owner %s/%s of %s: %s", named, name, obj["metadata"]["name"], error)
                break
            if owner["metadata"]["uid"] != reference["uid"]:
                break  # another of the same name
            obj = {**owner, "apiVersion": kind.api_version, "kind": kind.kind}
            if suspension is not None:
                found = SuspendableOwner(obj, kind, suspension)
        return found
