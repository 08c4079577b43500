"""What an app is called and which path it has on the apps' origin. The paths are the kinds' own: a program that is told
its path once keeps it, on both targets and whatever stands before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from danlu.errors import BadRequest
from danlu.kinds.notebook import programs
from danlu.kinds.tensorboard import reconcile as tensorboard

KINDS = ("notebook", "tensorboard", "service")
_PATH = re.compile(r"/t9k/(notebook|tensorboard|service)s/projects/([a-z0-9.-]+)/name/([a-z0-9.-]+(?::[a-z0-9-]+)?)/")


@dataclass(frozen=True, slots=True)
class AppName:
    kind: str
    namespace: str
    name: str  # of a service: NAME:PORT

    @property
    def base(self) -> str:
        """With a slash at both ends."""
        if self.kind == "notebook":
            return programs.base_path(self.namespace, self.name)
        if self.kind == "tensorboard":
            return tensorboard.base_path({"metadata": {"namespace": self.namespace, "name": self.name}})
        return f"/t9k/services/projects/{self.namespace}/name/{self.name}/"


def of_path(path: str) -> AppName | None:
    found = _PATH.match(path)
    return _checked(*found.groups()) if found else None


def of_request(asked: object) -> AppName:
    """Of `{"namespace", "kind", "name"}`. Raises BadRequest."""
    parts = [asked.get(word) for word in ("kind", "namespace", "name")] if isinstance(asked, dict) else []
    if len(parts) == 3 and all(isinstance(part, str) for part in parts):
        found = _checked(*map(str, parts))
        # What does not come back the same has something in it that no name has.
        if found is not None and of_path(found.base) == found:
            return found
    raise BadRequest(
        f'send {{"namespace", "kind", "name"}}; the kind is one of {", ".join(KINDS)}, a service is NAME:PORT'
    )


def _checked(kind: str, namespace: str, name: str) -> AppName | None:
    if kind not in KINDS or (":" in name) != (kind == "service"):
        return None
    return AppName(kind, namespace, name)
