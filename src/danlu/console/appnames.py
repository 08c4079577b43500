"""What an app is called and which path it has on the apps' origin. What can be opened, the kinds say themselves
(`PlatformKind.app`), and any Service besides."""

from __future__ import annotations

import re
from dataclasses import dataclass

from danlu.errors import BadRequest
from danlu.kinds.platform import PlatformKind
from danlu.kinds.registry import EVERY
from danlu.kinds.webapp import app_path
from danlu.meta.kind import Kind
from danlu.meta.wellknown import SERVICE

APPS: dict[str, PlatformKind] = {kind.kind.singular_name: kind for kind in EVERY if kind.app is not None}
KINDS: dict[str, Kind] = {**{word: found.kind for word, found in APPS.items()}, SERVICE.singular_name: SERVICE}
_WORDS = {kind.plural: word for word, kind in KINDS.items()}
_PATH = re.compile(rf"/t9k/({'|'.join(_WORDS)})/projects/([a-z0-9.-]+)/name/([a-z0-9.-]+(?::[a-z0-9-]+)?)/")


@dataclass(frozen=True, slots=True)
class AppName:
    kind: str  # in the singular and in lower case, as it is typed after `kubectl get`
    namespace: str
    name: str  # of a service: NAME:PORT

    @property
    def base(self) -> str:
        """With a slash at both ends."""
        return app_path(KINDS[self.kind], self.namespace, self.name)

    @property
    def shown(self) -> str:
        return f"{KINDS[self.kind].kind} {self.name}"

    @property
    def knows_path(self) -> bool:
        """The program answers below `base`; else it answers at `/`."""
        declared = APPS.get(self.kind)
        return declared is not None and declared.app is not None and declared.app.knows_path

    @property
    def through_api(self) -> bool:
        """Its pages pass an API server's proxy."""
        declared = APPS.get(self.kind)
        return declared is None or declared.app is None or declared.app.through_api


def of_path(path: str) -> AppName | None:
    found = _PATH.match(path)
    return _checked(_WORDS[found[1]], found[2], found[3]) if found else None


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
    if kind not in KINDS or (":" in name) != (kind == SERVICE.singular_name):
        return None
    return AppName(kind, namespace, name)
